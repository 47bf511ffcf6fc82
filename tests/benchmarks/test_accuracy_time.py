"""The benchmarks of time: pages from made-up measurements, and what a worker measures."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accuracy import datasets, gin, speed, speed_worker
from benchmarks.accuracy.__main__ import parse
from benchmarks.accuracy.gin_network import Outcome
from benchmarks.accuracy.records import Record
from benchmarks.accuracy.splits import Split
from benchmarks.timing import Rounds

LABELS = np.arange(20) % 2


@pytest.fixture
def folds(monkeypatch):
    """Replace the dataset by labels, and its folds by two."""
    made = [Split(np.arange(5, 20), np.arange(5), np.arange(15, 20))] * 2
    monkeypatch.setattr(datasets, "read", lambda data, name: (None, LABELS))
    monkeypatch.setattr(gin, "published_folds", lambda path: made)
    return made


def test_gin_resumes_by_fold_and_never_sees_a_test_label(tmp_path, monkeypatch, folds):
    given = []

    def fit_and_predict(graphs, labels, parts, settings):
        given.append((labels, parts))
        return Outcome(np.zeros(5, dtype=np.int64), 7, 30.0, 20.0)

    monkeypatch.setattr(gin, "fit_and_predict", fit_and_predict)
    words = ["gin", "--data", str(tmp_path), "--only", "NCI1", "--out", str(tmp_path)]
    for count in (1, 1, 2):
        gin.run(parse([*words, "--folds", str(count)])[2])
    assert len(given) == 2
    for labels, (train, validation, test) in given:
        assert not labels[test].any()
        assert labels[train].any()
        parts = np.concatenate([train, validation, test])
        assert sorted(parts) == list(range(20))
    facts = {"hash": "h"}
    ours = {"accuracies": [0.8] * 10, "embed_seconds": 1.0, "seconds": 4.0}
    ours |= {"embed_cpu_seconds": 2.0, "cpu_seconds": 8.0}
    Record(tmp_path, "fair", "NCI1").put("artlas", "published", facts, ours)
    gin.write(parse(words)[2])
    line = (tmp_path / "gin.md").read_text().splitlines()[-1]
    cells = "2 | 7 | 30.0 | 20.0 | ~300 | 60.0 | 80.0 ± 1.4 | 0.50 | 1.00 | 60 | 20, **missed**"
    assert line == f"| NCI1 | {cells} |"


def test_the_page_of_speed_from_made_up_timings(tmp_path, monkeypatch):
    rounds = {"blocks": [1.0, 2.0, 1.0], "compact": [2.0] * 3, "z+": [2.0, 2.0, 4.0]}
    extra = 3 * 2**20

    def measured(module, part, data, *words, default_malloc):
        if part in ("embed", "busy"):
            return {"graphs": 4000, "rounds": rounds}
        if part == "large":
            nodes = int(words[1])
            sizes = {"nodes": nodes, "edges": 2 * nodes, "largest_degree": 9}
            return {**sizes, "seconds": nodes**1.1 * 1e-6, "peak_extra": extra}
        if part == "folds":
            return {"graphs": 4110, "embed": 0.5, "folds": 40.0}
        times = {"embed": 5.0, "fit": 60.0, "predict": 3.0, "accuracy": 0.75}
        return {**times, "columns": 4742, "landmarks": 4000, "before_fit": 2**30, "peak": 2**32}

    monkeypatch.setattr(speed, "run_module", measured)
    words = ["speed", "--data", str(tmp_path), "--out", str(tmp_path)]
    speed.run(parse(words)[2])
    page = (tmp_path / "speed.md").read_text()
    assert "two other processes" not in page
    line = "| NCI1 (4,000) | 4,000 (2,000-4,000) | 2,000 (2,000-2,000) | 2,000 (1,000-2,000) |"
    assert f"{line} 2.00 (1.00-4.00) |" in page
    assert "| random | 1,000,000 | 2,000,000 | 9 | 3.98 | 3 | 1.10 |" in page
    assert "embedding 0.5 s, fit and predict 40.0 s" in page
    assert "peak memory of the process 4.00 GiB" in page
    speed.run(parse([*words, "--busy"])[2])
    assert "two other processes" in (tmp_path / "speed.md").read_text()
    with pytest.raises(SystemExit, match="To fix this"):
        speed.run(parse([*words, "--only", "embedding"])[2])


@pytest.mark.parametrize("kind", ["random", "power-law"])
def test_a_large_graph_is_measured(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(speed_worker, "LONG", 0.0)
    found = speed_worker.large(tmp_path, kind, "2000")
    assert found["nodes"] == 2000
    assert 4 < 2 * found["edges"] / 2000 < 6.1
    assert (found["largest_degree"] > 60) == (kind == "power-law")
    assert found["seconds"] > 0


@pytest.mark.slow
def test_a_large_fit_uses_landmarks(tmp_path, monkeypatch):
    monkeypatch.setattr(speed_worker, "MANY", 400)
    monkeypatch.setattr(speed_worker, "PREDICTED", 100)
    found = speed_worker.fit(tmp_path, "")
    assert found["accuracy"] > 0.55
    assert found["peak"] > found["before_fit"] > 0


@pytest.mark.slow
def test_embedding_is_timed_in_turn(tmp_path, monkeypatch):
    graphs, _ = speed_worker._generated(20)
    monkeypatch.setattr(speed_worker, "_collection", lambda data, name: graphs)
    monkeypatch.setattr(speed_worker, "ROUNDS", Rounds(2, 2, 0.0, 0.0))
    found = speed_worker.embed(tmp_path, "molecules")
    assert found["graphs"] == 20
    assert {name: len(values) for name, values in found["rounds"].items()} == {
        "blocks": 2, "compact": 2, "z+": 2
    }  # fmt: skip
