"""Batches of graphs: sums, propagation, selection and gradients against dense computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense
from torch_geometric.nn import GATConv, GCNConv, GINConv

from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import GATLayer, GCNLayer, GINLayer
from artlas_paper.methods.shared_features import SharedFeatures, map_nodes


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    graphs = from_dense([random_dense(n, 0.4, rng) for n in (7, 1, 12)])
    return Batch.of(graphs.with_features(rng.normal(size=(20, 3))))


def dense(batch):
    made = torch.zeros(batch.num_nodes, batch.num_nodes)
    made[tuple(batch.edge_index)] = 1
    return made


def test_sums_over_neighbours_and_graphs_with_their_gradients(batch):
    a, x = dense(batch), batch.x.clone().requires_grad_()
    weight = torch.randn(20, 3)
    member = torch.nn.functional.one_hot(batch.graph_of, 3).float()
    for found, wanted in (
        (batch.neighbour_sums(x), a @ x),
        (batch.sum_pool(x), member.T @ x),
        (batch.mean_pool(x), member.T @ x / member.sum(0)[:, None]),
    ):
        torch.testing.assert_close(found, wanted)
        own = weight[: len(found)]
        one = torch.autograd.grad((found * own).sum(), x)[0]
        torch.testing.assert_close(one, torch.autograd.grad((wanted * own).sum(), x)[0])


def test_means_of_features_whether_shared_or_learnt(batch):
    rows = torch.arange(20) % 7
    for table in (batch.x[:7], batch.x[:7].clone().requires_grad_()):
        shared = batch.with_features(SharedFeatures(table, rows))
        torch.testing.assert_close(shared.mean_features(), batch.mean_pool(table[rows]))
    grad = torch.autograd.grad(shared.mean_features().sum(), table)[0]
    assert grad.any()


def test_layers_are_those_of_pytorch_geometric(batch):
    torch.manual_seed(0)
    gcn, plain = GCNLayer(3, 5), GCNConv(3, 5)
    plain.load_state_dict(gcn.state_dict())
    torch.testing.assert_close(gcn(batch.x, batch), plain(batch.x, batch.edge_index))
    inner = torch.nn.Linear(3, 5)
    gin, plain = GINLayer(inner, eps=0.3), GINConv(inner, eps=0.3)
    torch.testing.assert_close(gin(batch.x, batch), plain(batch.x, batch.edge_index))


@pytest.mark.parametrize("size", [1.0, 1e4])  # of features: exp(1e4) is no number
@pytest.mark.parametrize("heads", [1, 4])
def test_attention_and_its_gradients_are_those_of_pytorch_geometric(batch, size, heads):
    torch.manual_seed(0)
    layer, plain = (kind(3, 5, heads).double() for kind in (GATLayer, GATConv))
    torch.nn.init.normal_(layer.bias)
    plain.load_state_dict(layer.state_dict())
    x = (size * batch.x.double()).requires_grad_()
    found, wanted = layer(x, batch), plain(x, batch.edge_index)
    torch.testing.assert_close(found, wanted)
    weight = torch.randn_like(found)
    one = torch.autograd.grad((found * weight).sum(), [x, *layer.parameters()])
    other = torch.autograd.grad((wanted * weight).sum(), [x, *plain.parameters()])
    lost = 1e-14 * (1 + size**2)  # terms of the square of the size cancel
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=lost)


def test_removing_entries_or_nodes(batch):
    a = dense(batch)
    kept = batch.edge_uniforms(5) < 0.6
    fewer = batch.keep_entries(kept)
    expected = torch.zeros_like(a)
    expected[batch.row[kept], batch.col[kept].long()] = 1
    assert torch.equal(dense(fewer), expected)
    assert torch.equal(expected, expected.T)
    assert 0 < len(fewer.col) < len(batch.col)
    nodes = torch.rand(20, generator=torch.Generator().manual_seed(1)) < 0.6
    nodes[batch.node_ptr[:-1]] = True
    left = batch.keep_nodes(nodes)
    assert torch.equal(dense(left), a[nodes][:, nodes])
    assert torch.equal(left.x, batch.x[nodes])
    assert torch.equal(left.graph_of, batch.graph_of[nodes])


def test_edge_uniforms_are_uniform_and_differ_by_seed():
    big = Batch.of(from_dense([random_dense(200, 0.5, np.random.default_rng(0))]))
    one, other = big.edge_uniforms(1), big.edge_uniforms(2)
    assert abs(float(one.mean()) - 0.5) < 0.02
    assert abs(float((one < 0.1).float().mean()) - 0.1) < 0.02
    assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.05


def shared(batch):
    """The same batch with features of only four kinds."""
    torch.manual_seed(3)
    return batch.with_features(
        SharedFeatures(torch.randn(4, 3), torch.randint(4, (batch.num_nodes,)))
    )


def test_shared_features_are_rows_of_a_table(batch):
    given = shared(batch)
    features = given.features
    assert torch.equal(given.x, features.table[features.rows])
    nodes = torch.tensor([3, 0, 17, 3])
    assert torch.equal(given.features_of(nodes), given.x[nodes])
    assert torch.equal(batch.features_of(nodes), batch.x[nodes])
    kept = torch.rand(20) < 0.5
    kept[given.node_ptr[:-1]] = True
    assert torch.equal(given.keep_nodes(kept).x, given.x[kept])


@pytest.mark.parametrize("numbers", [1, 24, 10**6])
def test_a_table_gradient_sums_over_all_uses_of_its_rows(batch, numbers, monkeypatch):
    monkeypatch.setattr("artlas_paper.methods.batch.CACHED_NUMBERS", numbers)
    features = shared(batch).features
    layer, weight = GCNLayer(3, 5), torch.randn(20, 5)
    table = features.table.clone().requires_grad_()

    def gradients(found):
        return torch.autograd.grad((found * weight).sum(), [table, *layer.parameters()])

    wanted = layer(table[features.rows], batch)
    parts = batch.with_features(SharedFeatures(table, features.rows)).split(3)
    found = torch.cat([layer(part.features, part) for part in parts])
    torch.testing.assert_close(found, wanted)
    for a, b in zip(gradients(found), gradients(wanted), strict=True):
        torch.testing.assert_close(a, b)
    again = SharedFeatures(table, features.rows)  # taken twice, at different times
    both = map_nodes(layer.lin, again) + map_nodes(lambda rows: 2 * layer.lin(rows), again)
    grad = torch.autograd.grad((both * weight).sum(), table)[0]
    wanted = torch.autograd.grad((3 * layer.lin(table[features.rows]) * weight).sum(), table)[0]
    torch.testing.assert_close(grad, wanted)


@pytest.mark.parametrize("kind", ["plain", "shared"])
def test_splitting_keeps_the_graphs_in_order(batch, kind, monkeypatch):
    monkeypatch.setattr("artlas_paper.methods.batch.CACHED_NUMBERS", 24)
    given = shared(batch) if kind == "shared" else batch
    given = given.with_features(given.features)
    labelled = Batch(
        given.node_ptr,
        given.row_ptr,
        given.col,
        given.features,
        torch.tensor([4, 5, 6]),
        torch.tensor([1, 2, 3]),
        (("a", 0), ("a", 1), ("b", 0)),
    )
    parts = labelled.split(3)  # at most 8 nodes, or one graph
    assert [part.sizes.tolist() for part in parts] == [[7, 1], [12]]
    assert [len(part.sizes) for part in labelled.split(1)] == [3]
    assert torch.equal(torch.cat([part.x for part in parts]), given.x)
    assert torch.equal(torch.cat([part.domain for part in parts]), labelled.domain)
    assert torch.equal(torch.cat([part.y for part in parts]), labelled.y)
    assert sum((part.members for part in parts), ()) == labelled.members
    assert torch.equal(torch.block_diag(*map(dense, parts)), dense(given))


def test_edges_of_some_nodes_among_their_neighbours(batch):
    a = dense(batch).bool()
    chosen = torch.zeros(20, dtype=torch.bool)
    chosen[[2, 9, 15]] = True
    around = batch.with_neighbours(chosen)
    assert torch.equal(around, chosen | a[chosen].any(0))
    assert chosen.sum() < around.sum() < 20
    left = batch.edges_touching(chosen, around)
    wanted = (a & (chosen[:, None] | chosen))[around][:, around]
    assert torch.equal(dense(left).bool(), wanted)
    assert torch.equal(left.x, batch.x[around])
