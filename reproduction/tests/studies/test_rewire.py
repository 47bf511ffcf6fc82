"""Double-edge swaps: invariants, counts, and that every graph with the degrees is reached."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import awkward, from_dense, random_dense

from artlas_paper.studies.rewire import ATTEMPTS, rewire, swap_edges


def edges_of(graph):
    row = np.repeat(np.arange(graph.num_nodes), graph.row_ptr.diff().numpy())
    both = zip(row.tolist(), graph.col.tolist(), strict=True)
    return {frozenset(pair) for pair in both}


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.3, 0.6, 1.0])
def test_degrees_edges_and_attributes_stay_and_the_graph_is_simple(ratio):
    rng = np.random.default_rng(0)
    graphs = from_dense([*awkward(rng), *(random_dense(n, 0.2, rng) for n in (20, 40, 60))])
    graphs = graphs.with_features(rng.normal(size=(graphs.num_nodes, 2)))
    made = rewire(graphs, ratio, seed=3)
    assert made.graphs.x is graphs.x
    assert made.graphs.num_edges == graphs.num_edges
    for g in range(len(graphs)):
        before, after = graphs.to_scipy(g).toarray(), made.graphs.to_scipy(g).toarray()
        assert (after.sum(1) == before.sum(1)).all()
        assert (after == after.T).all()
        assert not after.diagonal().any()
        assert set(np.unique(after)) <= {0, 1}  # an edge that is there twice would be a 2
        lost = ((before == 1) & (after == 0)).sum() / max(before.sum(), 1)
        assert made.realised[g] == pytest.approx(lost)
        assert made.realised[g] <= 2 * made.swaps[g] / max(before.sum() / 2, 1)
        assert (np.diff(after.nonzero()[0]) >= 0).all()
    col, starts = made.graphs.col.numpy(), made.graphs.row_ptr.numpy()
    for begin, end in itertools.pairwise(starts):
        assert (np.diff(col[begin:end]) > 0).all()
    if ratio == 0:
        assert np.array_equal(col, graphs.col)
        assert not made.realised.any()
    else:
        assert made.realised[-3:].min() > 0
        wanted = np.round(ratio * np.diff(starts[graphs.node_ptr.numpy()]) / 4)
        assert (made.swaps <= wanted).all()
        assert (made.swaps[-3:] == wanted[-3:]).all()


def test_the_same_by_seed_and_further_by_ratio():
    rng = np.random.default_rng(1)
    graphs = from_dense([random_dense(30, 0.2, rng) for _ in range(3)])
    first, again, other = (rewire(graphs, 0.4, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.graphs.col, again.graphs.col)
    assert not np.array_equal(first.graphs.col, other.graphs.col)
    # the chain of a larger ratio passes through what a smaller one gives
    edges = np.array([sorted(edge) for edge in edges_of(graphs[0])])
    few, _ = swap_edges(edges, 3, np.random.default_rng(5))
    more, _ = swap_edges(edges, 4, np.random.default_rng(5))
    assert (few != more).any(1).sum() == 2


@pytest.mark.parametrize(
    "dense",
    [
        np.zeros((1, 1)),
        np.zeros((4, 4)),
        np.ones((6, 6)) - np.eye(6),  # no edge, a clique
        np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]),
        np.array([[0, 1], [1, 0]]),  # stars
    ],
)
def test_where_no_swap_is_possible_nothing_changes(dense):
    graphs = from_dense([dense])
    made = rewire(graphs, 1.0, 0)
    assert np.array_equal(made.graphs.col, graphs.col)
    assert made.realised.tolist() == [0.0]
    assert made.swaps.tolist() == [0]


def test_attempts_are_bounded():
    class Counting:
        drawn = 0

        def integers(self, high, size):
            self.drawn += size[0]
            return np.zeros(size, dtype=np.int64)  # the same edge twice: never a swap

    rng = Counting()
    edges = np.array([[0, 1], [2, 3], [4, 5]])
    found, done = swap_edges(edges, 200, rng)
    assert done == 0
    assert np.array_equal(found, edges)
    assert ATTEMPTS * 200 <= rng.drawn < ATTEMPTS * 200 + 4096


def realisations(degrees):
    """Every simple graph on labelled nodes with these degrees, as sets of edges."""
    nodes = range(len(degrees))
    pairs = list(itertools.combinations(nodes, 2))
    for chosen in itertools.combinations(pairs, sum(degrees) // 2):
        if np.array_equal(np.bincount(np.ravel(chosen), minlength=len(degrees)), degrees):
            yield frozenset(frozenset(pair) for pair in chosen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("degrees", "count"),
    [
        ((1, 1, 1, 1), 3),
        ((2, 2, 2, 2, 2), 12),
        ((2, 2, 2, 2, 2, 2), 70),
        ((3, 2, 2, 2, 1), 6),
        ((3, 3, 2, 2, 2), 7),
    ],
)
def test_every_graph_with_the_same_degrees_is_reached_and_no_other(degrees, count):
    wanted = set(realisations(degrees))
    assert len(wanted) == count
    start = np.array([sorted(edge) for edge in next(realisations(degrees))])
    edges, seen, rng = start, set(), np.random.default_rng(7)
    for _ in range(12 * count):
        edges, _ = swap_edges(edges, 1, rng)
        seen.add(frozenset(frozenset(pair) for pair in edges.tolist()))
    assert seen == wanted


def test_realised_ratio_of_a_sparse_graph_is_what_the_docstring_says():
    graphs = from_dense([np.roll(np.eye(1500), 1, 0) + np.roll(np.eye(1500), -1, 0)])
    for ratio in (0.1, 0.6):
        found = rewire(graphs, ratio, 0).realised[0]
        assert found == pytest.approx(1 - np.exp(-ratio), abs=0.03)


def test_ratios_that_are_none():
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5"):
        rewire(from_dense([np.zeros((2, 2))]), 1.5, 0)
