"""quantiles against dense matrix powers and NetworkX."""

from __future__ import annotations

import tracemalloc

import networkx as nx
import numpy as np
import pytest
from blocks import block_oracle
from blocks.block_graphs import BOTH, blocks_of, collection, dense, described, matrices
from cases import dense_graphs, from_dense, random_dense
from hypothesis import given, settings

from artlas import Graphs, kernels
from artlas.blocks import embed, layout, twin
from artlas.blocks.config import DESCRIPTORS

CLOSE = {"rtol": 3e-7, "atol": 1e-6}


def check(A, found, g=0, D=None):
    """Compare the quantiles of graph g of ``found`` with the oracle."""
    D = block_oracle.descriptors(A) if D is None else D
    np.testing.assert_allclose(found["quantiles"][g], block_oracle.quantiles(D), **CLOSE)


@pytest.mark.parametrize("which", BOTH)
def test_every_kind_of_graph(which):
    graphs = collection()
    with kernels.use(which):
        found = blocks_of(embed(graphs))
    for g, (A, D) in enumerate(zip(matrices(), described(), strict=True)):
        check(A, found, g, D)


@settings(max_examples=50, deadline=None)
@given(dense_graphs())
def test_any_small_graph(A):
    graphs = from_dense([A])
    check(A, blocks_of(embed(graphs)))


@pytest.mark.slow
@pytest.mark.parametrize("n", [1024, 1025])
def test_a_dense_graph_about_the_limit_of_dense_walks(n):
    A = random_dense(n, 0.2, np.random.default_rng(n))
    graphs = from_dense([A])
    check(A, blocks_of(embed(graphs)))


@pytest.mark.slow
def test_a_sparse_graph_of_unequal_degrees():
    A = dense(nx.barabasi_albert_graph(1500, 4, seed=0))
    graphs = from_dense([A])
    check(A, blocks_of(embed(graphs)))


@pytest.mark.parametrize("reach", range(1, 12))
def test_both_ways_to_walk_agree_where_one_takes_over_from_the_other(reach):
    """Dense walks are for n below eight times the degree: here for circulants of 2 reach >= 10."""
    A = dense(nx.circulant_graph(80, range(1, reach + 1)))
    graphs = from_dense([A])
    check(A, blocks_of(embed(graphs)))


@pytest.mark.parametrize("isolated", [0, 30, 300, 2000])
@pytest.mark.parametrize("density", [0.1, 0.5, 1.0])
def test_isolated_nodes_change_no_sum_but_choose_the_way_to_walk(density, isolated):
    A = random_dense(40, density, np.random.default_rng(4))
    padded = np.zeros((40 + isolated, 40 + isolated), dtype=bool)
    padded[-40:, -40:] = A
    graphs = from_dense([padded])
    means = blocks_of(embed(graphs))["quantiles"][0].reshape(9, 8).mean(1)
    expected = block_oracle.descriptors(A).sum(0)
    np.testing.assert_allclose(means * len(padded), expected, **CLOSE)


@pytest.mark.parametrize("walks", [1, 100])
def test_the_twin_finds_the_same_cycles_however_few_walks_it_looks_at_together(walks, monkeypatch):
    monkeypatch.setattr(twin, "_WALKS", walks)
    for A, D in zip(matrices(), described(), strict=True):
        found = twin.descriptors(from_dense([A]).to_scipy(0).astype(float))[0]
        np.testing.assert_allclose(found, D, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("leaves", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_the_twin_needs_no_memory_for_all_pairs_of_leaves(leaves):
    leaf = np.arange(1, leaves + 1)
    edges = np.concatenate([np.stack([0 * leaf, leaf]), np.stack([leaf, 0 * leaf])], axis=1)
    graphs = Graphs.from_edges([(leaves + 1, edges)])
    with kernels.use("twin"):
        tracemalloc.start()
        found = embed(graphs)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < (1 << 27) + 1500 * leaves
    named = dict(zip(layout().columns, found[0].tolist(), strict=True))
    assert named["quantiles_return_2_0"] == pytest.approx(1 / leaves)
    assert named["quantiles_return_4_0"] == pytest.approx(1 / leaves)
    last = (1 + (leaves + 1) / 8 / leaves - 1 / leaves) * 8 / (leaves + 1)  # the hub is in it
    assert named["quantiles_return_4_7"] == pytest.approx(last)
    assert not any(named[f"quantiles_{kind}_7"] for kind in ("triangles", "return_3"))


@pytest.mark.parametrize("n", range(1, 10))
def test_quantiles_of_few_nodes_share_values_by_mass(n):
    """A star's degrees: n - 1 leaves of 1, then the hub; an eighth may hold parts of both."""
    A = dense(nx.star_graph(n - 1))
    graphs = from_dense([A])
    found = blocks_of(embed(graphs))["quantiles"][0].reshape(9, 8)[0]
    degrees = np.sort(A.sum(1))
    fine = np.log1p(degrees[np.arange(8 * n) // 8]).reshape(8, n)  # eight copies of every node
    np.testing.assert_allclose(found, fine.mean(1), **CLOSE)
    assert found.mean() == pytest.approx(np.log1p(degrees).mean(), abs=1e-6)
    assert (np.diff(found) >= -1e-7).all()


def test_values_that_are_known_by_hand():
    """A triangle with a tail of one node, and one node alone beside it."""
    A = dense(nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)]))
    D = twin.descriptors(from_dense([A]).to_scipy(0).astype(float))[0]
    exact = {
        "degree": np.log([3, 3, 4, 2]),
        "neighbour_degree_mean": np.log([3.5, 3.5, 1 + 5 / 3, 4]),
        "neighbour_degree_sum": np.log([6, 6, 6, 4]),
        "triangles": np.log([2, 2, 2, 1]),
        "clustering": [1, 1, 1 / 3, 0],
        "core": np.log([3, 3, 3, 2]),
        "return_2": [1 / 4 + 1 / 6, 1 / 4 + 1 / 6, 1 / 6 + 1 / 6 + 1 / 3, 1 / 3],
        "return_3": [1 / 6, 1 / 6, 1 / 6, 0],
    }
    for name, values in exact.items():
        np.testing.assert_allclose(D[:, DESCRIPTORS.index(name)], values, atol=1e-12, err_msg=name)
    alone = from_dense([np.zeros((1, 1))])
    assert not blocks_of(embed(alone))["quantiles"].any()


def test_columns_are_where_their_names_say():
    graphs = from_dense([dense(nx.complete_graph(5))])
    named = dict(zip(layout().columns, embed(graphs)[0].tolist(), strict=True))
    values = {
        "quantiles_degree_0": np.log(5),
        "quantiles_neighbour_degree_sum_2": np.log(17),
        "quantiles_triangles_3": np.log(7),
        "quantiles_clustering_6": 1,
        "quantiles_core_7": np.log(5),
        "quantiles_return_3_0": 3 / 16,
    }
    for name, value in values.items():
        assert named[name] == pytest.approx(value, abs=1e-6), name
