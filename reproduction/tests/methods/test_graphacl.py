"""GraphACL: its loss and gradient against loops, sampled negatives, and the target's average."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense

from artlas_paper.kernels import unit
from artlas_paper.kernels.graphacl_loss import prediction_error
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.graphacl import GraphACL, GraphACLConfig


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    graphs = from_dense([random_dense(n, 0.4, rng) for n in (7, 1, 12)])
    return Batch.of(graphs.with_features(rng.normal(size=(20, 3))))


def vectors(count=3, n=20, c=4):
    torch.manual_seed(0)
    return [unit(torch.randn(n, c, dtype=torch.float64)).requires_grad_() for _ in range(count)]


def naive(batch, q, u, v, chosen, temperature):
    """The loss as it is written."""
    n, total = batch.num_nodes, 0.0
    for i in range(n):
        near = [i, *batch.col[batch.row_ptr[i] : batch.row_ptr[i + 1]].tolist()]
        rest = sum(torch.exp(v[i] @ v[k] / temperature) for k in chosen) * n / len(chosen)
        for j in near:
            s = q[i] @ u[j] / temperature
            total = total + (-s + torch.log(torch.exp(s) + rest)) / len(near)
    return total / n


def error(batch, q, u, v, chosen, temperature):
    """The same at once."""
    place = batch.row_ptr, batch.col, batch.num_nodes
    return prediction_error(q, u, v, v[chosen], *place, temperature)


@pytest.mark.parametrize("count", [20, 6])
def test_loss_and_gradients_are_what_loops_give(batch, count):
    q, u, v = vectors()
    chosen = torch.randperm(20)[:count]
    found = error(batch, q, u.detach(), v, chosen, 0.7)
    wanted = naive(batch, q, u.detach(), v, chosen, 0.7)
    torch.testing.assert_close(found, wanted)
    for one, other in zip(
        torch.autograd.grad(found, (q, v)), torch.autograd.grad(wanted, (q, v)), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_few_negatives_give_an_unbiased_estimate(batch):
    q, u, v = (values.detach() for values in vectors())
    whole = error(batch, q, u, v, torch.arange(20), 1.0)
    few = [error(batch, q, u, v, torch.randperm(20)[:10], 1.0) for _ in range(200)]
    assert float(torch.stack(few).mean()) == pytest.approx(float(whole), rel=0.01)


@pytest.mark.parametrize("negatives", [5, 64])
def test_the_loss_of_a_model_is_what_loops_give(batch, negatives, monkeypatch):
    monkeypatch.setattr("artlas_paper.methods.batch.CACHED_NUMBERS", 1)  # a graph at a time
    model = GraphACL(GraphACLConfig(features=3, hidden=4, negatives=negatives)).double()
    with torch.no_grad():
        for p in model.target.parameters():
            p += 0.1
        batch = batch.with_features(batch.x.double())
        torch.manual_seed(1)
        found = model.loss(batch)
        torch.manual_seed(1)
        chosen = torch.randperm(20)[:negatives]
        v, u = (encoder(batch.x, batch)[-1] for encoder in (model.encoder, model.target))
        wanted = naive(batch, unit(model.predictor(v)), unit(u), unit(v), chosen, 0.99)
    torch.testing.assert_close(found, wanted)


def test_graphs_without_edges_have_finite_gradients():
    torch.manual_seed(0)
    alone = Batch.of(from_dense([np.zeros((3, 3))]).with_features(np.eye(3)))
    model = GraphACL(GraphACLConfig(features=3, hidden=4))
    loss = model.loss(alone)
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert all(torch.isfinite(p.grad).all() for p in model.encoder.parameters())


def test_the_target_follows_the_encoder_and_has_no_gradient(batch):
    model = GraphACL(GraphACLConfig(features=3, hidden=4, momentum=0.9))
    before = [p.clone() for p in model.target.parameters()]
    for target, own in zip(before, model.encoder.parameters(), strict=True):
        assert torch.equal(target, own)
    model.loss(batch).backward()
    assert all(p.grad is None for p in model.target.parameters())
    with torch.no_grad():
        for p in model.encoder.parameters():
            p += 1
    model.after_step()
    for old, new in zip(before, model.target.parameters(), strict=True):
        torch.testing.assert_close(new.detach(), old + 0.1)


def test_the_frozen_vectors_are_the_encoders(batch):
    model = GraphACL(GraphACLConfig(features=3, hidden=4)).eval()
    before = model.states(batch)
    with torch.no_grad():
        for part in (*model.target.parameters(), *model.predictor.parameters()):
            part += 1
    assert torch.equal(model.states(batch), before)


@pytest.mark.parametrize("wrong", [{"temperature": 0.01}, {"momentum": 1.0}, {"negatives": 0}])
def test_options_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GraphACLConfig(**wrong)
