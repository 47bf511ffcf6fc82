"""Joining nodes that no coupling can tell apart changes nothing but the work."""

import networkx as nx
import numpy as np
import pytest
import torch
from cases import awkward, dense_graphs, from_dense, random_dense, sharpened, star
from hypothesis import given, settings

from artlas import ART, ArtConfig, Graphs, kernels
from artlas.graphs.measure import prepare_structure
from artlas.kernels import native

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiled kernels")


def joined(graphs, rounds=2):
    return native.join_alike_nodes(prepare_structure(graphs, 1e-8), rounds)


def naive_classes(matrix, rounds):
    """Colour refinement by the book: sorted multisets, no hashes."""
    colours = [int(row.sum()) for row in matrix]
    for _ in range(rounds):
        seen = {}
        colours = [
            seen.setdefault((c, tuple(sorted(colours[j] for j in np.flatnonzero(row)))), len(seen))
            for c, row in zip(colours, matrix, strict=True)
        ]
    return colours


@settings(max_examples=200, deadline=None)
@given(dense_graphs(most=20))
def test_classes_are_those_of_colour_refinement(matrix):
    for rounds in (1, 2, 3):
        found = joined(from_dense([matrix]), rounds)
        naive = naive_classes(matrix, rounds)
        if found.classes is None:  # it would hardly have shrunk
            assert len(matrix) < 4 or len(set(naive)) > 0.8 * len(matrix)
            continue
        pairs = set(zip(found.classes.class_of.tolist(), naive, strict=True))
        assert len(pairs) == len(set(naive)) == found.num_nodes


def test_the_quotient_keeps_measure_edges_and_degrees():
    dense = [*awkward(np.random.default_rng(0)), star(30)]
    graphs = from_dense(dense)
    plain, small = prepare_structure(graphs, 1e-8), joined(graphs)
    classes = small.classes
    assert small.num_nodes < plain.num_nodes
    assert classes.count.sum() == plain.num_nodes
    assert classes.sizes.tolist() == [len(matrix) for matrix in dense]
    total = torch.zeros(small.num_nodes).index_add(0, classes.class_of, plain.measure)
    assert (small.measure - total).abs().max() < 1e-6
    assert torch.equal(classes.degree[classes.class_of], plain.degree.float())
    assert (small.self_energy - plain.self_energy).abs().max() < 1e-7
    # entries: edges between two classes over the product of their counts, symmetric
    A = torch.block_diag(*(torch.from_numpy(m).double() for m in dense))
    P = torch.nn.functional.one_hot(classes.class_of, small.num_nodes).double()
    count = classes.count.double()
    exact = P.T @ A @ P / (count[:, None] * count)
    found = torch.zeros_like(exact)
    rows = torch.repeat_interleave(torch.arange(small.num_nodes), small.row_ptr.diff())
    found[rows, small.col.long()] = classes.weight.double()
    assert (found - exact).abs().max() < 1e-6


@pytest.mark.parametrize("factor", [1.0, 60.0, 1000.0])
def test_results_and_gradients_are_the_twins(factor):
    """The twin never joins nodes."""
    rng = np.random.default_rng(1)
    cliques = nx.to_numpy_array(nx.ring_of_cliques(6, 5)) > 0
    dense = [star(40), cliques, random_dense(12, 1.0, rng), random_dense(30, 0.2, rng)]
    graphs = from_dense(dense, x=rng.standard_normal((sum(map(len, dense)), 3)))
    model = sharpened(factor=factor)
    assert model.prepare(graphs).num_nodes < 0.6 * graphs.num_nodes
    found = []
    for which in ("native", "twin"):
        with kernels.use(which):
            model.zero_grad()
            model(graphs).backward()
            grads = {n: p.grad.clone() for n, p in model.named_parameters()}
            a = model.align(graphs)
            couplings = [a.couplings(g) for g in range(len(graphs))]
            parts = (
                a.energies,
                model.embed(graphs, "paper"),
                model.mixtures(graphs),
                a.gain,
                *couplings,
            )
            found.append((grads, parts))
    (g1, p1), (g2, p2) = found
    for one, other in zip(p1, p2, strict=True):
        assert one.shape == other.shape
        assert (one - other).abs().max() < 2e-4 * max(1.0, other.abs().max().item())
    overall = max(g.abs().max() for g in g2.values())
    for name in ("atlas.logits", "node_projection.weight", "encoder.layers.0.inner.weight"):
        difference = (g1[name] - g2[name]).abs().max()
        assert difference < 5e-3 * g2[name].abs().max() + 1e-4 * overall, name


def test_as_many_rounds_as_layers():
    """With three layers, nodes that differ at distance three must stay apart."""
    path = nx.to_numpy_array(nx.path_graph(12)) > 0
    graphs = from_dense([path])
    assert joined(graphs, 1).num_nodes == 3  # ends, their neighbours, the rest
    assert joined(graphs, 2).num_nodes == 4
    assert joined(graphs, 3).num_nodes == 5
    model = ART(ArtConfig(layers=3))
    assert model.prepare(graphs).num_nodes == 5
    native_energies = model.align(graphs).energies
    with kernels.use("twin"):
        assert (model.align(graphs).energies - native_energies).abs().max() < 1e-6


def test_graphs_that_hardly_shrink_are_left_alone():
    graph = random_dense(200, 0.1, np.random.default_rng(2))
    assert joined(from_dense([graph])).classes is None
    both = joined(from_dense([graph, star(20)]))
    assert both.num_nodes == 200 + 2
    assert both.node_ptr.tolist() == [0, 200, 202]
    alone = Graphs.concat([from_dense([graph])])
    model = sharpened()
    together = model.align(from_dense([graph, star(20)])).energies
    assert torch.equal(model.align(alone).energies[0], together[0])


def test_the_twin_refuses_joined_nodes():
    """It would not weigh them, and be wrong without a word."""
    small = joined(from_dense([star(20)]))
    model = ART()
    nodes, roles, relations = model._projected(small)
    options = {"scale": 1.0, "clamp": None, "steps": 3}
    for call in (
        lambda: kernels.torch_twin.energies(nodes, roles, relations, small, **options),
        lambda: kernels.torch_twin.neighbour_sum(nodes, small),
    ):
        with pytest.raises(ValueError, match="only the compiled kernels read"):
            call()
    with pytest.raises(ValueError, match="alike nodes are joined for float32 on the CPU"):
        small.to(dtype=torch.float64)
