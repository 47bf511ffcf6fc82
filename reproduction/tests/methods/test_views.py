"""Augmented views: what they change and keep, graph by graph."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from cases import awkward, from_dense, random_dense, star

from artlas_paper.methods.batch import Batch
from artlas_paper.methods.views import (
    augment,
    check_views,
    drop_nodes,
    mask_features,
    perturb_edges,
    subgraph,
)

NAMES = ("drop_nodes", "perturb_edges", "mask_features", "subgraph")


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    graphs = from_dense([*awkward(rng), random_dense(60, 0.3, rng)])
    torch.manual_seed(0)
    return Batch.of(graphs.with_features(torch.arange(graphs.num_nodes)[:, None].float()))


def dense(batch):
    made = torch.zeros(batch.num_nodes, batch.num_nodes)
    made.index_put_(tuple(batch.edge_index), torch.ones(()), accumulate=True)
    return made


def identities(batch):
    return batch.x[:, 0].long()


@pytest.mark.parametrize("name", NAMES)
def test_a_view_is_a_batch_of_simple_graphs(batch, name):
    before = batch.x.clone(), batch.col.clone()
    view = augment(batch, name, 0.2)
    a = dense(view)
    assert torch.equal(a, a.T)
    assert a.max() <= 1
    assert a.diagonal().sum() == 0
    assert torch.equal(view.graph_of[view.row], view.graph_of[view.col.long()])
    assert (view.sizes >= 1).all()
    assert view.num_graphs == batch.num_graphs
    key = view.row * view.num_nodes + view.col
    assert (key.diff() > 0).all()
    assert torch.equal(before[0], batch.x)
    assert torch.equal(before[1], batch.col)


@pytest.mark.parametrize("name", NAMES)
def test_views_follow_the_generator(batch, name):
    views = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        view = augment(batch, name, 0.5)
        views.append((view.x, view.col))
    for part in (0, 1):
        assert torch.equal(views[0][part], views[1][part])
    assert any(not torch.equal(views[0][part], views[2][part]) for part in (0, 1))


def test_dropped_nodes_leave_induced_subgraphs(batch):
    view = drop_nodes(batch, 0.2)
    assert torch.equal(view.sizes, batch.sizes - (batch.sizes * 0.2).long())
    left = identities(view)
    assert torch.equal(dense(view), dense(batch)[left][:, left])
    assert torch.equal(view.graph_of, batch.graph_of[left])


def test_every_node_is_dropped_as_often():
    batch = Batch.of(
        from_dense([star(9)] * 200).with_features(np.tile(np.arange(10), 200)[:, None])
    )
    torch.manual_seed(0)
    dropped = 200 - identities(drop_nodes(batch, 0.3)).bincount(minlength=10)
    assert dropped.sum() == 600
    assert ((dropped - 60).abs() < 30).all()


def test_masked_features_are_the_mean_of_their_graph(batch):
    view = mask_features(batch, 0.3)
    changed = view.x != batch.x
    mean = batch.mean_pool(batch.x)[batch.graph_of]
    assert torch.equal(view.x[changed], mean[changed])
    assert torch.equal(view.col, batch.col)
    counts = batch.sum_pool(changed.float())[:, 0]
    wanted = (batch.sizes * 0.3).long()
    assert (counts <= wanted).all()
    assert (counts >= wanted - 1).all()  # a node may have the mean already


def test_perturbed_edges_are_gone_or_new(batch):
    view = perturb_edges(batch, 0.2)
    old, new = dense(batch), dense(view)
    lost, added = float((old * (1 - new)).sum()), float(((1 - old) * new).sum())
    assert 0.1 * float(old.sum()) < lost < 0.3 * float(old.sum())
    assert 0.3 * lost < added < 1.2 * lost
    assert torch.equal(view.x, batch.x)
    empty = Batch.of(from_dense([np.zeros((4, 4))]))
    assert len(perturb_edges(empty, 0.5).col) == 0
    full = Batch.of(from_dense([random_dense(9, 1.0, np.random.default_rng(0))]))
    assert len(perturb_edges(full, 0.5).col) < len(full.col)  # what went does not come back


def test_subgraphs_are_connected_and_of_their_size(batch):
    from scipy.sparse.csgraph import connected_components

    whole = dense(batch).numpy()
    parts = connected_components(whole)[1]
    for share in (0.2, 0.8):
        view = subgraph(batch, share)
        left = identities(view)
        assert torch.equal(dense(view), dense(batch)[left][:, left])
        assert connected_components(dense(view).numpy())[0] == batch.num_graphs
        for g, own in enumerate(left.split(view.sizes.tolist())):
            limit = min(int(batch.sizes[g] * share) + 1, int(batch.sizes[g]))
            component = int((parts == parts[int(own[0])]).sum())
            assert len(own) == min(limit, component)


def test_a_subgraph_grows_by_uniform_neighbours_of_all_it_has():
    """Against the process as it is written, on a path with a branch: beyond the first hop too."""
    a = np.zeros((6, 6))
    for u, v in ((0, 1), (1, 2), (2, 3), (2, 4), (4, 5)):
        a[u, v] = a[v, u] = 1
    rng, naive, trials = np.random.default_rng(0), Counter(), 4000
    for _ in range(trials):
        own = {int(rng.integers(6))}
        while len(own) < 4:
            own.add(
                int(rng.choice([v for v in range(6) if v not in own and a[v, list(own)].any()]))
            )
        naive[tuple(sorted(own))] += 1
    torch.manual_seed(1)
    batch = Batch.of(from_dense([a] * trials).with_features(np.tile(np.arange(6), trials)[:, None]))
    view = subgraph(batch, 0.5)
    found = Counter(tuple(own.tolist()) for own in identities(view).split(view.sizes.tolist()))
    assert set(found) == set(naive)
    for part, count in naive.items():
        assert abs(found[part] - count) < 5 * (2 * count) ** 0.5


@pytest.mark.parametrize(("views", "ratio"), [(("drop",), 0.2), ((), 0.0), ((), 1.0), ((), True)])
def test_options_are_checked(views, ratio):
    with pytest.raises(ValueError, match=r"Owner\.(views|ratio)"):
        check_views("Owner", views, ratio)
