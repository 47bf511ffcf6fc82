"""z+ against its formulas, written densely from the mixed coupling."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from cases import awkward, from_dense, random_dense, sharpened

import artlas
from artlas import kernels
from artlas.graphs.measure import degree_measure
from artlas.method import z_plus

BOTH = ["native", "twin"] if kernels.available() else ["twin"]
SMALL = artlas.ArtConfig(bases=3, roles=4, hidden=16)


def s(v):
    return np.sign(v) * np.log1p(np.abs(v))


def dense(model, graph):
    """A, X, deg and R = T_mix / mu of one graph, in double precision."""
    A = graph.to_scipy(0).toarray().astype(np.float64)
    mu = degree_measure(graph, 1e-8).numpy()
    R = model.mixtures(graph).double().numpy() / mu[:, None]
    return A, None if graph.x is None else graph.x.double().numpy(), A.sum(1), R


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    made = from_dense(awkward(rng))
    return made.with_features(rng.normal(size=(made.num_nodes, 3)))


@pytest.mark.parametrize("which", BOTH)
def test_graphs_by_roles_and_without(graphs, which):
    model = sharpened(SMALL)
    with kernels.use(which):
        roles, none = model.embed(graphs, "plus"), model.embed(graphs, "plus-no-roles")
        assert roles.shape == (len(graphs), 4 * 4 * 3)
        assert none.shape == (len(graphs), 4 * 3)
        for g, graph in enumerate(graphs):
            A, X, deg, R = dense(model, graph)
            np.testing.assert_allclose(R.sum(1), 1, atol=1e-4)
            blocks = [X, A @ X, X * (A @ X), deg[:, None] * X * X - X * (A @ X)]
            wanted = np.concatenate([s(4 * R.T @ block).ravel() for block in blocks])
            np.testing.assert_allclose(roles[g], wanted, atol=2e-3)
            wanted = np.concatenate([s(block.sum(0)) for block in blocks])
            np.testing.assert_allclose(none[g], wanted, atol=1e-4)


@pytest.mark.parametrize("which", BOTH)
def test_graphs_by_the_roles_of_each_base(graphs, which):
    """Also under the uniform measure, which a large epsilon gives."""
    changes = {"pooling": "each", "top_k": 2, "measure_epsilon": 1e9, "diagonal": True}
    model = sharpened(dataclasses.replace(SMALL, **changes))
    with kernels.use(which):
        found = model.embed(graphs, "plus").view(len(graphs), 4, 3, 4, 3)
        for g, graph in enumerate(graphs):
            A, X, deg, _ = dense(model, graph)
            blocks = [X, A @ X, X * (A @ X), deg[:, None] * X * X - X * (A @ X)]
            for k, T in enumerate(model.couplings(graph).double().numpy()):
                np.testing.assert_allclose(T.sum(1), 1 / len(A), atol=1e-6)
                for b, block in enumerate(blocks):
                    wanted = s(4 * len(A) * T.T @ block)
                    np.testing.assert_allclose(found[g, b, k], wanted, atol=2e-3)


def test_degree_stands_in_for_absent_features(graphs):
    bare = graphs.with_features(None)
    degree = artlas.datasets.relative_degree(graphs)
    model = sharpened(SMALL)
    for representation in ("plus", "plus-no-roles"):
        found = model.embed(bare, representation)
        torch.testing.assert_close(found, model.embed(bare.with_features(degree), representation))


def test_independent_roles_equal_no_roles(graphs):
    """An untrained coupling is nearly independent: every role then holds the sum over all nodes."""
    model = artlas.ART(artlas.ArtConfig(bases=2, roles=4, hidden=16))
    with torch.no_grad():
        model.node_projection.weight.zero_()
    roles = model.embed(graphs, "plus").view(len(graphs), 4, 4, 3)
    none = model.embed(graphs, "plus-no-roles").view(len(graphs), 4, 1, 3)
    torch.testing.assert_close(roles, none.expand_as(roles), atol=1e-4, rtol=1e-4)


def test_nodes_by_roles_and_without():
    rng = np.random.default_rng(2)
    matrix = random_dense(80, 0.05, rng)
    matrix[70:] = matrix[:, 70:] = False
    network = from_dense([matrix], x=rng.normal(size=(80, 5)))
    egos = artlas.ego_graphs(network, [0, 5, 75], artlas.PprConfig(most_nodes=20))
    model = sharpened(SMALL)
    roles, none = model.embed(egos, "plus"), model.embed(egos, "plus-no-roles")
    assert roles.shape == (3, 4 * 5)
    assert none.shape == (3, 3 * 5)
    for c in range(3):
        graph = egos[c]
        _, X, deg, R = dense(model, graph)
        x = X / np.linalg.norm(X, axis=1, keepdims=True)
        p = egos.scores[egos.node_ptr[c] : egos.node_ptr[c + 1]].astype(np.float64)
        weights = [p, np.sqrt(p / (deg + 1)), np.ones(len(p))]
        weights = [w / w.sum() for w in weights]
        parts = [w @ x for w in weights]
        wanted = np.concatenate([part / np.linalg.norm(part) for part in parts])
        np.testing.assert_allclose(none[c], wanted, atol=1e-5)
        wanted = (R.T @ (weights[1][:, None] * x)).ravel()
        np.testing.assert_allclose(roles[c], wanted / np.linalg.norm(wanted), atol=1e-4)


def test_order_of_nodes_does_not_matter(graphs):
    model, rng = sharpened(SMALL), np.random.default_rng(3)
    graph = graphs[len(graphs) - 1]
    order = rng.permutation(graph.num_nodes)
    A = graph.to_scipy(0).toarray()[order][:, order]
    turned = from_dense([A], x=graph.x.numpy()[order])
    for representation in ("plus", "plus-no-roles"):
        a, b = model.embed(graph, representation), model.embed(turned, representation)
        torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-4)


def test_signed_log():
    values = torch.tensor([0.0, 1.0, -1.0, 1e6])
    np.testing.assert_allclose(z_plus.signed_log(values), s(values.numpy()), rtol=1e-6)
