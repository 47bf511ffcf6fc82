"""GraphMAE: its loss against loops, masking, and zero features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense

from artlas_paper.methods.batch import Batch
from artlas_paper.methods.graphmae import GraphMAE, GraphMAEConfig, scaled_cosine_error


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    graphs = from_dense([random_dense(n, 0.4, rng) for n in (7, 1, 12)])
    return Batch.of(graphs.with_features(rng.normal(size=(20, 3))))


@pytest.fixture
def model():
    made = GraphMAE(GraphMAEConfig(features=3, hidden=4, replace=0.3))
    with torch.no_grad():
        made.token.copy_(torch.tensor([5.0, 6.0, 7.0]))
    return made


def test_the_error_is_what_loops_give(batch):
    torch.manual_seed(0)
    rebuilt, x = torch.randn(20, 3), batch.x.clone()
    x[4] = 0
    for alpha in (1.0, 2.0, 3.0):
        total = 0.0
        for a, b in zip(rebuilt, x, strict=True):
            lengths = max(float(a.norm() * b.norm()), 1e-12)
            total += (1 - float(a @ b) / lengths) ** alpha
        found = float(scaled_cosine_error(rebuilt, x, alpha))
        assert found == pytest.approx(total / 20, rel=1e-5)
    assert float(scaled_cosine_error(3 * x[:4], x[:4], 2.0)) == pytest.approx(0, abs=1e-6)


def test_masked_rows_are_tokens_or_of_other_nodes(batch, model):
    masked = torch.randperm(20)[:10]
    hidden = model.mask_features(batch.x, masked).expand().detach()
    rest = torch.ones(20, dtype=torch.bool)
    rest[masked] = False
    assert torch.equal(hidden[rest], batch.x[rest])
    tokens = (hidden[masked] == model.token).all(1)
    assert int(tokens.sum()) == 7
    for row in hidden[masked[~tokens]]:
        assert (batch.x == row).all(1).any()


def test_the_decoder_is_a_layer_that_does_not_see_the_masked(batch, model):
    masked = torch.tensor([0, 3, 9, 12])
    states = torch.randn(20, 4, requires_grad=True)
    found = model.decode(batch, states, masked)
    hidden = model.between(states.detach())
    hidden[masked] = 0
    torch.testing.assert_close(found, model.decoder(hidden, batch)[masked])
    found.sum().backward()
    assert float(states.grad[masked].abs().max()) == 0
    assert float(states.grad.abs().max()) > 0


def test_the_loss_knows_the_features_of_the_masked_by_their_direction_alone(batch, model):
    """Everything masked and no edges: all rows are rebuilt alike, as the decoder's bias."""
    model = GraphMAE(GraphMAEConfig(features=3, hidden=4, mask=1.0, replace=0.0))
    with torch.no_grad():
        model.decoder.bias.copy_(torch.tensor([1.0, 2.0, 3.0]))
    found = model.loss(batch)
    expected = (1 - torch.cosine_similarity(batch.x, model.decoder.bias[None])) ** 2
    torch.testing.assert_close(found, expected.mean())


def test_zero_features_and_single_nodes_have_finite_gradients(batch, model):
    model.loss(batch.with_features(torch.zeros(20, 3))).backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())
    single = Batch.of(from_dense([np.zeros((1, 1))]).with_features(np.ones((1, 3))))
    assert float(model.loss(single).detach()) == 0


@pytest.mark.parametrize(
    "wrong", [{"mask": 0.0}, {"replace": 1.0}, {"alpha": 0.5}, {"dropout": -0.1}]
)
def test_options_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GraphMAEConfig(**wrong)
