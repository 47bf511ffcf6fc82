"""Graphs: canonical form, selection, batches."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from raw_graphs import PATH, build, dense, labelled, raw_graphs, same, unhurried

from artlas.errors import GraphError
from artlas.graphs.collection import Graphs

# The canonical form.


@unhurried
@given(raw_graphs())
def test_canonical_form_equals_dense_oracle(pairs):
    graphs = build(pairs)
    assert graphs.node_ptr.dtype == graphs.row_ptr.dtype == torch.int64
    assert graphs.col.dtype == torch.int32
    assert graphs.sizes.tolist() == [n for n, _ in pairs]
    assert graphs.node_ptr.tolist() == np.cumsum([0] + [n for n, _ in pairs]).tolist()
    rows = [
        graphs.col[a:b].tolist()
        for a, b in zip(graphs.row_ptr[:-1].tolist(), graphs.row_ptr[1:].tolist(), strict=True)
    ]
    assert all(row == sorted(set(row)) and i not in row for i, row in enumerate(rows))
    assert all(i in rows[j] for i, row in enumerate(rows) for j in row)
    for g, (n, edge_index) in enumerate(pairs):
        assert np.array_equal(graphs.to_scipy(g).toarray(), dense(n, edge_index))
    whole = np.zeros((graphs.num_nodes, graphs.num_nodes))
    for i, row in enumerate(rows):
        whole[i, row] = 1
    blocks = sp.block_diag([dense(n, e) for n, e in pairs]).toarray()
    assert np.array_equal(whole, blocks)
    assert graphs.num_edges == blocks.sum() / 2
    assert graphs.degree.dtype == torch.float32
    assert np.array_equal(graphs.degree.numpy(), blocks.sum(1))


@unhurried
@given(raw_graphs())
def test_canonical_input_is_kept_and_not_reported(pairs):
    once = build(pairs)
    matrices = [once.to_scipy(g) for g in range(len(once))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(Graphs.from_scipy(matrices, strict=True), once)


def test_star_isolated_and_edgeless_graphs():
    leaves = np.arange(1, 10_001)
    star = np.stack([np.zeros_like(leaves), leaves])
    graphs = Graphs.from_edges([(10_001, np.hstack([star, star[::-1]])), (3, []), (1, [[], []])])
    assert graphs.sizes.tolist() == [10_001, 3, 1]
    assert graphs.degree[0] == 10_000
    assert (graphs.degree[1:10_001] == 1).all()
    assert (graphs.degree[10_001:] == 0).all()
    assert torch.equal(graphs.col[:10_000], torch.arange(1, 10_001, dtype=torch.int32))
    assert graphs[1].num_edges == graphs[2].num_edges == 0
    isolated = Graphs.from_edges((6, [[1, 4], [4, 1]]))
    assert isolated.degree.tolist() == [0, 1, 0, 0, 1, 0]


def test_more_duplicates_than_a_byte_counts():
    graphs = build([(2, np.tile([[0], [1]], 512))])
    assert graphs.num_edges == 1
    assert graphs.col.tolist() == [1, 0]


def test_many_graphs_equal_one_by_one():
    rng = np.random.default_rng(0)
    pairs = [(n, rng.integers(0, n, (2, 2 * n))) for n in rng.integers(1, 20, 2_000).tolist()]
    xs = [rng.normal(size=(n, 3)).astype(np.float32) for n, _ in pairs]
    graphs = build(pairs, x=xs, y=np.arange(2_000))
    singles = [build([p], x=[x], y=[i]) for i, (p, x) in enumerate(zip(pairs, xs, strict=True))]
    assert same(graphs, Graphs.concat(singles))
    assert all(same(a, b) for a, b in zip(graphs, singles, strict=True))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint64, ">i4"])
def test_any_integer_dtype_with_offsets_beyond_it(dtype):
    edge_index = np.array(PATH).astype(dtype)
    graphs = Graphs.from_edges([(300, []), (40_000, []), (3, edge_index)])
    assert graphs.col.tolist() == [40_301, 40_300, 40_302, 40_301]


def test_properties_and_repr():
    graphs = Graphs.from_edges([(3, PATH), (1_000, [])], x=np.zeros((1_003, 2)))
    assert repr(graphs) == "Graphs(2 graphs, 1,003 nodes, 2 edges, 2 features)"
    assert (len(graphs), graphs.num_graphs, graphs.num_nodes) == (2, 2, 1_003)
    assert graphs.degree is graphs.degree
    with pytest.raises(AttributeError):
        graphs.x = None


# Selection.


@unhurried
@given(raw_graphs(), st.booleans(), st.data())
def test_slices_put_together_are_the_original(pairs, per_node, draws):
    graphs = labelled(pairs, per_node)
    cut = draws.draw(st.integers(0, len(graphs)))
    parts = [graphs[s] for s in (slice(cut), slice(cut, None)) if len(range(len(graphs))[s])]
    assert sum(map(len, parts)) == len(graphs)
    assert same(Graphs.concat(parts), graphs)
    assert same(Graphs.concat(list(graphs)), graphs)
    assert same(graphs[:], graphs)


@unhurried
@given(raw_graphs(), st.booleans(), st.data())
def test_index_lists_keep_order_and_repeats(pairs, per_node, draws):
    graphs = labelled(pairs, per_node)
    count = len(graphs)
    ids = draws.draw(st.lists(st.integers(-count, count - 1), min_size=1, max_size=9))
    expected = Graphs.concat([graphs[i] for i in ids])
    assert expected.sizes.tolist() == [pairs[i][0] for i in ids]
    for index in (ids, tuple(ids), np.array(ids), np.array(ids, np.int8), torch.tensor(ids)):
        assert same(graphs[index], expected)
    for g, i in enumerate(ids):
        assert np.array_equal(expected.to_scipy(g).toarray(), dense(*pairs[i]))
        assert torch.equal(expected[g].x, graphs[i].x)
        assert torch.equal(expected[g].y, graphs[i].y)
    mask = np.isin(np.arange(count), np.array(ids) % count)
    for index in (mask, mask.tolist(), torch.tensor(mask)):
        assert same(graphs[index], graphs[np.unique(np.array(ids) % count)])
    assert same(graphs[::-1], graphs[list(range(count))[::-1]])
    assert same(graphs[::2], graphs[list(range(0, count, 2))])


def test_one_graph_by_number():
    graphs = labelled([(3, PATH), (2, [[0, 1], [1, 0]]), (1, [])])
    middle = graphs[1]
    assert middle.node_ptr.tolist() == [0, 2]
    assert middle.row_ptr.tolist() == [0, 1, 2]
    assert middle.col.tolist() == [1, 0]
    assert middle.y.tolist() == [101]
    assert middle.x.tolist() == [[3, 9], [4, 16]]
    assert same(graphs[np.int64(1)], middle)
    assert same(graphs[-2], middle)
    assert same(graphs[torch.tensor(1)], middle)
    assert labelled([(3, PATH), (2, [])], per_node=True)[1].y.tolist() == [103, 104]


@pytest.mark.parametrize("index", [3, -4, [0, 3], [-4], [0.5], "a", None, [True, False], [[0]]])
def test_bad_index(index):
    with pytest.raises(IndexError, match=r"out of range|takes a number"):
        labelled([(1, []), (2, []), (3, [])])[index]


@pytest.mark.parametrize("index", [slice(2, 2), slice(3, 1), [], np.zeros(3, bool), ()])
def test_empty_selection(index):
    with pytest.raises(GraphError, match="the selection has no graph"):
        labelled([(1, []), (2, []), (3, [])])[index]


def test_concat_refuses_what_does_not_fit():
    a = Graphs.from_edges((3, PATH), x=np.ones((3, 2)), y=[1])
    with pytest.raises(GraphError, match=r"feature widths differ; got 2 features.*and 3 in item 1"):
        Graphs.concat([a, a.with_features(np.ones((3, 3)))])
    with pytest.raises(GraphError, match="only some items have x"):
        Graphs.concat([a, a.with_features(None)])
    with pytest.raises(GraphError, match="only some items have y"):
        Graphs.concat([a, a.with_labels(None)])
    with pytest.raises(GraphError, match=r"per graph in some parts.*lengths \[1, 3\]"):
        Graphs.concat([a, a.with_labels([1, 2, 3])])


# Batches.


@unhurried
@given(raw_graphs(max_graphs=12), st.booleans(), st.integers(1, 30))
def test_batches_hold_every_graph_once_within_the_budget(pairs, per_node, budget):
    graphs = labelled(pairs, per_node)
    batches = list(graphs.batches(budget))
    assert all(len(batch) > 0 for batch in batches)
    assert all(batch.num_nodes <= budget or len(batch) == 1 for batch in batches)
    assert same(Graphs.concat(batches), graphs)
    firsts = [batch.sizes[0] for batch in batches[1:]]
    for batch, first in zip(batches, firsts, strict=False):
        assert batch.num_nodes + first > budget


def test_batches_of_known_sizes():
    graphs = Graphs.from_edges([(n, []) for n in (100, 3, 3, 3, 100)])
    assert [b.sizes.tolist() for b in graphs.batches(6)] == [[100], [3, 3], [3], [100]]
    assert [len(b) for b in graphs.batches(np.int64(109))] == [4, 1]


@pytest.mark.parametrize("budget", [0, -1, 2.5, True, None])
def test_bad_budget(budget):
    with pytest.raises(GraphError, match="max_nodes is not a positive integer; got"):
        Graphs.from_edges((3, PATH)).batches(budget)


# Size.


def test_a_slice_of_a_large_collection_touches_only_itself():
    """Slices share x with the original, and copy no more of the rest than they hold."""
    n = 200_000
    ring = np.stack([np.arange(n), np.roll(np.arange(n), 1)])
    graphs = build([(n, ring), (3, PATH), (n, ring)], x=np.zeros((2 * n + 3, 1)))
    part = graphs[1]
    assert part.x.untyped_storage().data_ptr() == graphs.x.untyped_storage().data_ptr()
    for tensor in (part.node_ptr, part.row_ptr, part.col):
        assert tensor.untyped_storage().nbytes() <= 8 * 4


def test_a_selection_is_pickled_without_the_rest():
    n = 4000
    whole = Graphs.from_edges([(3, PATH)] * n, x=np.arange(6 * n).reshape(-1, 2), y=np.arange(n))
    part = whole[5:7]
    data = pickle.dumps(part)
    assert len(data) < 10_000 < 8 * n
    again = pickle.loads(data)
    for name in ("node_ptr", "row_ptr", "col", "x", "y"):
        assert torch.equal(getattr(again, name), getattr(part, name))
    assert part.x.data_ptr() == whole.x[15:].data_ptr()  # the selection itself is still a view
