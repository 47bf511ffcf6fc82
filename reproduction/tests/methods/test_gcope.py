"""GCOPE: coordinators against a dense graph with them as nodes, views, and the contrast."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense
from torch_geometric.nn import GCNConv

from artlas_paper.methods.batch import Batch
from artlas_paper.methods.gcope import GCOPE, GCOPEConfig
from artlas_paper.methods.losses import contrast_views
from artlas_paper.methods.shared_features import SharedFeatures
from artlas_paper.methods.views import drop_edges, drop_nodes, mask_features


def made(sizes, domain, **options):
    rng = np.random.default_rng(0)
    graphs = from_dense([random_dense(n, 0.4, rng) for n in sizes])
    graphs = graphs.with_features(rng.normal(size=(sum(sizes), 5)))
    config = GCOPEConfig(features=5, hidden=8, domains=(0, 0, 0), **options)
    return GCOPE(config), Batch.of(graphs, torch.tensor(domain))


def test_coordinators_are_nodes_that_are_linked_to_their_domain_and_to_each_other():
    model, batch = made((6, 1, 9, 4), (0, 2, 2, 0), dropout=0.0)
    present, nodes = (0, 2), batch.num_nodes
    links = [tuple(e) for e in batch.edge_index.T.tolist()]
    for head, domain in enumerate(present):
        own = (batch.domain[batch.graph_of] == domain).nonzero()[:, 0].tolist()
        for i in own:
            links += [(i, nodes + head), (nodes + head, i)]
    links += [(nodes, nodes + 1), (nodes + 1, nodes)]
    x = torch.cat([batch.x, model.coordinators[list(present)]])
    edges = torch.tensor(links).T
    for i, layer in enumerate(model.encoder.layers):
        plain = GCNConv(layer.in_channels, layer.out_channels)
        plain.load_state_dict(layer.state_dict())
        x = plain(x, edges)
        x = torch.relu(x) if i < 2 else x
    found = model._last_layer(model._propagate(batch, model.encoder.transform(batch.features)))
    torch.testing.assert_close(found, x[:nodes])
    weight = torch.randn(nodes, 8)
    ours = torch.autograd.grad((found * weight).sum(), model.coordinators)[0]
    theirs = torch.autograd.grad((x[:nodes] * weight).sum(), model.coordinators)[0]
    torch.testing.assert_close(ours, theirs)
    assert ours[[0, 2]].abs().min() > 0
    assert not ours[1].any()  # its domain is not in the batch


def test_the_last_layer_commutes_with_sums_and_views_share_the_first_map():
    model, batch = made((6, 1, 9, 4), (0, 2, 2, 0), dropout=0.0)
    batch = batch.with_features(SharedFeatures(batch.x[:7], torch.arange(20) % 7))
    transformed = model.encoder.transform(batch.features)
    torch.manual_seed(0)
    for view in (drop_nodes(batch, 0.3), drop_edges(batch, 0.3), mask_features(batch, 0.3)):
        first = model._transform(view.features, transformed)
        torch.testing.assert_close(first.expand(), model.encoder.layers[0].transform(view.x))
        around = model._propagate(view, first)
        sums = model._last_layer(view.sum_pool(around), view.sizes[:, None])
        torch.testing.assert_close(sums, view.sum_pool(model._last_layer(around)))


def test_frozen_vectors_do_not_depend_on_coordinators():
    model, batch = made((6, 9), (0, 1))
    model.eval()
    before = model.states(batch)
    torch.nn.init.zeros_(model.coordinators)
    assert torch.equal(model.states(batch), before)


def test_the_contrast_is_that_of_loops():
    one, other = torch.randn(5, 3), torch.randn(5, 3)
    like = torch.exp(torch.cosine_similarity(one[:, None], other[None], dim=2) / 0.5)
    wanted = 0.0
    for i in range(5):
        wanted -= float(torch.log(like[i, i] / sum(like[i, j] for j in range(5) if j != i)))
    assert float(contrast_views(one, other, 0.5)) == pytest.approx(wanted / 5, rel=1e-4)
    assert float(contrast_views(one[:1], other[:1], 0.5)) == 0


def test_views_lose_their_share_of_every_graph():
    _, batch = made((20, 3, 1, 37), (0, 0, 0, 0))
    before = batch.x.clone()
    torch.manual_seed(0)
    fewer = drop_nodes(batch, 0.3)
    assert fewer.sizes.tolist() == [14, 3, 1, 26]
    thinner = drop_edges(batch, 0.3)
    assert 0.5 < len(thinner.col) / len(batch.col) < 0.9
    masked = mask_features(batch, 0.3)
    changed = (masked.x != batch.x).any(1)
    assert torch.bincount(batch.graph_of[changed], minlength=4).tolist() == [6, 0, 0, 11]
    for g in (0, 3):
        rows = masked.x[changed & (batch.graph_of == g)]
        torch.testing.assert_close(
            rows, batch.x[batch.graph_of == g].mean(0).expand_as(rows), atol=1e-6, rtol=1e-5
        )
    assert torch.equal(batch.x, before)  # the second view is not one of the first
    assert not torch.equal(mask_features(batch, 0.3).x, masked.x)


def test_the_smallest_batch_can_be_learnt_from():
    model, batch = made((1,), (1,))
    for seed in range(6):
        torch.manual_seed(seed)
        loss = model.loss(batch)
        loss.backward()
        assert torch.isfinite(loss)
    assert torch.isfinite(model.coordinators.grad).all()


@pytest.mark.parametrize(
    "option", [{"dropout": 1.0}, {"temperature": 0.0}, {"rebuilt": 0}, {"reconstruction": -1.0}]
)
def test_options_are_checked(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        GCOPEConfig(**option)
