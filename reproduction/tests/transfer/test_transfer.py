"""The transfer protocol on small folds: no leak, nothing stale, records that can be compared."""

from __future__ import annotations

import dataclasses
import multiprocessing

import numpy as np
import pytest

import artlas
from artlas import PretrainConfig
from artlas.method import checkpoint
from artlas_paper import datasets
from artlas_paper.transfer import embeddings, folds, records, tables
from artlas_paper.transfer.folds import Folds

SMALL = artlas.ArtConfig(bases=4, roles=6, hidden=16)
THREE = ["BZR", "IMDB-BINARY", "PROTEINS"]


@pytest.fixture(scope="module")
def root(raw):
    for name in THREE:
        place = raw(name)
    return place


@pytest.fixture
def small(monkeypatch, root, tmp_path):
    monkeypatch.setattr(folds, "sources_of", lambda level: THREE)
    return Folds("graph", root, tmp_path / "runs", PretrainConfig(epochs=1), SMALL)


def test_records_of_one_target(small):
    made = list(records.transfer(small, "bzr", [1, 2], [5]))
    rows = {(r["method"], r["variant"], r["seed"]) for r in made}
    assert len(rows) == len(made) == 8 + 2 * 8
    assert {("art", "paper", 1), ("art", "plus", 2), ("control", "sum", None)} <= rows
    keys = "target method variant seed shots episodes mean std stderr paper seconds commit"
    for record in made:
        assert set(keys.split()) <= set(record)
        assert record["target"] == "BZR"
        assert len(record["accuracies"]) == 50
        assert record["mean"] == pytest.approx(100 * np.mean(record["accuracies"]), abs=1e-2)
        assert record["stderr"] == pytest.approx(record["std"] / 50**0.5, abs=1e-3)
    # the published episodes of BZR's labels: the same on every machine
    assert {r["episodes"] for r in made} == {made[0]["episodes"]}
    assert made[0]["episodes"] == EPISODES_OF_BZR
    assert {r["paper"] for r in made if r["variant"] == "paper"} == {62.36}
    assert {r["paper"] for r in made if r["variant"] != "paper"} == {None}


def test_only_some_variants(small):
    made = records.transfer(small, "BZR", [1], [5], only=["plus", "sum"])
    assert [(r["method"], r["variant"]) for r in made] == [("control", "sum"), ("art", "plus")]
    with pytest.raises(ValueError, match=r"no variant 'plux'.*plus-no-roles"):
        list(records.transfer(small, "BZR", [1], [5], only=["plux"]))


EPISODES_OF_BZR = "7d08fdeaa4de7ef042025fb7855695008405247f8082c2dd59973b61eab4483a"


