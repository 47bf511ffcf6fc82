"""Planetoid's files: PyTorch Geometric as oracle, and files that do not fit together."""

from __future__ import annotations

import collections
import os
import pickle
import warnings

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from tiny_datasets import entries, in_order

from artlas.errors import ReadError
from artlas_paper.datasets import planetoid


@pytest.mark.parametrize("name", ["Cora", "CiteSeer", "PubMed"])
def test_it_is_what_pytorch_geometric_reads(raw, name):
    pytest.importorskip("torch_geometric", reason="the oracle is PyTorch Geometric")
    folder = raw(name) / "Planetoid" / name / "raw"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.io import read_planetoid_data

        data = read_planetoid_data(str(folder), name.lower())
    graphs = planetoid.read(folder, name).graphs
    assert np.array_equal(entries(graphs), in_order(data.edge_index))
    assert torch.equal(graphs.x, data.x)
    assert torch.equal(graphs.y, data.y)


def test_citeseer_has_15_test_nodes_without_anything(raw):
    reading = planetoid.read(raw("CiteSeer") / "Planetoid" / "CiteSeer" / "raw", "citeseer")
    order = np.loadtxt(
        raw("CiteSeer") / "Planetoid" / "CiteSeer" / "raw" / "ind.citeseer.test.index", dtype=int
    )
    gaps = sorted(set(range(order.min(), order.max() + 1)) - set(order))
    assert len(gaps) == 15
    assert not reading.graphs.x[gaps].any()
    assert not reading.graphs.y[gaps].any()
    assert reading.guesses == ["15 test nodes without features or label, filled with 0"]


def made(**changed):
    """Six nodes, the first three trained on, of them x two; node 4 is a gap in the test nodes."""
    x = np.array([[1, 0], [0, 2], [0.5, 0], [3, 3], [4, 0]], dtype=np.float32)
    y = np.eye(2, dtype=np.int32)[[0, 1, 1, 0, 1]]
    graph = collections.defaultdict(list, {0: [1, 1], 1: [0], 2: [3, 2], 3: [2], 5: [0]})
    parts = {
        "x": csr_matrix(x[:2]),
        "allx": csr_matrix(x[:3]),
        "tx": csr_matrix(x[3:]),
        "y": y[:2],
        "ally": y[:3],
        "ty": y[3:],
        "graph": graph,
        "test.index": "5\n3\n",
    }
    return parts | changed


def write(folder, parts, protocol=2):
    for part, value in parts.items():
        path = folder / f"ind.made.{part}"
        if isinstance(value, (str, bytes)):
            path.write_bytes(value.encode() if isinstance(value, str) else value)
        else:
            path.write_bytes(pickle.dumps(value, protocol))
    return folder


@pytest.mark.parametrize("protocol", [2, 4])
def test_test_nodes_go_where_test_index_says(tmp_path, protocol):
    reading = planetoid.read(write(tmp_path, made(), protocol), "Made")
    graphs = reading.graphs
    assert graphs.x.tolist() == [[1, 0], [0, 2], [0.5, 0], [4, 0], [0, 0], [3, 3]]
    assert graphs.y.tolist() == [0, 1, 1, 1, 0, 0]
    assert entries(graphs).T.tolist() == [[0, 1], [0, 5], [1, 0], [2, 3], [3, 2], [5, 0]]
    assert reading.guesses == ["1 test nodes without features or label, filled with 0"]
    assert reading.changes == {"loops": 1, "duplicates": 1, "one_way": 1}


def wide(shape):
    matrix = csr_matrix(np.eye(2, dtype=np.float32))
    matrix._shape = shape
    return matrix


def broken(**parts):
    matrix = csr_matrix(np.eye(2, dtype=np.float32))
    for name, value in parts.items():
        setattr(matrix, name, np.array(value))
    return matrix


SHARED = [1] * 1000


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": wide((2, 10**9))}, "no size that fits its file"),
        ({"x": wide((2,))}, "no shape"),
        ({"x": wide((-2, 2))}, "no shape"),
        ({"x": broken(indices=[0, 9])}, "out of range"),
        ({"x": broken(indices=[0, -1])}, "out of range"),
        ({"x": broken(indptr=[0, 2, 1])}, "do not follow"),
        ({"x": broken(indptr=[0, 1, 7])}, "differ in length"),
        ({"x": broken(data=[1.0, np.nan])}, "NaN or infinity"),
        ({"x": broken(data=[[1.0, 2.0]])}, "not one row of numbers"),
        ({"x": np.eye(2)}, "not a sparse matrix"),
        ({"x": csr_matrix(np.eye(2))}, "first rows of allx"),
        ({"x": csr_matrix(np.ones((2, 3)))}, "do not fit together"),
        ({"y": np.eye(2)[[1, 1]]}, "first rows of allx"),
        ({"y": np.ones((2, 2))}, "not one-hot"),
        ({"y": np.eye(3)[[0, 1]]}, "do not fit together"),
        ({"ty": np.eye(2)[[0]]}, "wrong shape"),
        ({"graph": {0: [9]}}, "9 of 6"),
        ({"graph": {0: [-1]}}, "-1 of 6"),
        ({"graph": {0: [2**70]}}, "out of range"),
        ({"graph": {0: [1.5]}}, "float of 6"),
        ({"graph": {0: [True]}}, "bool of 6"),
        ({"graph": {"a": [1]}}, "str of 6"),
        ({"graph": {0: 1}}, "not a dictionary of neighbours"),
        ({"graph": [1]}, "not a dictionary of neighbours"),
        ({"graph": dict.fromkeys(range(5), SHARED)}, "more edges than bytes"),
        ({"test.index": "5\n5\n"}, "numbers of the test nodes"),
        ({"test.index": "5\n1\n"}, "numbers of the test nodes"),
        ({"test.index": "5\n"}, "numbers of the test nodes"),
        ({"test.index": f"5\n{10**12}\n"}, "announces more nodes"),
        ({"test.index": f"5\n{10**6}\n"}, "no size that fits its file"),
        ({"allx": b"\x80\x02cos\nsystem\nU\x02ls\x85R."}, "could run code; got 'os.system'"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_what_does_not_fit_is_refused(tmp_path, changed, message):
    write(tmp_path, made(**changed))
    with pytest.raises(ReadError, match=message):
        planetoid.read(tmp_path, "made")


def test_an_absent_file_is_named(tmp_path):
    write(tmp_path, made())
    os.unlink(tmp_path / "ind.made.ally")
    with pytest.raises(ReadError, match=r"ind\.made\.ally: this is not a file"):
        planetoid.read(tmp_path, "made")
