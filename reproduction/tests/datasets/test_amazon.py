"""Amazon's files: PyTorch Geometric as oracle, and arrays that do not fit together."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from tiny_datasets import entries, in_order

from artlas.errors import ReadError
from artlas_paper.datasets import amazon


@pytest.mark.parametrize("name", ["Computers", "Photo"])
def test_it_is_what_pytorch_geometric_reads(raw, name):
    pytest.importorskip("torch_geometric", reason="the oracle is PyTorch Geometric")
    folder = raw(name) / "Amazon" / name / "raw"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.io import read_npz

        data = read_npz(str(folder / f"amazon_electronics_{name.lower()}.npz"))
    graphs = amazon.read(folder, name).graphs
    assert np.array_equal(entries(graphs), in_order(data.edge_index))
    assert torch.equal(graphs.x, data.x)
    assert torch.equal(graphs.y, data.y)


def made(**changed):
    """Three nodes, 0 -> 1 one-way, 1 - 2 both ways, a self-loop at 2."""
    arrays = {
        "adj_data": np.array([1, 0, 1, 1], dtype=np.float32),
        "adj_indices": np.array([1, 2, 1, 2]),
        "adj_indptr": np.array([0, 1, 2, 4]),
        "adj_shape": np.array([3, 3]),
        "attr_data": np.array([0.5, 7, -1]),
        "attr_indices": np.array([0, 1, 1]),
        "attr_indptr": np.array([0, 1, 2, 3]),
        "attr_shape": np.array([3, 2]),
        "labels": np.array([1, 0, 1]),
    }
    return {name: value for name, value in (arrays | changed).items() if value is not None}


def write(folder, arrays):
    np.savez(folder / "amazon_electronics_made.npz", **arrays)


def test_small(tmp_path):
    write(tmp_path, made())
    reading = amazon.read(tmp_path, "Made")
    assert entries(reading.graphs).T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert reading.graphs.x.tolist() == [[1, 0], [0, 1], [0, -1]]  # above 0 is 1, as in PyG
    assert reading.graphs.y.tolist() == [1, 0, 1]
    assert reading.changes == {"loops": 1, "duplicates": 0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": None}, "arrays are missing: labels"),
        ({"adj_shape": np.array([3, 4])}, "not square"),
        ({"adj_shape": np.array([3])}, "no shape"),
        ({"adj_shape": np.array([-3, -3])}, "no shape"),
        ({"adj_indices": np.array([1, 2, 1, 3])}, "out of range"),
        ({"adj_indices": np.array([1.0, 2, 1, 2])}, "not one row of numbers"),
        ({"adj_indptr": np.array([0, 3, 2, 4])}, "do not follow"),
        ({"adj_indptr": np.array([0, 1, 2, 3])}, "differ in length"),
        ({"adj_data": np.array([1, np.inf, 1, 1])}, "NaN or infinity"),
        ({"attr_shape": np.array([2, 2])}, "not as many attributes"),
        ({"attr_shape": np.array([3, 10**12])}, "no size that fits its file"),
        ({"attr_data": np.array([1, np.nan, 1])}, "NaN or infinity"),
        ({"labels": np.array([0, 1])}, "not one class per node"),
        ({"labels": np.array([0, 1, -1])}, "not one class per node"),
        ({"labels": np.array([0.0, 1, 1])}, "not one class per node"),
        ({"labels": np.array([0, 1, None])}, "could run code"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_what_does_not_fit_is_refused(tmp_path, changed, message):
    write(tmp_path, made(**changed))
    with pytest.raises(ReadError, match=message):
        amazon.read(tmp_path, "made")


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(ReadError, match=r"amazon_electronics_made\.npz: this is not a file"):
        amazon.read(tmp_path, "made")