def test_the_target_is_not_among_what_is_pretrained_on(small, monkeypatch):
    seen = {}
    monkeypatch.setattr(folds, "pretrain", lambda sources, *a, **k: seen.update(sources) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        small.model("BZR", 1)
    assert set(seen) == {"IMDB-BINARY", "PROTEINS"}
    assert small.name("BZR") == "without-BZR"
    assert small.name("COLORS-3") == "all"
    # whatever it is called: the structure itself is compared
    small._loaded["PROTEINS"] = datasets.load("BZR", small.root, "raw", verbose=False)
    with pytest.raises(datasets.DatasetError, match=r"BZR .* PROTEINS"):
        small.model("BZR", 1)


def test_what_is_kept_is_used_again_only_for_the_same_settings(small, monkeypatch):
    first = small.model("BZR", 3)
    trained = []
    real = folds.pretrain
    monkeypatch.setattr(folds, "pretrain", lambda *a, **k: trained.append(a) or real(*a, **k))
    again = small.model("BZR", 3)
    assert not trained
    assert checkpoint.weights_hash(first) == checkpoint.weights_hash(again)
    other = dataclasses.replace(small, config=dataclasses.replace(SMALL, bases=5))
    with pytest.raises(ValueError, match="other settings"):
        other.model("BZR", 3)


def test_embeddings_are_kept_and_stale_ones_are_not_used(small):
    labels = records.labels_of(small, "BZR")
    episodes = records.Episodes.draw(labels, 5)
    place = embeddings.Target("BZR", small.root, "graph", small.runs / "e", episodes.members)
    model = artlas.ART(SMALL)
    kinds = embeddings.GRAPH_VARIANTS
    first = place.embed(model, kinds["paper"])
    assert len(list((small.runs / "e").iterdir())) == 1
    (path,) = (small.runs / "e").iterdir()
    path.write_bytes(path.read_bytes()[:-20])  # damaged
    np.testing.assert_array_equal(place.embed(model, kinds["paper"]), first)
    other = artlas.ART(dataclasses.replace(SMALL, seed=7))
    assert not np.array_equal(place.embed(other, kinds["paper"]), first)
    graphs = datasets.load("BZR", small.root, verbose=False)[episodes.members]
    np.testing.assert_array_equal(first, model.embed(graphs, "paper"))
    np.testing.assert_array_equal(place.embed(model, kinds["q"]), first[:, :4])
    np.testing.assert_array_equal(place.embed(model, kinds["H"]), first[:, 4:])


def test_wl_vectors_have_the_products_of_the_kernel():
    """Two copies of a path and a triangle: equal graphs coincide, and norms are one."""
    path, triangle = [[0, 1, 1, 2], [1, 0, 2, 1]], [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]
    graphs = artlas.Graphs.from_edges([(3, path), (3, triangle), (3, path)])
    vectors = embeddings.wl_kernel(graphs)
    products = vectors @ vectors.T
    np.testing.assert_allclose(np.diag(products), 1, atol=1e-6)
    assert products[0, 2] == pytest.approx(1, abs=1e-6)
    assert products[0, 1] < 0.9


def test_episodes_are_renumbered_to_the_same_examples():
    labels = np.repeat([0, 1], [300, 40])
    episodes = records.Episodes.draw(labels, 5)
    drawn = artlas.evaluation.draw_episodes(labels)
    for ours, theirs in zip(episodes.drawn, drawn, strict=True):
        assert np.array_equal(episodes.members[ours.support], theirs.support)
        assert np.array_equal(episodes.members[ours.query], theirs.query)
    assert np.array_equal(episodes.labels, labels[episodes.members])


def record(target, variant, values, seed=1, method="art"):
    return {
        "target": target,
        "method": method,
        "variant": variant,
        "seed": seed,
        "shots": 5,
        "accuracies": values,
    }


def test_files_are_merged_by_what_a_record_is_of(tmp_path):
    path = tmp_path / "r.json"
    records.merge(path, [record("A", "q", [0.5]), record("A", "H", [0.1])])
    kept = records.merge(path, [record("A", "q", [0.7])])
    assert [r["accuracies"] for r in kept] == [[0.1], [0.7]]
    assert records.read(path) == kept


def _merge_some(path, variant, count):
    for number in range(count):
        records.merge(path, [record("A", f"{variant}{number}", [0.5])])


def test_processes_that_merge_at_once_lose_nothing(tmp_path):
    path = tmp_path / "r.json"
    context = multiprocessing.get_context("spawn")
    team = [context.Process(target=_merge_some, args=(path, v, 40)) for v in "qH"]
    for process in team:
        process.start()
    for process in team:
        process.join()
    assert [process.exitcode for process in team] == [0, 0]
    assert {r["variant"] for r in records.read(path)} == {
        f"{v}{i}" for v in "qH" for i in range(40)
    }


def test_tables_average_and_pair():
    records = [
        record("BZR", "q", [0.5, 0.7], 1),
        record("BZR", "q", [0.7, 0.9], 2),
        record("BZR", "sum", [0.4, 0.8], None, "control"),
    ]
    text = tables.table(records, ["BZR"])
    assert "| paper | 62.36 | 62.36 |" in text
    assert "| art q | 70.00 (7.07) | 70.00 |" in text
    mean, error = tables.difference(records, ("art", "q"), ("control", "sum"), ["BZR"])
    assert mean == pytest.approx(10)
    assert error == pytest.approx(10 / 2**0.5)
