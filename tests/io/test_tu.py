"""TU layout: the real data sets, and small ones with every defect."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from artlas.errors import ReadError
from artlas.io import tu


def folder(tmp_path, **files):
    for part, text in files.items():
        (tmp_path / f"T_{part}.txt").write_text(text)
    return tmp_path


TWO = {"A": "1, 2\n2, 1\n3, 4\n4, 3\n4, 5\n5, 4\n", "graph_indicator": "1\n1\n2\n2\n2\n"}


def test_attributes_then_one_hot_labels(tmp_path):
    more = {
        "node_labels": "3\n5\n3\n3\n4\n",
        "node_attributes": "0.5, 1\n2, 3\n4, 5\n6, 7\n8, 9\n",
        "graph_labels": "-1\n1\n",
    }
    found = tu.read(folder(tmp_path, **TWO, **more))
    graphs = found.graphs
    assert graphs.sizes.tolist() == [2, 3]
    assert graphs.y.tolist() == [0, 1]
    assert graphs.to_scipy(1).toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    hot = [[1, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 1, 0]]
    values = [[0.5, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert graphs.x.tolist() == [a + h for a, h in zip(values, hot, strict=True)]
    assert found.guesses == ["TU layout, data set T", "2 classes"]


def test_nodes_of_a_graph_need_not_be_neighbours_in_the_file(tmp_path):
    files = {
        "A": "1, 3\n3, 1\n2, 4\n4, 2\n",
        "graph_indicator": "2\n1\n2\n1\n",
        "node_attributes": "10\n20\n30\n40\n",
    }
    graphs = tu.read(folder(tmp_path, **files)).graphs
    assert graphs.x.tolist() == [[20], [40], [10], [30]]
    assert [g.num_edges for g in graphs] == [1, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": "1, 9\n"}, r"T_A.txt, line 1: a node number is out of range; got \[1, 9\]"),
        ({"A": "1, 2\n0, 1\n"}, r"line 2: a node number is out of range"),
        ({"A": "2, 3\n"}, r"an edge joins two graphs; got \[2, 3\], of graphs \[1, 2\]"),
        ({"graph_indicator": "1\n1\n3\n3\n3\n"}, "a graph has no nodes; got graph 2"),
        ({"graph_indicator": "1\n0\n2\n2\n2\n"}, "line 2: a graph number is out of range"),
        ({"graph_indicator": ""}, "no nodes"),
        ({"graph_labels": "1\n"}, "1 for 2 graphs"),
        ({"node_labels": "1\n1\n"}, "2 for 5 nodes"),
        ({"node_labels": "1\n1\n1\n1\n90000\n"}, "1 to 90000"),
        ({"node_attributes": "1\n2\nnan\n4\n5\n"}, "NaN or infinity"),
        ({"A": "1, x\n"}, "line 1: a value is no number"),
    ],
)
def test_defects(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        tu.read(folder(tmp_path, **(TWO | change)))


def test_folder_that_is_none(tmp_path):
    with pytest.raises(ReadError, match="not in TU layout; got no file"):
        tu.read(tmp_path)
    folder(tmp_path, **TWO)
    (tmp_path / "U_A.txt").write_text("1, 2\n")
    with pytest.raises(ReadError, match="got 2 files"):
        tu.read(tmp_path)
    with pytest.raises(ReadError, match=r"U_graph_indicator.txt: this is not a file"):
        tu.read(tmp_path, "U")


READ = """
import sys, pathlib
import artlas
from artlas.io import tu
graphs = tu.read(pathlib.Path(sys.argv[1])).graphs
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
(peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
print(graphs.num_nodes, graphs.num_edges, peak)  # ru_maxrss would include the parent's
"""


@pytest.mark.slow
def test_collab_stays_within_two_gigabytes(raw):
    path = raw("COLLAB") / "TUDataset" / "COLLAB" / "raw"
    done = subprocess.run(
        [sys.executable, "-c", READ, path], capture_output=True, text=True, check=True
    )
    nodes, edges, peak = map(int, done.stdout.split())
    assert (nodes, edges) == (372_474, 12_286_079)
    assert peak * 1024 < 2e9  # of the whole process, PyTorch included


def test_every_edge_of_imdb_is_listed_twice(raw):
    found = tu.read(raw("IMDB-BINARY") / "TUDataset" / "IMDB-BINARY" / "raw")
    assert found.changes["duplicates"] == 193_062 == 2 * found.graphs.num_edges
    assert found.graphs.x is None
    assert np.bincount(found.graphs.y).tolist() == [500, 500]
