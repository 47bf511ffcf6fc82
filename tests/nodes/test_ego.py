"""Ego-graphs: scores against exact PageRank, order of nodes, limits, selection and files."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import random_dense, star

import artlas
from artlas import PprConfig, ego_graphs, kernels
from artlas.nodes.ego import CHUNK

BOTH = ["native", "twin"] if kernels.available() else ["twin"]


def network(matrix, **more):
    return artlas.Graphs.from_scipy([np.asarray(matrix, dtype=float)], **more)


def exact(matrix, restart, lazy=False):
    """Row c is the personalised PageRank of c; a walk at an isolated node stays there."""
    A = np.asarray(matrix, dtype=float)
    degree = A.sum(0)
    walk = np.where(degree > 0, A / np.maximum(degree, 1), np.eye(len(A)))  # column-stochastic
    if lazy:
        walk = (walk + np.eye(len(A))) / 2
    return restart * np.linalg.inv(np.eye(len(A)) - (1 - restart) * walk).T


def dense_scores(egos):
    out = np.zeros((len(egos), egos.graph.num_nodes))
    for row, (begin, end) in enumerate(zip(egos.node_ptr[:-1], egos.node_ptr[1:], strict=True)):
        out[row, egos.nodes[begin:end]] = egos.scores[begin:end]
    return out


def same(a, b):
    names = ("centres", "node_ptr", "nodes", "scores", "pushes", "positive", "stopped")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("lazy", [False, True])
def test_scores_are_within_the_guarantee_of_exact_pagerank_on_50_graphs(lazy):
    rng = np.random.default_rng(0)
    far = 0.0
    for i in range(50):
        n = int(rng.integers(2, 120))
        matrix = random_dense(n, float(rng.choice([0.02, 0.1, 0.4])), rng)
        threshold = float(rng.choice([1e-2, 1e-3, 1e-4]))
        config = PprConfig(threshold=threshold, most_nodes=n, lazy=lazy)
        egos = ego_graphs(network(matrix), config=config)
        bound = threshold * np.maximum(matrix.sum(0), 1) + 1e-6
        difference = np.abs(dense_scores(egos) - exact(matrix, 0.15, lazy))
        assert (difference <= bound).all(), i
        far = max(far, float((difference / bound).max()))
    assert far > 0.05  # the pushes stop where they may: the bound is not met by idling


def test_lazy_walk_is_a_walk_with_another_restart():
    matrix = random_dense(60, 0.1, np.random.default_rng(3))
    np.testing.assert_allclose(exact(matrix, 0.15, lazy=True), exact(matrix, 0.3 / 1.15))


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(5)
    matrix = random_dense(700, 0.01, rng)
    matrix[650:] = matrix[:, 650:] = False
    return network(matrix, x=rng.random((700, 3)), y=rng.integers(0, 4, 700))


@pytest.mark.slow
@pytest.mark.skipif(not kernels.available(), reason="no compiled kernels in this install")
@pytest.mark.parametrize("config", [PprConfig(), PprConfig(most_nodes=9), PprConfig.released()])
def test_compiled_and_plain_push_agree_to_the_bit(graph, config):
    centres = np.arange(0, graph.num_nodes, 6)
    found = ego_graphs(graph, centres, config)
    with kernels.use("twin"):
        plain = ego_graphs(graph, centres, config)
        cut = plain[::7]
    assert same(found, plain)
    for name in ("node_ptr", "row_ptr", "col", "x", "y", "ids"):
        assert np.array_equal(getattr(found[::7], name), getattr(cut, name)), name


def test_threads_and_order_of_centres_change_no_bits(graph):
    centres, threads = np.arange(graph.num_nodes), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one, alone = ego_graphs(graph, centres), ego_graphs(graph, [int(centres[3])])
        batch_one = one[:50]
        torch.set_num_threads(2)
        two, back = ego_graphs(graph, centres), ego_graphs(graph, centres[::-1])
        batch_two = two[:50]
    finally:
        torch.set_num_threads(threads)
    assert len(centres) > CHUNK  # more than one call is made
    assert same(one, two)
    assert same(one, back.select(slice(None, None, -1)))
    assert same(one.select(3), alone)
    assert torch.equal(batch_one.col, batch_two.col)
    assert torch.equal(batch_one.row_ptr, batch_two.row_ptr)


@pytest.mark.parametrize("which", BOTH)
def test_order_is_centre_then_score_then_id(which):
    with kernels.use(which):
        egos = ego_graphs(network(star(9)), [4, 0], PprConfig(most_nodes=5))
    assert egos.nodes.tolist() == [4, 0, 1, 2, 3, 0, 1, 2, 3, 4]  # leaves tie: lowest ids
    assert egos.positive.tolist() == [10, 10]
    assert "2 were cut to 5 nodes" in egos.summary


@pytest.mark.parametrize("which", BOTH)
def test_the_centre_stays_even_where_others_score_higher(which):
    hub = star(30)
    with kernels.use(which):
        egos = ego_graphs(network(hub), [7], PprConfig(restart=0.01, most_nodes=1))
    assert egos.nodes.tolist() == [7]


@pytest.mark.parametrize("which", BOTH)
def test_isolated_centre_is_alone_with_score_one(which, graph):
    with kernels.use(which):
        egos = ego_graphs(graph, [699])
    assert egos.nodes.tolist() == [699]
    assert egos.scores.tolist() == [1.0]
    assert egos[0].num_edges == 0


@pytest.mark.parametrize("which", BOTH)
def test_the_limit_of_pushes_is_respected_and_reported(which, graph):
    with kernels.use(which):
        egos = ego_graphs(graph, [0, 699], PprConfig(most_pushes=5))
    assert egos.pushes.tolist() == [5, 1]
    assert egos.stopped.tolist() == [True, False]
    assert "1 stopped at 5 pushes" in egos.summary


def test_filled_up_with_nodes_of_score_zero(graph):
    egos = ego_graphs(graph, [0, 660], PprConfig(fill=True))
    assert np.diff(egos.node_ptr).tolist() == [400, 400]
    own = egos.nodes[egos.node_ptr[1] :]
    assert own.tolist() == [660, *range(399)]
    assert egos.scores[egos.node_ptr[1] :].tolist() == [1.0] + 399 * [0.0]
    assert len(set(egos.nodes[:400].tolist())) == 400


@pytest.mark.parametrize("which", BOTH)
def test_batches_are_the_induced_subgraphs(which, graph):
    egos = ego_graphs(graph, np.arange(0, 700, 9), PprConfig(most_nodes=60))
    whole = graph.to_scipy(0)
    with kernels.use(which):
        batch = egos[:]
        parts = list(egos.batches(max_nodes=200))
    assert len(batch) == len(egos)
    assert max(p.num_nodes for p in parts) <= 200
    assert sum(len(p) for p in parts) == len(egos)
    for g in range(0, len(egos), 5):
        nodes = egos.nodes[egos.node_ptr[g] : egos.node_ptr[g + 1]]
        wanted = whole[nodes][:, nodes].toarray()
        np.testing.assert_array_equal(batch.to_scipy(g).toarray(), wanted)
        one = batch[g]
        np.testing.assert_array_equal(one.ids, nodes)
        assert torch.equal(one.x, graph.x[nodes.astype(np.int64)])
        rows = [one.col[a:b].tolist() for a, b in zip(one.row_ptr, one.row_ptr[1:], strict=False)]
        assert all(row == sorted(row) for row in rows)
    assert torch.equal(batch.y, graph.y[egos.centres])


@pytest.mark.parametrize("which", BOTH)
def test_neighbours_of_hubs_are_found_by_search(which):
    """A hub 0 with leaves 1..5000 that form a path: its row is far longer than the ego-graph."""
    leaves = np.arange(1, 5001)
    spokes, path = np.stack([0 * leaves, leaves]), np.stack([leaves[:-1], leaves[1:]])
    once = np.concatenate([spokes, path], axis=1)
    graph = artlas.Graphs.from_edges([(5001, np.concatenate([once, once[::-1]], axis=1))])
    egos = ego_graphs(graph, [3000, 0, 5000], PprConfig(most_nodes=12))
    with kernels.use(which):
        batch = egos[:]
    whole = graph.to_scipy(0)
    for g in range(3):
        nodes = egos.nodes[egos.node_ptr[g] : egos.node_ptr[g + 1]]
        assert 0 in nodes
        assert len(nodes) == 12
        wanted = whole[nodes][:, nodes].toarray()
        np.testing.assert_array_equal(batch.to_scipy(g).toarray(), wanted)


def test_selection(graph):
    egos = ego_graphs(graph, [5, 9, 2])
    mask = np.array([True, False, True])
    for index, wanted in ((1, [9]), (-1, [2]), (mask, [5, 2]), ([2, 2, 0], [2, 2, 5])):
        assert egos.select(index).centres.tolist() == wanted
    assert egos[torch.tensor([2, 0])].y.tolist() == graph.y[[2, 5]].tolist()
    with pytest.raises(artlas.GraphError, match="no ego-graph"):
        egos[[]]
    with pytest.raises(IndexError):
        egos[3]


def test_centres_by_name():
    graph = artlas.Graphs(
        *(getattr(network(star(3)), n) for n in ("node_ptr", "row_ptr", "col")),
        ids=np.array(["hub", "a", "b", "c"], dtype=object),
    )
    egos = ego_graphs(graph, ["b", "hub"])
    assert egos.centres.tolist() == [2, 0]
    assert egos[0].ids.tolist() == ["b", "hub", "a", "c"]
    assert ego_graphs(graph, "c").centres.tolist() == [3]
    with pytest.raises(artlas.GraphError, match="'zoe'"):
        ego_graphs(graph, ["a", "zoe"])


@pytest.mark.parametrize(
    ("centres", "message"),
    [
        ([700], "700 with 700 nodes"),
        ([-1], "-1 with 700 nodes"),
        ([], "no centres"),
        ([0.5], "not node numbers"),
        ([True, False], "not a mask"),
        (["a"], "no ids"),
    ],
)
def test_bad_centres(graph, centres, message):
    with pytest.raises(artlas.GraphError, match=message):
        ego_graphs(graph, centres)


def test_bad_graph_and_config():
    with pytest.raises(artlas.GraphError, match="one network"):
        ego_graphs(artlas.Graphs.concat([network(star(3)), network(star(4))]))
    for name, value in (
        ("restart", 0),
        ("restart", 1.0),
        ("threshold", -1),
        ("most_nodes", 0),
        ("most_pushes", 1.5),
    ):
        with pytest.raises(artlas.GraphError, match=name):
            PprConfig(**{name: value})


def test_progress_counts_to_the_end(graph):
    seen = []
    ego_graphs(graph, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(CHUNK, 700), (700, 700)]


def test_a_forked_child_gets_the_same(graph):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert same(pool.apply(ego_graphs, (graph, [1, 2, 3])), ego_graphs(graph, [1, 2, 3]))


def test_nodes_are_embedded_in_batches(graph, monkeypatch):
    egos, model = ego_graphs(graph, np.arange(40)), artlas.ART()
    whole = egos[:]
    wanted, aligned = model.embed(whole, "paper"), model.align(whole)
    monkeypatch.setattr("artlas.nodes.ego.EgoGraphs.batches.__defaults__", (700,))
    assert torch.equal(model.embed(egos, "paper"), wanted)
    assert torch.equal(model.embed(egos, "coordinates"), aligned.coordinates)
    found = model.align(egos)
    assert torch.equal(found.energies, aligned.energies)
    assert torch.equal(found.gain, aligned.gain)
    assert torch.equal(found.couplings(3), aligned.couplings(3))


def test_ego_graph_of_a_named_node_from_a_file(tmp_path):
    path = Path(tmp_path / "friends.csv")
    path.write_text("source,target\nann,bob\nbob,cid\ncid,ann\ncid,dan\n")
    friends = artlas.read(path, verbose=False)
    circle = artlas.ego_graphs(friends, ["dan"])[0]
    assert circle.ids.tolist()[:2] == ["dan", "cid"]
    assert sorted(circle.ids[2:]) == ["ann", "bob"]
    assert circle.num_edges == 4
