"""GiT: views, the loss against loops, and the smallest batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense

from artlas_paper.methods.batch import Batch
from artlas_paper.methods.git import GiT, GiTConfig, divergence_from_mean


def made(sizes, **options):
    rng = np.random.default_rng(0)
    graphs = from_dense([random_dense(n, 0.4, rng) for n in sizes])
    batch = Batch.of(graphs.with_features(rng.normal(size=(sum(sizes), 5))))
    return GiT(GiTConfig(features=5, hidden=8, **options)), batch


def test_the_loss_is_that_of_loops_over_graphs():
    model, batch = made((6, 1, 9), columns=0.0, edges=0.0, dropout=0.0, apart=0.0, towards=3.0)
    model.train()
    z = model.pool(batch, model.states(batch)).detach()  # no view loses anything
    g = model.predictor(z).detach()
    mean = z.mean(0).softmax(0)
    wanted = 0.0
    for one, predicted in zip(z, g, strict=True):
        wanted += 1 - float(one @ predicted / one.norm() / predicted.norm())
        wanted += 3 * float((mean * (mean / one.softmax(0)).log()).sum())
    assert float(model.loss(batch).detach()) == pytest.approx(wanted / 3, rel=1e-4)


def test_targets_have_no_gradient():
    model, batch = made((6, 4), towards=0.0)
    for parameter in model.predictor.parameters():
        torch.nn.init.zeros_(parameter)
    model.predictor[-1].bias.data.fill_(1.0)  # what is predicted does not depend on the source
    model.loss(batch).backward()
    assert all(not p.grad.abs().any() for p in model.encoder.parameters())


def test_views_lose_whole_columns_and_both_directions_of_an_edge():
    model, batch = made((40,), columns=0.4, edges=0.3)
    torch.manual_seed(1)
    view = model._view(batch)
    zero = (view.x == 0).all(0)
    assert 0 < zero.sum() < 5
    assert torch.equal(view.x[:, ~zero], batch.x[:, ~zero])
    entries = {tuple(e) for e in view.edge_index.T.tolist()}
    assert entries == {(j, i) for i, j in entries}
    assert entries < {tuple(e) for e in batch.edge_index.T.tolist()}
    assert 0.5 < len(entries) / len(batch.col) < 0.9


def test_equal_vectors_are_not_apart_from_their_mean():
    z = torch.randn(1, 4).repeat(5, 1)
    assert float(divergence_from_mean(z)) == pytest.approx(0, abs=1e-6)
    assert float(divergence_from_mean(torch.eye(4))) > 0.01


def test_a_batch_of_one_node_can_be_learnt_from():
    model, batch = made((1,))
    model.train()
    loss = model.loss(batch)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("option", [{"edges": 1.0}, {"columns": -0.1}, {"towards": -1.0}])
def test_options_are_checked(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        GiTConfig(**option)
