"""The raw layout of the Open Graph Benchmark, against a reading by hand."""

from __future__ import annotations

import csv
import gzip
import itertools

import numpy as np
import pytest
from tiny_datasets import entries

from artlas.errors import ReadError
from artlas_paper.datasets import ogb


def rows(path, stop=None):
    with gzip.open(path, "rt") as file:
        return [[float(v) for v in row] for row in itertools.islice(csv.reader(file), stop)]


def test_molecules_are_those_of_the_files(raw):
    folder = raw("ogbg-molhiv") / "ogbg_molhiv" / "raw"
    graphs = ogb.read_graphs(folder, "ogbg-molhiv").graphs
    sizes, lengths, labels = (
        [int(v) for (v,) in rows(folder / f"{name}.csv.gz")]
        for name in ("num-node-list", "num-edge-list", "graph-label")
    )
    assert graphs.sizes.tolist() == sizes
    assert graphs.y.tolist() == labels
    first = sum(sizes[:200])
    assert graphs.x[:first].tolist() == rows(folder / "node-feat.csv.gz", first)
    edges = iter(rows(folder / "edge.csv.gz", sum(lengths[:200])))
    for g in range(200):
        bonds = {(int(a), int(b)) for a, b in itertools.islice(edges, lengths[g])}
        both = bonds | {(b, a) for a, b in bonds}
        assert {tuple(pair) for pair in entries(graphs[g]).T.tolist()} == both


def write(folder, **files):
    for name, text in files.items():
        with gzip.open(folder / f"{name.replace('__', '-')}.csv.gz", "wt") as file:
            file.write(text)
    return folder


def molecules(folder, **changed):
    """A path of three atoms and a single one."""
    files = {
        "num__node__list": "3\n1\n",
        "num__edge__list": "2\n0\n",
        "edge": "0,1\n1,2\n",
        "node__feat": "1,2\n3,4\n5,6\n7,8\n",
        "graph__label": "1\n0\n",
    }
    return write(folder, **(files | changed))


def test_each_bond_counts_in_both_directions(tmp_path):
    reading = ogb.read_graphs(molecules(tmp_path), "made")
    assert entries(reading.graphs).T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert reading.graphs.x.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert reading.graphs.y.tolist() == [1, 0]
    assert not +reading.changes


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edge": "0,1\n1,3\n"}, r"line 2: a node number is out of range; got \[1, 3\]"),
        ({"edge": "0,1\n-1,2\n"}, "line 2: a node number is out of range"),
        ({"edge": "0,1\n"}, "number of lines is wrong; got 1 for 2"),
        ({"num__edge__list": "1\n1\n"}, "line 2: a node number is out of range"),
        ({"num__edge__list": "2\n"}, "number of lines is wrong"),
        ({"num__node__list": "4\n0\n"}, "graphs without nodes"),
        ({"num__node__list": "3\n2\n"}, "number of lines is wrong"),
        ({"num__node__list": ""}, "number of lines is wrong; got 2 for 0"),
        ({"node__feat": "1,2\n3,4\n5,6\n7\n"}, "line 4"),
        ({"graph__label": "1\nnan\n"}, "line 2"),
        ({"graph__label": "1\n-1\n"}, "counts below 0"),
    ],
)
def test_molecules_that_do_not_fit_are_refused(tmp_path, changed, message):
    with pytest.raises(ReadError, match=message):
        ogb.read_graphs(molecules(tmp_path, **changed), "made")


def test_counts_do_not_wrap_around(tmp_path):
    most = 2**63 - 1  # twice this and 4 is 2 for a whole number of 64 bits
    changed = {"num__node__list": "1\n1\n2\n", "graph__label": "0\n1\n0\n"}
    molecules(tmp_path, num__edge__list=f"{most}\n{most}\n4\n", **changed)
    with pytest.raises(ReadError, match="number of lines is wrong"):
        ogb.read_graphs(tmp_path, "made")


def papers(folder, **changed):
    files = {"edge": "0,1\n1,0\n2,0\n", "node__label": "2\n0\n1\n", "node_year": "1999\n2000\n1\n"}
    return write(folder, **(files | changed))


def test_citations_count_in_both_directions(tmp_path):
    reading = ogb.read_node(papers(tmp_path), "made")
    assert entries(reading.graphs).T.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]
    assert reading.graphs.y.tolist() == [2, 0, 1]
    assert reading.graphs.x is None
    assert reading.guesses == [
        "the 128 features of made are missing: they would be in node-feat.csv.gz"
    ]
    assert not +reading.changes


def test_features_are_read_where_they_are(tmp_path):
    x = np.random.default_rng(0).normal(size=(3, 128)).astype(np.float32)
    text = "\n".join(",".join(map(repr, row)) for row in x.tolist())
    reading = ogb.read_node(papers(tmp_path, node__feat=text), "made")
    assert np.array_equal(reading.graphs.x, x)
    assert reading.guesses == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edge": "0,1\n1,3\n"}, "line 2: a node number is out of range"),
        ({"edge": "0,1,2\n"}, "line 1"),
        ({"node_year": "1\n"}, "number of lines is wrong"),
        ({"node__label": "-1\n0\n0\n"}, "no labels from 0"),
        ({"node__feat": "1,2\n1,2\n1,2\n"}, "line 1"),
        ({"node__feat": ",".join(["1"] * 128)}, "number of lines is wrong; got 1 for 3"),
    ],
)
def test_papers_that_do_not_fit_are_refused(tmp_path, changed, message):
    with pytest.raises(ReadError, match=message):
        ogb.read_node(papers(tmp_path, **changed), "made")


def test_an_absent_file_is_named(tmp_path):
    molecules(tmp_path)
    (tmp_path / "edge.csv.gz").unlink()
    with pytest.raises(ReadError, match=r"edge\.csv\.gz: this is not a file"):
        ogb.read_graphs(tmp_path, "made")
