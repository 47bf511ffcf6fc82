"""Structural features against NetworkX."""

from __future__ import annotations

import networkx as nx
import numpy as np

import artlas
from artlas_paper.transfer.structural_features import (
    NAMES,
    core_numbers,
    page_rank,
    structural_features,
)


def network():
    made = nx.gnm_random_graph(120, 260, seed=5)
    made.add_nodes_from(range(120, 124))
    return made


def test_core_numbers_and_page_rank():
    made = network()
    graphs = artlas.Graphs.from_networkx([made])
    cores = nx.core_number(made)
    found = core_numbers(graphs.row_ptr.numpy(), graphs.col.numpy())
    assert found.tolist() == [cores[i] for i in range(124)]
    assert found.max() > 2
    matrix = graphs.to_scipy(0).astype(np.float64)
    ranks = nx.pagerank(made, tol=1e-12, max_iter=500)
    found = page_rank(matrix, matrix.sum(1))
    np.testing.assert_allclose(found, [ranks[i] for i in range(124)], atol=1e-6)


def test_features_are_standardised_and_follow_their_nodes():
    made = network()
    graphs = artlas.Graphs.from_networkx([made])
    x = structural_features(graphs).x.numpy()
    assert x.shape == (124, len(NAMES))
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(x.std(0), 1, atol=1e-5)
    degree = np.log1p([made.degree(i) for i in range(124)])
    np.testing.assert_allclose(x[:, 0], (degree - degree.mean()) / degree.std(), atol=1e-5)
    order = np.random.default_rng(1).permutation(124)
    turned = nx.relabel_nodes(made, {int(old): new for new, old in enumerate(order)})
    again = nx.Graph()
    again.add_nodes_from(range(124))
    again.add_edges_from(turned.edges)
    moved = structural_features(artlas.Graphs.from_networkx([again])).x.numpy()
    np.testing.assert_allclose(moved, x[order], atol=1e-5)


def test_regular_graphs_have_no_spread():
    x = structural_features(artlas.Graphs.from_networkx([nx.cycle_graph(8)])).x
    np.testing.assert_allclose(x, 0, atol=1e-9)
