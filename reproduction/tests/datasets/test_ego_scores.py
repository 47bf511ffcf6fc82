"""Scores of ego-graphs on Cora, against the exact personalised PageRank."""

from __future__ import annotations

import numpy as np

from artlas.nodes import PprConfig, ego_graphs
from artlas_paper.datasets import planetoid


def exact(matrix, restart):
    """Row c is the personalised PageRank of c."""
    A = np.asarray(matrix, dtype=float)
    walk = A / A.sum(0)
    return restart * np.linalg.inv(np.eye(len(A)) - (1 - restart) * walk).T


def test_scores_on_cora(raw):
    graph = planetoid.read(raw("Cora") / "Planetoid" / "Cora" / "raw", "Cora").graphs
    matrix = graph.to_scipy(0).toarray()
    centres = np.random.default_rng(1).choice(graph.num_nodes, 200, replace=False)
    egos = ego_graphs(graph, centres, PprConfig(most_nodes=graph.num_nodes))
    scores = np.zeros((len(egos), graph.num_nodes))
    for row, (begin, end) in enumerate(zip(egos.node_ptr[:-1], egos.node_ptr[1:], strict=True)):
        scores[row, egos.nodes[begin:end]] = egos.scores[begin:end]
    bound = 1e-4 * np.maximum(matrix.sum(0), 1) + 1e-6
    assert (np.abs(scores - exact(matrix, 0.15)[centres]) <= bound).all()
