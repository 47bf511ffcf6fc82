"""Batches of graphs: sums, propagation, selections and their gradients, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense
from torch_geometric.nn import GATConv, GCNConv, GINConv

from artlas.baselines.batch import Batch
from artlas.baselines.layers import GATLayer, GCNLayer, GINLayer


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
        (batch.spread(x[:3]), member @ x[:3]),
    ):
        torch.testing.assert_close(found, wanted)
        own = weight[: len(found)]
        one = torch.autograd.grad((found * own).sum(), x)[0]
        torch.testing.assert_close(one, torch.autograd.grad((wanted * own).sum(), x)[0])


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


def test_without_some_entries_or_nodes(batch):
    a = dense(batch)
    kept = batch.chance(5) < 0.6
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


def test_chances_are_even_and_differ_by_seed():
    big = Batch.of(from_dense([random_dense(200, 0.5, np.random.default_rng(0))]))
    one, other = big.chance(1), big.chance(2)
    assert abs(float(one.mean()) - 0.5) < 0.02
    assert abs(float((one < 0.1).float().mean()) - 0.1) < 0.02
    assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.05
