"""RiemannGFM: manifolds against definitions, invariant inputs, the loss and receptive fields."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from cases import from_dense

from artlas import Graphs, ego_graphs
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.losses import symmetric_infonce
from artlas_paper.methods.riemanngfm import RiemannGFM, RiemannGFMConfig
from artlas_paper.methods.riemanngfm_inputs import breadth_first_trees, laplacian_features
from artlas_paper.methods.riemanngfm_manifolds import Manifold

SPACES = [Manifold(-1), Manifold(1)]
FAMILIES = {
    "cycle": nx.cycle_graph(9),
    "clique": nx.complete_graph(40),
    "star": nx.star_graph(50),
    "petersen": nx.petersen_graph(),
    "path": nx.path_graph(45),
    "pieces": nx.disjoint_union_all([nx.cycle_graph(5), nx.path_graph(4), nx.empty_graph(3)]),
    "random": nx.gnp_random_graph(150, 0.03, seed=1),
}


def renumbered(graph, rng):
    """The graph with other numbers, and the old number of every node."""
    order = rng.permutation(len(graph))
    dense = nx.to_numpy_array(graph)[np.ix_(order, order)]
    return from_dense([dense]), order


def inner(space, x, y):
    signs = torch.tensor([space.curvature] + [1] * (x.shape[1] - 1))
    return (signs * x * y).sum(1)


def tangent_at(space, x, values):
    return values - space.curvature * inner(space, x, values)[:, None] * x


@pytest.mark.parametrize("space", SPACES, ids=["hyperboloid", "sphere"])
def test_maps_are_those_of_the_manifold(space):
    torch.manual_seed(0)
    tangent = torch.randn(20, 4, dtype=torch.float64)
    tangent[0] = 0
    x = space.from_origin(tangent)
    assert torch.allclose(inner(space, x, x), torch.tensor(float(space.curvature)).double())
    near = tangent.norm(dim=1) < np.pi  # where the sphere does not come round
    torch.testing.assert_close(space.to_origin(x)[near], tangent[near], atol=1e-6, rtol=1e-6)
    values = torch.randn(20, 5, dtype=torch.float64) / 3
    u = tangent_at(space, x, values)
    assert inner(space, x, u).abs().max() < 1e-9
    y = space.exp_at(x, values)
    assert torch.allclose(inner(space, y, y), torch.tensor(float(space.curvature)).double())
    cosine = inner(space, x, y) * space.curvature
    distance = torch.acosh(cosine) if space.curvature < 0 else torch.acos(cosine)
    length = inner(space, u, u).sqrt()
    torch.testing.assert_close(distance, length, atol=1e-5, rtol=1e-5)
    middle = space.mean(x, y)
    assert torch.allclose(inner(space, middle, middle), inner(space, x, x))
    torch.testing.assert_close(inner(space, middle, x), inner(space, middle, y))


@pytest.mark.parametrize("space", SPACES, ids=["hyperboloid", "sphere"])
def test_transport_to_origin_is_parallel_transport_of_the_projection(space):
    torch.manual_seed(1)
    x = space.from_origin(torch.randn(20, 4, dtype=torch.float64))
    values = torch.randn(20, 4, dtype=torch.float64)
    u = tangent_at(space, x, torch.nn.functional.pad(values, (1, 0)))
    origin = torch.eye(1, 5, dtype=torch.float64)
    share = inner(space, origin, u) / (space.curvature + inner(space, origin, x))
    carried = u - share[:, None] * (x + origin)
    assert carried[:, 0].abs().max() < 1e-9  # a tangent at the origin
    found = space.transport_to_origin(x, values)
    torch.testing.assert_close(found, carried[:, 1:])
    torch.testing.assert_close(found.square().sum(1), inner(space, u, u))


@pytest.mark.parametrize("family", FAMILIES)
def test_inputs_do_not_depend_on_node_numbering(family):
    graph, rng = FAMILIES[family], np.random.default_rng(3)
    one, other = Graphs.from_networkx(graph), renumbered(graph, rng)
    found, again = laplacian_features(one, 8), laplacian_features(other[0], 8)
    np.testing.assert_allclose(again, found[other[1]], atol=1e-4)
    tree, moved = (
        breadth_first_trees(one, False).to_scipy(0),
        breadth_first_trees(other[0], False).to_scipy(0),
    )
    assert np.array_equal(moved.toarray(), tree.toarray()[np.ix_(other[1], other[1])])


def test_columns_are_eigenvectors_where_these_are_unique():
    graph = FAMILIES["random"]
    graph = graph.subgraph(max(nx.connected_components(graph), key=len))
    found = laplacian_features(Graphs.from_networkx(nx.convert_node_labels_to_integers(graph)), 6)
    laplacian = nx.normalized_laplacian_matrix(graph).toarray()
    values, vectors = np.linalg.eigh(laplacian)
    assert np.diff(values[:7]).min() > 1e-3
    vectors = vectors[:, :6] * np.sqrt(len(graph))
    np.testing.assert_allclose(np.abs(found), np.abs(vectors), atol=1e-4)
    assert ((found**3).sum(0) > 0).all()
    assert (found < 0).any()


def test_an_eigenspace_is_seen_as_a_whole_or_not_at_all():
    clique = Graphs.from_networkx(nx.complete_graph(40))
    found = laplacian_features(clique, 8)
    np.testing.assert_allclose(found[:, 0], 1, atol=1e-5)
    assert not found[:, 1:].any()
    small = laplacian_features(Graphs.from_networkx(nx.complete_graph(4)), 8)
    np.testing.assert_allclose(small[:, :4], 1, atol=1e-5)  # (1 - 1/4) * 4 / 3
    assert not small[:, 4:].any()


def test_trees_have_shortest_paths_and_one_parent_unless_nodes_are_equal():
    graph = nx.convert_node_labels_to_integers(FAMILIES["random"])
    made = breadth_first_trees(Graphs.from_networkx(graph), True).to_scipy(0)
    tree = nx.from_scipy_sparse_array(made)
    before = nx.single_source_shortest_path_length(graph, 0)
    assert nx.single_source_shortest_path_length(tree, 0) == before
    assert nx.number_connected_components(tree) == nx.number_connected_components(graph)
    square = breadth_first_trees(Graphs.from_networkx(nx.cycle_graph(4)), True).to_scipy(0)
    assert square.sum() == 8  # the node across has two parents that nothing tells apart
    lollipop = (
        breadth_first_trees(Graphs.from_networkx(nx.lollipop_graph(4, 2)), False)
        .to_scipy(0)
        .toarray()
    )
    assert lollipop.sum() == 2 * 5
    assert lollipop[3].sum() == 4  # the root, where the path begins


def test_the_loss_is_symmetric_and_least_for_equal_pairs():
    torch.manual_seed(0)
    a, b = torch.randn(2, 7, 3)
    expected = 0.0
    for first, second in ((a, b), (b, a)):
        for i in range(7):
            sims = [torch.cosine_similarity(first[i], second[j], dim=0) / 0.2 for j in range(7)]
            expected += float(torch.logsumexp(torch.stack(sims), 0) - sims[i]) / 14
    assert float(symmetric_infonce(a, b, 0.2)) == pytest.approx(expected, rel=1e-5)
    assert symmetric_infonce(a, a, 0.2) < symmetric_infonce(a, b, 0.2)
    least = RiemannGFMConfig(temperature=0.025).temperature
    opposite = symmetric_infonce(a[:1].expand(7, -1), -a[:1].expand(7, -1), least)
    assert float(opposite) == pytest.approx(np.log(7), rel=1e-4)  # no weight underflows


def test_trees_of_ego_graphs_grow_from_the_centre():
    network = Graphs.from_networkx(nx.lollipop_graph(6, 5)).with_features(np.eye(11)[:, :2])
    egos = ego_graphs(network, [10, 9])
    config = RiemannGFMConfig.for_domains({"egos": egos}, width=4)
    assert config.root == "centre"
    assert RiemannGFMConfig.for_domains({"whole": network}).root == "degree"
    model = RiemannGFM(config)
    model.prepare({"egos": egos})
    kept = model._inputs["egos"]
    assert np.diff(kept[0].row_ptr.numpy())[0] == np.diff(egos[0].row_ptr.numpy())[0]
    z = model.embed(egos, "centre")
    torch.testing.assert_close(z[:, -2:], network.x[[10, 9]])


@pytest.mark.parametrize(
    "wrong", [{"width": 0}, {"dropout": 1.0}, {"temperature": 0.02}, {"root": "top"}]
)
def test_options_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RiemannGFMConfig(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_chosen_nodes_have_the_same_tokens_as_among_all_nodes(layers):
    graphs = from_dense([nx.to_numpy_array(FAMILIES[name]) for name in ("path", "random", "star")])
    model = RiemannGFM(RiemannGFMConfig(features=1, layers=layers, dropout=0.0))
    batch = Batch.of(graphs)
    trees = Batch.of(model._trees(graphs))
    chosen = torch.zeros(batch.num_nodes, dtype=torch.bool)
    chosen[[3, 40, 77, 200]] = True
    views = model._receptive_fields(batch, trees, chosen)
    assert [view[0].num_nodes for view in views] == sorted(
        (view[0].num_nodes for view in views), reverse=True
    )
    assert layers == 1 or views[-1][0].num_nodes < batch.num_nodes / 4

    def learnt(tokens):
        loss = sum((rows.square() * rows).sum() for rows in tokens)
        return torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)

    few = model._tokens(batch, trees, chosen)
    all_of_them = [rows[chosen] for rows in model._tokens(batch, trees)]
    for a, b in zip(few, all_of_them, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    for a, b in zip(learnt(few), learnt(all_of_them), strict=True):
        if a is None or b is None:  # the projector's
            assert a is b
        else:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4 * float(b.abs().max() + 1))
