"""The nearest graphs: exact against a plain loop, approximate against exact, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from cases import from_dense, random_dense
from typer.testing import CliRunner

import artlas
from artlas import search
from artlas.cli import app
from artlas.embedding import table
from artlas.embedding.pieces import embed_piece
from artlas.errors import ReadError
from artlas.method import checkpoint

SMALL = artlas.ArtConfig(bases=5, roles=6, hidden=16)


@pytest.fixture(scope="module")
def model():
    return artlas.ART(SMALL).eval()


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    sizes, shares = rng.integers(4, 30, 60), rng.uniform(0.1, 0.7, 60)
    return from_dense([random_dense(n, p, rng) for n, p in zip(sizes, shares, strict=True)])


@pytest.fixture
def tables(tmp_path, model, graphs):
    """Two tables of 40 and 20 graphs, the second with labels."""
    first, second = graphs[:40], graphs[40:].with_labels(np.arange(20) % 3)
    table.write(tmp_path / "a.npz", [embed_piece(model, first, "plus", "a")])
    table.write(tmp_path / "b.parquet", [embed_piece(model, second, "coordinates", "b")])
    return [tmp_path / "a.npz", tmp_path / "b.parquet"]


def naive(q, row):
    """The distance of every graph from one."""
    spread = (q - q.mean(0)) / q.std(0)
    asked = (row - q.mean(0)) / q.std(0)
    return np.array([np.linalg.norm(point - asked) for point in spread])


@pytest.mark.parametrize("exact", [search.EXACT, 10])
def test_nearest_are_those_of_a_plain_loop(tmp_path, model, graphs, tables, monkeypatch, exact):
    monkeypatch.setattr(search, "EXACT", exact)
    search.build(tables, tmp_path / "index")
    index = search.load(tmp_path / "index")
    assert (index.approximate is None) == (exact > 60)
    q = model.align(graphs).coordinates.double().numpy()
    for g, hits in enumerate(index.query(q, 5)):
        far = naive(q, q[g])
        found = [hit.index + 40 * (hit.source == "b") for hit in hits]
        nearest = pytest.approx(np.sort(far)[:5], abs=1e-4)  # coordinates are kept in float32
        assert far[found] == nearest
        assert [hit.distance for hit in hits] == nearest
        assert len(set(found)) == 5
        assert [hit.label for hit in hits] == [None if i < 40 else (i - 40) % 3 for i in found]
    assert len(index.query(q[:1], 500)[0]) == 60


def test_an_approximate_index_is_the_same_each_time_and_finds_what_it_holds():
    points = np.random.default_rng(0).normal(size=(3000, 16)).astype(np.float32)
    one, other = (search._build_approximate(points).search(points, 10).keys for _ in range(2))
    assert np.array_equal(one, other)
    assert np.array_equal(one[:, 0], np.arange(3000))


def test_an_index_is_replaced_and_other_folders_are_not(tmp_path, tables):
    search.build(tables, tmp_path / "index")
    search.build(tables[:1], tmp_path / "index")
    assert len(search.load(tmp_path / "index")) == 40
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(ReadError, match="no index"):
        search.build(tables, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_models_are_not_mixed(tmp_path, model, graphs, tables):
    other = artlas.ART(artlas.ArtConfig(bases=5, roles=6, hidden=16, seed=1)).eval()
    table.write(tmp_path / "c.npz", [embed_piece(other, graphs[:3], "plus", "c")])
    with pytest.raises(ReadError, match=r"c\.npz.*another model"):
        search.build([*tables, tmp_path / "c.npz"], tmp_path / "index")
    index = search.build(tables, tmp_path / "index")
    search.check_model(index, model, tmp_path)
    with pytest.raises(ReadError, match="another model"):
        search.check_model(index, other, tmp_path)
    with pytest.raises(ValueError, match=r"5 coordinates a graph; got shape \[2, 16\]"):
        index.query(np.zeros((2, 16)))
    with pytest.raises(ReadError, match="no index here"):
        search.load(tmp_path / "nothing")


def test_the_command_line(tmp_path, model, tables):
    checkpoint.save(model, tmp_path / "model")
    (tmp_path / "t.csv").write_text("0,1\n1,2\n2,0\n")

    def run(*words):
        done = CliRunner().invoke(app, ["search", *map(str, words)], env={"COLUMNS": "100"})
        return done.exit_code, done.output

    code, text = run("build", *tables, "--index", tmp_path / "index")
    assert code == 0
    assert "60 graphs" in text
    words = "query", tmp_path / "t.csv", "--index", tmp_path / "index", "--count", 3
    code, text = run(*words, "--model", tmp_path / "model")
    assert code == 0
    assert sum(line.startswith("│") for line in text.splitlines()) == 3
    code, text = run(*words)
    assert code == 1
    assert "another model" in text
    assert run("query", tmp_path / "none.csv", "--index", tmp_path / "index")[0] == 1
