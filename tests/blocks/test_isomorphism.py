"""What vectors of blocks must not tell apart, and what they must."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from blocks.block_graphs import BOTH, blocks_of, collection, dense, each_kind, matrices
from cases import dense_graphs, from_dense
from hypothesis import given, settings
from hypothesis import strategies as st

from artlas import Graphs, kernels
from artlas.blocks import embed, layout

EXACT = ("colours", "shapes")


def compare(a, b, preset="full", close=2e-5):
    """Assert that vectors are equal: colours and shapes in every bit, all else to rounding."""
    for name, columns in layout(preset):
        one, other = a[:, columns].double().numpy(), b[:, columns].double().numpy()
        if name.startswith(EXACT):
            np.testing.assert_array_equal(one, other, err_msg=name)
        else:
            atol = 5 * close if preset == "compact" else close  # of up to 256 columns' sums
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=atol, err_msg=name)


@each_kind("huge")
@pytest.mark.parametrize("preset", ["full", "compact"])
def test_the_order_of_nodes_does_not_matter(kind, preset, which):
    graphs, rng = collection(kind), np.random.default_rng(5)
    turned, rows = [], []
    for A, graph in zip(matrices(), graphs, strict=True):
        order = rng.permutation(len(A))
        turned.append(A[order][:, order])
        rows.append(None if graph.x is None else graph.x.numpy()[order])
    turned = from_dense(turned, x=None if graphs.x is None else rows)
    with kernels.use(which):
        compare(embed(graphs, preset), embed(turned, preset), preset)


@settings(max_examples=30, deadline=None)
@given(dense_graphs(), st.sampled_from(["none", "coded", "real"]), st.integers(0, 2**31))
def test_isomorphic_graphs_are_equal(A, kind, seed):
    graphs = collection(kind, [A], seed)
    order = np.random.default_rng(seed).permutation(len(A))
    x = None if graphs.x is None else graphs.x.numpy()[order]
    compare(embed(graphs), embed(from_dense([A[order][:, order]], x=x)))


@pytest.mark.parametrize("which", BOTH)
def test_two_triangles_and_a_hexagon(which):
    """Refinement cannot tell them apart; triangles and returns of walks can."""
    triangle = nx.complete_graph(3)
    pair = [nx.disjoint_union(triangle, triangle), nx.cycle_graph(6)]
    graphs = from_dense([dense(graph) for graph in pair])
    with kernels.use(which):
        found = blocks_of(embed(graphs))
    differs = {name for name, (a, b) in found.items() if not np.array_equal(a, b)}
    for r in range(1, 4):
        assert f"colours_{r}" not in differs
        assert np.count_nonzero(found[f"colours_{r}"][0]) == 1
    assert differs >= {"quantiles", "waves", "shapes_0", "shapes_1", "shapes_3"}
    degrees = slice(0, 24)  # their own, and means and sums of their neighbours'
    np.testing.assert_array_equal(*found["quantiles"][:, degrees])


@pytest.mark.parametrize("which", BOTH)
def test_regular_graphs_that_only_walks_of_four_steps_tell_apart(which):
    """A cube and Wagner's graph: eight nodes of degree 3, no triangle, unequal squares."""
    pair = [nx.cubical_graph(), nx.circulant_graph(8, [1, 4])]
    assert not any(sum(nx.triangles(graph).values()) for graph in pair)
    graphs = from_dense([dense(graph) for graph in pair])
    with kernels.use(which):
        found = blocks_of(embed(graphs))
    four = slice(64, 72)
    assert layout().columns[four][0] == "quantiles_return_4_0"
    apart = np.abs(np.subtract(*found["quantiles"]))
    assert apart[four].min() > 0.01
    assert np.delete(apart, four).max() < 1e-6
    for r in range(4):
        np.testing.assert_array_equal(*found[f"shapes_{r}"])


def strongly_regular():
    """The rook's graph of a 4 x 4 board and Shrikhande's graph: both srg(16, 6, 2, 2)."""
    rook = nx.line_graph(nx.complete_bipartite_graph(4, 4))
    steps = [(0, 1), (1, 0), (1, 1)]
    cells = [(i, j) for i in range(4) for j in range(4)]
    edges = [((i, j), ((i + a) % 4, (j + b) % 4)) for i, j in cells for a, b in steps]
    return rook, nx.Graph(edges)


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("preset", ["full", "compact"])
def test_a_strongly_regular_pair_stays_equal(preset, which):
    """All that the blocks know of a node is given by n, degree and common neighbours."""
    pair = strongly_regular()
    assert not nx.is_isomorphic(*pair)
    a, b = (from_dense([dense(graph)]) for graph in pair)
    with kernels.use(which):
        compare(embed(a, preset), embed(b, preset), preset, 1e-6)


@pytest.mark.parametrize("preset", ["full", "compact"])
def test_marked_nodes_tell_a_strongly_regular_pair_apart(preset):
    """Four nodes joined by six edges are in the rook's graph; Shrikhande's has five at most."""
    marked = []
    for graph in strongly_regular():
        A = dense(graph)
        edges, four = max(
            (int(A[np.ix_(nodes, nodes)].sum()) // 2, nodes)
            for nodes in itertools.combinations(range(16), 4)
        )
        x = np.zeros((16, 1))
        x[list(four)] = 1
        marked.append((edges, from_dense([A], x=x)))
    assert [edges for edges, _ in marked] == [6, 5]
    a, b = (blocks_of(embed(part, preset), preset) for _, part in marked)
    np.testing.assert_allclose(a["quantiles"], b["quantiles"], atol=1e-6)
    np.testing.assert_array_equal(a["shapes_0"], b["shapes_0"])
    for name in ("colours_1", "shapes_1", "waves"):
        assert np.abs(a[name] - b[name]).max() > 0.01


@pytest.mark.parametrize("which", BOTH)
def test_the_number_of_rounds_is_the_distance_that_colours_see(which):
    """On a path, a round tells the nodes one step further from an end apart."""
    plain = from_dense([dense(nx.path_graph(n)) for n in (9, 10)])
    with kernels.use(which):
        found = blocks_of(embed(plain))
    kinds = {r: [np.count_nonzero(row) for row in found[f"colours_{r}"]] for r in (1, 2, 3)}
    assert kinds == {1: [2, 2], 2: [3, 3], 3: [4, 4]}
    short = from_dense([dense(nx.path_graph(5))])
    with kernels.use(which):
        few = blocks_of(embed(short))
    assert [np.count_nonzero(few[f"colours_{r}"]) for r in (1, 2, 3)] == [2, 3, 3]


def test_one_vector_depends_on_one_graph():
    """No statistics of the others: any company leaves it alone, whatever that holds."""
    graph = collection("real", [matrices()[7]])
    others = [collection("huge", [A]) for A in matrices()[3:6]]
    others = [part.with_features(np.full((part.num_nodes, 3), 1e30)) for part in others]
    with kernels.use("twin"):
        assert embed(Graphs.concat([*others, graph]))[-1].equal(embed(graph)[0])
