"""colours and shapes against Weisfeiler-Lehman refinement with dictionaries."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from blocks import block_oracle
from blocks.block_graphs import BOTH, blocks_of, collection, dense, each_kind, matrices
from cases import dense_graphs, from_dense
from hypothesis import given, settings
from hypothesis import strategies as st

from artlas import kernels
from artlas.blocks import VectorConfig, embed, twin

ROOMY = VectorConfig(buckets=1 << 13, rounds=5)  # hardly ever two colours in a bucket
SMALL = [A for A in matrices() if len(A) <= 40]


def labels(A, X, rounds):
    """Labels of every round, for colours and for shapes."""
    first = [()] * len(A) if X is None else block_oracle.first_labels(X)
    shapes = block_oracle.shape_labels(A, first)
    return {
        "colours": block_oracle.refined(A, first, rounds),
        "shapes": block_oracle.refined(A, shapes, rounds),
    }


def same_partition(a, b):
    """Whether two labellings put the same nodes together."""
    pairs = set(zip(a, b, strict=True))
    return len(pairs) == len(set(a)) == len(set(b))


def check(A, X, found, config, g=0):
    for kind, by_round in labels(A, X, config.rounds).items():
        for r, names in enumerate(by_round):
            if kind == "colours" and r == 0:
                assert "colours_0" not in found
                continue
            counts = np.log1p(block_oracle.label_counts(names))
            block = found[f"{kind}_{r}"][g]
            assert block.sum() == pytest.approx(counts.sum(), rel=1e-6)
            assert np.count_nonzero(block) <= len(counts)
            if len(counts) == np.count_nonzero(block):
                np.testing.assert_allclose(np.sort(block[block > 0]), counts, rtol=1e-6)


@each_kind()
def test_buckets_count_the_nodes_of_every_label(kind, which):
    graphs = collection(kind, SMALL)
    with kernels.use(which):
        found = blocks_of(embed(graphs, ROOMY), ROOMY)
    for g, A in enumerate(SMALL):
        check(A, None if graphs.x is None else graphs[g].x.numpy(), found, ROOMY, g)


def test_most_graphs_have_no_two_colours_in_a_bucket():
    """Or the comparison of single counts above would hardly be made."""
    graphs = collection("mixed", SMALL)
    found = blocks_of(embed(graphs, ROOMY), ROOMY)["shapes_4"]
    wanted = [
        len(set(labels(A, graph.x.numpy(), 5)["shapes"][4]))
        for A, graph in zip(SMALL, graphs, strict=True)
    ]
    assert sum(wanted) > 200
    assert np.mean((found > 0).sum(1) == wanted) > 0.8


@settings(max_examples=30, deadline=None)
@given(dense_graphs(most=14), st.sampled_from(["none", "coded", "mixed"]), st.integers(0, 2**31))
def test_any_small_graph(A, kind, seed):
    graphs, config = collection(kind, [A], seed), VectorConfig(rounds=3, buckets=1 << 12)
    X = None if graphs.x is None else graphs.x.numpy()
    check(A, X, blocks_of(embed(graphs, config), config), config)


@pytest.mark.parametrize("kind", ["none", "coded", "mixed", "flags"])
def test_hashed_colours_tell_the_same_nodes_apart_as_a_dictionary(kind):
    graphs = collection(kind, SMALL)
    for A, graph in zip(SMALL, graphs, strict=True):
        X, sparse = None if graph.x is None else graph.x.numpy(), graph.to_scipy(0)
        _, triangles, core = twin.descriptors(sparse.astype(float))
        start = np.zeros(len(A), dtype=np.uint64) if X is None else twin.first_colours(X)
        known = labels(A, X, 5)
        for shapes in (False, True):
            colours = twin.shape_colours(start, triangles, core) if shapes else start
            for r, names in enumerate(known["shapes" if shapes else "colours"]):
                colours = twin.refine(sparse, colours, r) if r else colours
                assert same_partition(colours.tolist(), names)


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize(
    ("row", "other", "alike"),
    [
        ([1, 0, 0], [0, 1, 0], False),  # another flag
        ([1, 0, 1], [1, 0, 0], False),
        ([1, 0, 5], [1, 0, 9], True),  # one count beside flags is no code
        ([1, 4, 5], [1, 4, 9], False),  # two fields above one are
        ([0, 4, 5], [4, 0, 5], False),
        ([1, 4, 5.5], [1, 7, 5.5], True),  # a fraction: no code
        ([1, 4, 128], [1, 7, 128], True),  # too large for a code
        ([1, 4, 127], [1, 7, 127], False),
        ([1, -4, 5], [1, -7, 5], True),
        ([0.5, 0, 0], [-3, 0.25, 0], True),  # no flag at all
        ([0, 0, 0], [0, 0, 0.5], True),
        ([1, 2, 3], [1, 3, 2], False),
    ],
)
def test_what_the_first_colours_tell_apart(row, other, alike, which):
    graphs = from_dense([np.zeros((2, 2))] * 2, x=np.array([row, row, row, other], dtype=float))
    with kernels.use(which):
        found = blocks_of(embed(graphs, ROOMY), ROOMY)["shapes_0"]
    assert np.count_nonzero(found[0]) == 1
    assert found[0].sum() == pytest.approx(np.log(3))
    assert np.array_equal(found[0], found[1]) == alike
    wanted = np.log(3) if alike else 2 * np.log(2)
    assert found[1].sum() == pytest.approx(wanted)


@pytest.mark.parametrize("which", BOTH)
def test_shapes_tell_up_to_three_triangles_and_the_core_number(which):
    """Nodes of books of k triangles: the two in all pages have k triangles, and core number 2."""
    books = [nx.complete_multipartite_graph(1, 1, k) for k in range(1, 6)]
    graphs = from_dense([dense(book) for book in books])
    with kernels.use(which):
        spines = blocks_of(embed(graphs, ROOMY), ROOMY)["shapes_0"]
    pages = int(spines[0].argmax())  # of one triangle each
    rest = [set(np.flatnonzero(row)) - {pages} for row in spines]
    assert rest[0] == set()
    assert rest[1] != rest[2]
    assert rest[2] == rest[3] == rest[4]
    square, tree = from_dense([dense(nx.cycle_graph(4))]), from_dense([dense(nx.path_graph(4))])
    with kernels.use(which):
        cores = [blocks_of(embed(g, ROOMY), ROOMY)["shapes_0"][0] for g in (square, tree)]
    assert cores[0].argmax() != cores[1].argmax()


def test_rounds_hash_differently():
    """On a regular graph no round splits the nodes, and each has another bucket."""
    graphs = from_dense([dense(nx.cycle_graph(6))])
    found = blocks_of(embed(graphs, ROOMY), ROOMY)
    buckets = [int(block[0].argmax()) for name, block in found.items() if name[-2:-1] == "_"]
    assert len(buckets) == 9
    assert len(set(buckets)) == 9
