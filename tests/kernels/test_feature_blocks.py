"""Rows made ready for couplings: the bits of the same steps in PyTorch, by any threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import awkward, from_dense, random_dense, star

from artlas import kernels
from artlas.graphs.measure import degree_measure, prepare_structure
from artlas.kernels import native

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiled kernels")


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def graphs_with_rows(width):
    rng = np.random.default_rng(0)
    many = [random_dense(n, 0.2, rng) for n in rng.integers(3, 90, 120)]
    graphs = from_dense([*awkward(rng), star(60), *many])
    rows = torch.randn(graphs.num_nodes, width, generator=torch.Generator().manual_seed(1))
    rows[::7] = 0
    return graphs, rows


@pytest.mark.parametrize("width", [1, 5, 37])
def test_blocks(threads, width):
    graphs, x = graphs_with_rows(width)
    structure, degree = prepare_structure(graphs, 1e-8), graphs.degree
    summed = kernels.on(x).neighbour_sum(x, structure)
    across = x * summed
    expected = torch.cat([x, summed, across, degree[:, None] * x * x - across], 1)
    assert torch.equal(kernels.on(x).blocks(x, degree, structure), expected)
    with kernels.use("twin"):
        assert (kernels.on(x).blocks(x, degree, structure) - expected).abs().max() < 1e-4


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("joined", [False, True])
def test_class_averages(threads, measured, joined):
    graphs, x = graphs_with_rows(6)
    structure = prepare_structure(graphs, 1e-8)
    measure = degree_measure(graphs, 1e-8) if measured else None
    expected = x if measure is None else (x / measure[:, None]).float()
    if joined:
        structure = native.join_alike_nodes(structure, 2)
        classes = structure.classes
        assert classes is not None
        assert len(classes.count) < graphs.num_nodes
        total = torch.zeros(len(classes.count), 6).index_add_(0, classes.class_of, expected)
        expected = total / classes.count[:, None]
    assert torch.equal(native.class_averages(x, measure, structure), expected)
