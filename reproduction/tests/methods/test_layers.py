"""Batch normalisation and dropout of the baselines."""

from __future__ import annotations

import pytest
import torch

from artlas_paper.methods.layers import BatchNorm, Dropout
from artlas_paper.methods.shared_features import SharedFeatures


@pytest.mark.parametrize("after", [torch.nn.Identity, torch.nn.ReLU, torch.nn.PReLU])
def test_batch_norm_equals_pytorch_in_training_and_evaluation(after):
    torch.manual_seed(0)
    norm, plain, activation = BatchNorm(3, after), torch.nn.BatchNorm1d(3), after()
    for seed in range(3):
        x = 2 * torch.randn(7 + seed, 3) + 1
        torch.testing.assert_close(norm(x), activation(plain(x)))
    for name, wanted in plain.state_dict().items():
        torch.testing.assert_close(norm.state_dict()[name], wanted)
    torch.testing.assert_close(norm.eval()(x), activation(plain.eval()(x)))


def test_normalisation_drops_entries_in_training_alone():
    torch.manual_seed(0)
    norm, plain = BatchNorm(40, torch.nn.ReLU, dropout=0.3), BatchNorm(40, torch.nn.ReLU)
    x = torch.randn(500, 40)
    dropped, whole = norm(x), plain(x)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], whole[kept] / 0.7)
    assert abs(float(kept.sum() / (whole != 0).sum()) - 0.7) < 0.02
    plain(x)  # the running statistics of both are the same
    assert not torch.equal(norm(x), dropped)
    assert torch.equal(norm.eval()(x), plain.eval()(x))


def test_shared_features_are_weighted_by_how_often_they_are_used():
    torch.manual_seed(0)
    norm, plain = BatchNorm(3), torch.nn.BatchNorm1d(3)
    for own in (norm, plain):
        torch.nn.init.constant_(own.weight, 1.5)
    shared = SharedFeatures(
        2 * torch.randn(6, 3) + 1, torch.tensor([0, 4, 4, 1, 0, 2, 4, 5])
    )  # not 3
    found, wanted = norm.normalise_shared(shared).expand(), plain(shared.expand())
    torch.testing.assert_close(found, wanted)
    grad = torch.randn(8, 3)
    ours = torch.autograd.grad(found, [norm.weight, norm.bias], grad)
    torch.testing.assert_close(ours, torch.autograd.grad(wanted, [plain.weight, plain.bias], grad))
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(norm.state_dict()[name], value)
    torch.testing.assert_close(
        norm.eval().normalise_shared(shared).expand(), plain.eval()(shared.expand())
    )
    norm.train()
    alone = norm.normalise_shared(
        SharedFeatures(torch.randn(2, 3), torch.tensor([1]))
    )  # by the running ones
    assert torch.isfinite(alone.expand()).all()


def test_batch_norm_refuses_other_activations():
    with pytest.raises(ValueError, match="ReLU or PReLU may follow batch normalisation, got Tanh"):
        BatchNorm(3, torch.nn.Tanh)


def test_a_single_row_is_normalised_by_the_running_statistics():
    norm = BatchNorm(3)
    plain = torch.nn.BatchNorm1d(3)
    x = torch.randn(7, 3)
    torch.testing.assert_close(norm(x), plain(x))
    before = norm.running_mean.clone()
    torch.testing.assert_close(norm(x[:1]), plain.eval()(x[:1]))
    assert torch.equal(norm.running_mean, before)


def test_dropout_keeps_the_mean_and_drops_the_share_that_was_asked_for():
    x = torch.full((301, 211), 2.0, requires_grad=True)
    drop = Dropout(0.15)
    torch.manual_seed(0)
    y = drop(x)
    y.sum().backward()
    share = float((y == 0).float().mean())
    assert abs(share - 0.15) < 0.006
    assert y.unique().tolist() == pytest.approx([0.0, 2 / 0.85])
    assert torch.equal(x.grad, y.detach() / 2)
    torch.manual_seed(0)
    assert torch.equal(drop(x), y)
    assert drop.eval()(x) is x


def test_decisions_of_neighbouring_entries_are_independent():
    torch.manual_seed(1)
    kept = (Dropout(0.5)(torch.ones(40_000)) > 0).float().view(-1, 4)
    assert (kept.mean(0) - 0.5).abs().max() < 0.02
    assert (torch.corrcoef(kept.T) - torch.eye(4)).abs().max() < 0.04
