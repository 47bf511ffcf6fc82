"""Tables of vectors: what is in them, runs that break off, inputs that cannot be used."""

from __future__ import annotations

import csv
import errno
import json

import numpy as np
import pytest
from cases import from_dense, random_dense

import artlas
from artlas import checkpoint, embed, vectors
from artlas.embed import Input, Run
from artlas.formats.files import ReadError

SMALL = artlas.ArtConfig(bases=3, roles=4, hidden=16)
BATCH = 20_000  # bytes: a few graphs at a time


@pytest.fixture
def model():
    return artlas.ART(SMALL).eval()


@pytest.fixture
def inputs(tmp_path):
    """Three files of one, two and one graphs."""
    (tmp_path / "a.csv").write_text("0,1\n1,2\n2,0\n2,3\n")
    (tmp_path / "b.json").write_text(
        '[{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1}]},'
        ' {"nodes": [{"id": 0}, {"id": 1}, {"id": 2}], "links": [{"source": 0, "target": 2}]}]'
    )
    (tmp_path / "c.csv").write_text("x,y\ny,z\n")
    return [Input(tmp_path / name, name) for name in ("a.csv", "b.json", "c.csv")]


def work(run, budget=BATCH):
    return run.work(lambda at: None, budget)


@pytest.mark.parametrize("representation", ["plus", "paper", "coordinates", "plus-no-roles"])
@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_rows_are_what_the_model_gives(tmp_path, model, inputs, representation, ending):
    out = tmp_path / "out" / f"z.{ending}"
    outcome = work(Run(out, inputs, model, representation))
    assert outcome.graphs == 4
    assert not outcome.failures
    table = vectors.read(out)
    assert table.source.tolist() == ["a.csv", "b.json", "b.json", "c.csv"]
    assert table.index.tolist() == [0, 0, 1, 0]
    assert (table.label == vectors.UNLABELLED).all()
    at = 0
    for entry in inputs:
        graphs = artlas.read(entry.path, verbose=False)
        rows = slice(at, at + len(graphs))
        np.testing.assert_array_equal(table.z[rows], model.embed(graphs, representation))
        found = model.align(graphs)
        np.testing.assert_array_equal(table.energies[rows], found.energies)
        np.testing.assert_array_equal(table.coverage[rows], found.coverage)
        np.testing.assert_array_equal(table.residual[rows], found.residuals.amax(1))
        at += len(graphs)
    assert len(table.facts["names"]) == table.z.shape[1]
    assert table.facts["weights"] == checkpoint.weights_hash(model)
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_labels_are_kept_and_missing_ones_are_empty(tmp_path, model):
    rng = np.random.default_rng(0)
    graphs = from_dense([random_dense(6, 0.4, rng) for _ in range(3)])
    labelled = embed.describe(model, graphs.with_labels([7, 0, 2]), "coordinates", "one")
    bare = embed.describe(model, graphs, "coordinates", "two", first=5)
    for ending in ("parquet", "npz"):
        vectors.write(tmp_path / f"z.{ending}", [labelled, bare])
        table = vectors.read(tmp_path / f"z.{ending}")
        assert table.label.tolist() == [7, 0, 2] + 3 * [vectors.UNLABELLED]
        assert table.index.tolist() == [0, 1, 2, 5, 6, 7]
    vectors.write(tmp_path / "z.csv", [labelled, bare])
    with open(tmp_path / "z.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["7", "0", "2", "", "", ""]
    assert [np.float32(row["q_1"]) for row in rows] == [*labelled.z[:, 1], *bare.z[:, 1]]
    assert [np.float32(row["e_2"]) for row in rows] == [*labelled.energies[:, 2]] * 2


def test_a_broken_run_goes_on_and_ends_the_same(tmp_path, model, inputs, monkeypatch):
    whole = tmp_path / "whole.npz"
    work(Run(whole, inputs, model, "plus"), 1)
    out, real, made = tmp_path / "z.npz", embed.describe, []

    def break_off(*words):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(words)
        return real(*words)

    monkeypatch.setattr(embed, "describe", break_off)
    with pytest.raises(KeyboardInterrupt):
        work(Run(out, inputs, model, "plus"), 1)
    assert not out.exists()
    made.clear()
    made.append(None)  # one more part may be made, then it breaks off again
    with pytest.raises(KeyboardInterrupt):
        work(Run(out, inputs, model, "plus"), 1)
    monkeypatch.setattr(embed, "describe", lambda *words: made.append(words) or real(*words))
    made.clear()
    assert work(Run(out, inputs, model, "plus"), 1).graphs == 4
    assert len(made) == 1  # the other three were kept
    for name, values in vectors.read(whole).arrays().items():
        np.testing.assert_array_equal(getattr(vectors.read(out), name), values)


def test_a_run_that_goes_on_with_another_budget_loses_no_rows(tmp_path, model, monkeypatch):
    rng = np.random.default_rng(0)
    graphs = [random_dense(6, 0.4, rng) for _ in range(8)]
    nodes = [{"id": i} for i in range(6)]
    text = [
        {"nodes": nodes, "links": [{"source": i, "target": j} for i, j in ends]}
        for ends in (np.argwhere(np.triu(graph, 1)).tolist() for graph in graphs)
    ]
    (tmp_path / "a.json").write_text(json.dumps(text))
    inputs = [Input(tmp_path / "a.json", "a.json")]
    whole, out, real = tmp_path / "whole.npz", tmp_path / "z.npz", embed.describe
    work(Run(whole, inputs, model, "plus"))
    made = []

    def break_off(*words):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(words)
        return real(*words)

    monkeypatch.setattr(embed, "describe", break_off)
    with pytest.raises(KeyboardInterrupt):
        work(Run(out, inputs, model, "plus"), 1)
    monkeypatch.setattr(embed, "describe", real)
    assert work(Run(out, inputs, model, "plus"), 3 * 6 * 4 * (6 * 16 + 12)).graphs == 8
    assert vectors.read(out).index.tolist() == list(range(8))
    np.testing.assert_array_equal(vectors.read(out).z, vectors.read(whole).z)


def test_parts_of_another_run_are_not_mixed_in(tmp_path, model, inputs, monkeypatch):
    def stop(*words):
        raise KeyboardInterrupt

    out, real = tmp_path / "z.npz", embed.describe
    monkeypatch.setattr(embed, "describe", stop)
    with pytest.raises(KeyboardInterrupt):
        work(Run(out, inputs, model, "plus"))
    monkeypatch.setattr(embed, "describe", real)
    with pytest.raises(ReadError, match=r"another run .* delete .*z\.npz\.parts"):
        Run(out, inputs, model, "paper")
    inputs[0].path.write_text("0,1\n")
    with pytest.raises(ReadError, match="another run"):
        Run(out, inputs, model, "plus")


def test_bad_inputs_are_named_and_the_rest_is_done(tmp_path, model, inputs):
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "wide.json").write_text(
        '{"nodes": [{"id": 0, "mass": 1.5, "size": 2.5}, {"id": 1, "mass": 0.5, "size": 1}], '
        '"links": [{"source": 0, "target": 1}]}'
    )
    names = ["bad.json", "wide.json", "missing.csv"]
    more = [*inputs, *(Input(tmp_path / name, name) for name in names)]
    outcome = work(Run(tmp_path / "z.npz", more, model, "plus"))
    assert list(outcome.failures) == names
    assert "line 1" in outcome.failures["bad.json"]
    assert "2 features, those of a.csv have 0" in outcome.failures["wide.json"]
    assert len(vectors.read(tmp_path / "z.npz")) == outcome.graphs == 4


