"""SCGFM: its sliced distance against a dense one, invariances, learning, and its solvers."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pytest
import torch
from cases import from_dense, random_dense
from exact_gw import distortion

from artlas import Graphs, ego_graphs
from artlas.training.config import PretrainConfig
from artlas_paper.methods.domains import BatchBuilder
from artlas_paper.methods.graph_invariants import (
    CLUSTERINGS,
    DEGREES,
    graph_statistics,
    node_colours,
    order_nodes,
)
from artlas_paper.methods.scgfm import SCGFM, SCGFMConfig
from artlas_paper.methods.scgfm_slices import PADDED
from artlas_paper.methods.scgfm_solvers import SOLVERS, dense_adjacency

SIZES = {"bases": 3, "roles": 5, "slices": 12, "training_slices": 8, "hidden": 8}
SMALL = SCGFMConfig(features=1, **SIZES, iterations=20)


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    made = from_dense([random_dense(n, 0.4, rng) for n in (9, 14, 11, 4, 120)])
    return made.with_features(rng.normal(size=(made.num_nodes, 2)))


def permuted(graphs, rng):
    dense, x = [], []
    for graph in graphs:
        order = rng.permutation(graph.num_nodes)
        dense.append(graph.to_scipy(0).toarray()[np.ix_(order, order)])
        x.append(graph.x.numpy()[order])
    return from_dense(dense).with_features(np.concatenate(x))


def naive(model, graph, base, slices):
    """The mean squared difference of sorted, padded columns, as it is written."""
    padded = max(graph.num_nodes, PADDED, len(base))
    theta = model.directions.first(padded, slices).astype(np.float64)
    unit = theta / np.linalg.norm(theta, axis=0)
    order = order_nodes(graph)
    classes = np.split(np.arange(graph.num_nodes), order.starts[1:])
    own = np.zeros((padded, slices))
    for members in classes:
        own[order.nodes[members]] = unit[members].mean(0)
    columns = np.zeros((2, padded, slices))
    columns[0, : graph.num_nodes] = dense_adjacency(graph) @ own[: graph.num_nodes]
    columns[1, : len(base)] = base @ unit[: len(base)]
    columns.sort(axis=1)
    return ((columns[0] - columns[1]) ** 2).mean()


def test_sliced_distances_are_those_of_padded_columns(graphs):
    model = SCGFM(SMALL)
    with torch.no_grad():
        relations = model.relations()
        slices = model.project(graphs, 12)
        theta = torch.from_numpy(model.directions.first(5, 12))
        found = slices.distances(relations @ theta)
        weights = model.coordinates(slices)
        mixed = torch.einsum("gk,kml->gml", weights, relations)
        single = slices.distance(mixed @ theta)
    for g, graph in enumerate(graphs):
        expected = [naive(model, graph, base, 12) for base in relations.numpy()]
        np.testing.assert_allclose(found[g], expected, rtol=1e-4, atol=1e-7)
        own = naive(model, graph, mixed[g].numpy(), 12)
        assert float(single[g]) == pytest.approx(own, rel=1e-4, abs=1e-7)
    np.testing.assert_allclose(weights, torch.softmax(-found / 0.1, 1), rtol=1e-5)


def test_statistics_are_counted():
    families = [nx.complete_graph(5), nx.cycle_graph(4), nx.star_graph(20), nx.petersen_graph()]
    found = graph_statistics(Graphs.from_networkx(families))
    for graph, row in zip(families, found, strict=True):
        degrees = np.minimum([d for _, d in graph.degree], DEGREES - 1)
        share = np.bincount(degrees, minlength=DEGREES) / len(graph)
        np.testing.assert_allclose(row[:DEGREES], share, atol=1e-6)
        bins = np.minimum(np.array(list(nx.clustering(graph).values())) * CLUSTERINGS, 9)
        share = np.bincount(bins.astype(int), minlength=CLUSTERINGS) / len(graph)
        np.testing.assert_allclose(row[DEGREES:-2], share, atol=1e-6)
    triangles, squares = np.expm1(found[:, -2:].T)
    np.testing.assert_allclose(triangles, [10, 0, 0, 0], atol=1e-4)
    np.testing.assert_allclose(squares, [15, 1, 0, 0], atol=1e-4)


def test_colours_distinguish_nodes_of_equal_degree():
    path = Graphs.from_networkx(nx.path_graph(6))
    found = node_colours(path)
    assert [found[i] == found[5 - i] for i in range(3)] == [True] * 3
    assert len(set(found.tolist())) == 3
    assert np.array_equal(node_colours(Graphs.concat([path, path])), np.tile(found, 2))
    assert np.diff(order_nodes(path).starts).tolist() == [2, 2]


@pytest.mark.slow
def test_the_loss_falls_on_domains_of_all_sorts():
    rng = np.random.default_rng(1)
    sparse = from_dense([random_dense(n, 0.15, rng) for n in range(6, 22)])
    cliques = Graphs.from_networkx([nx.ring_of_cliques(k, 5) for k in range(3, 9)])
    config = dataclasses.replace(SMALL, domains=(0, 0))
    model = SCGFM(config)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    domains = {"sparse": sparse, "cliques": cliques}
    training = PretrainConfig(epochs=15, batch=8, rate=2e-2, clip=None)
    losses = model.pretrain(domains, training)
    assert len(losses) == 15
    assert losses[-1] < 0.7 * losses[0]
    assert all(not torch.equal(before[name], value) for name, value in model.state_dict().items())
    again = SCGFM(config)
    assert again.pretrain(domains, training) == losses
    network = Graphs.from_networkx(nx.krackhardt_kite_graph()).with_features(np.eye(10))
    egos = ego_graphs(network)  # cut when a batch is built, and without their features
    config, few = dataclasses.replace(SMALL, features=10), dataclasses.replace(training, epochs=2)
    one = SCGFM(config).pretrain({"egos": egos}, few)
    assert one == SCGFM(config).pretrain({"egos": egos[:]}, few)
    assert one == SCGFM(SMALL).pretrain({"egos": egos[:].with_features(None)}, few)
    step = again.stepper(sparse, training)
    assert step() > step()


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_vectors_depend_on_the_graph_alone(graphs, solver):
    if solver != "artlas":
        pytest.importorskip("ot")
    model = SCGFM(SCGFMConfig(features=2, **SIZES, iterations=20, solver=solver))
    z = model.embed(graphs)
    assert z.shape == (5, 3 + DEGREES + CLUSTERINGS + 2 + 5 * 2)
    assert torch.isfinite(z).all()
    other = model.embed(permuted(graphs, np.random.default_rng(2)))
    torch.testing.assert_close(other, z, rtol=1e-4, atol=1e-4)
    alone = torch.cat([model.embed(graphs[i]) for i in (4, 1)])
    torch.testing.assert_close(alone, z[[4, 1]], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_the_solvers_solve_the_same_problem(graphs):
    pytest.importorskip("ot")
    base = SCGFM(SMALL).relations()[0].detach().double().numpy()
    for graph in graphs[:4]:
        found = {}
        for name, solver in SOLVERS.items():
            align = solver(100, 0.005)
            T = align(graph, base)
            np.testing.assert_allclose(T.sum(0), 1 / 5, atol=1e-6)
            np.testing.assert_allclose(T.sum(1), 1 / graph.num_nodes, atol=1e-6)
            found[name] = distortion(dense_adjacency(graph), base, T)
        product = np.full((graph.num_nodes, 5), 1 / (5 * graph.num_nodes))
        assert found["pot"] < distortion(dense_adjacency(graph), base, product) - 1e-3
        assert found["artlas"] == pytest.approx(found["pot"], rel=0.05)


def test_a_loss_has_the_statistics_of_its_own_graphs(graphs):
    domains = {"a": graphs[:3], "b": graphs[3:]}
    model = SCGFM(dataclasses.replace(SMALL, features=2, domains=(0, 0)))
    model.prepare(domains)
    batch = BatchBuilder(domains).build([("b", 1), ("a", 2), ("b", 0)])
    chosen = Graphs.concat([graphs[2], graphs[4], graphs[3]])
    relations, weights = model.relations(), model.coordinates(model.project(chosen, 8))
    fit = [
        naive(model, graph, base, 8)
        for graph, base in zip(
            chosen, torch.einsum("gk,kml->gml", weights, relations).detach().numpy(), strict=True
        )
    ]
    decoded = model.decoder(weights).detach().numpy() - graph_statistics(chosen)
    pairs = [(relations[i] - relations[j]).norm().item() for i, j in ((0, 1), (0, 2), (1, 2))]
    apart = np.mean(np.maximum(0, 6.0 - np.array(pairs)))
    expected = np.mean(fit) + np.mean(decoded**2) + 0.1 * apart
    assert model.loss(batch).item() == pytest.approx(expected, rel=1e-4)


def test_transported_features_keep_their_sums(graphs):
    model = SCGFM(SCGFMConfig(features=2, **SIZES))
    carried = model.embed(graphs)[:, -10:].reshape(5, 5, 2).sum(1)
    sums = torch.stack([graph.x.sum(0) for graph in graphs])
    torch.testing.assert_close(carried, sums, rtol=1e-4, atol=1e-4)
    centre = model.embed(graphs, "centre")
    torch.testing.assert_close(centre[:, :-10], model.embed(graphs)[:, :-10])
    own = graphs.x[graphs.node_ptr[:-1]]
    torch.testing.assert_close(centre[:, -10:].reshape(5, 5, 2).sum(1), own, rtol=1e-4, atol=1e-4)
    constant = SCGFM(SMALL).embed(graphs.with_features(None))[:, -5:]
    sizes = graphs.sizes[:, None].float()
    torch.testing.assert_close(constant, (sizes / 5).expand(5, 5), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "wrong", [{"bases": 0}, {"solver": "none"}, {"training_slices": 300}, {"epsilon": 0.0}]
)
def test_options_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SCGFMConfig(**wrong)
    with pytest.raises(ValueError, match="domain"):
        SCGFM(SMALL).pretrain({})