def test_a_full_disk_loses_nothing(tmp_path, model, inputs, monkeypatch):
    real = vectors.write

    def full(path, parts):
        if path.name == "z.npz":
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, parts)

    monkeypatch.setattr(vectors, "write", full)
    with pytest.raises(OSError, match="No space left"):
        work(Run(tmp_path / "z.npz", inputs, model, "plus"))
    monkeypatch.setattr(vectors, "write", real)
    monkeypatch.setattr(embed, "describe", None)  # nothing is left to embed
    assert work(Run(tmp_path / "z.npz", inputs, model, "plus")).graphs == 4


def test_tables_that_are_none_are_refused(tmp_path, model, inputs):
    with pytest.raises(ReadError, match=r"no format.*'\.txt'.*\.parquet"):
        Run(tmp_path / "z.txt", inputs, model, "plus")
    with pytest.raises(ValueError, match="Unknown representation"):
        Run(tmp_path / "z.npz", inputs, model, "best")
    with pytest.raises(ReadError, match="no such file"):
        vectors.read(tmp_path / "z.npz")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(ReadError, match="not a table of vectors"):
        vectors.read(tmp_path / "other.npz")
    (tmp_path / "junk.parquet").write_bytes(b"PAR1junk")
    with pytest.raises(ReadError, match="not a table of vectors"):
        vectors.read(tmp_path / "junk.parquet")
