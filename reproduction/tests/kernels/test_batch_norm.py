"""Batch normalisation and its gradients against PyTorch's in float64."""

import pytest
import torch

from artlas_paper.kernels import batch_norm, dropout

EPS = 1e-5


def exact(x, weight, bias, rectify):
    found = torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True, eps=EPS)
    return torch.relu(found) if rectify else found


@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize(("rows", "width"), [(2, 1), (5, 33), (513, 64), (1500, 7)])
def test_results_and_gradients_are_those_in_double_precision(rows, width, rectify):
    torch.manual_seed(rows)
    inputs = [3 * torch.randn(rows, width) + 100, torch.randn(width), torch.randn(width)]
    wide = [t.double().requires_grad_() for t in inputs]
    given = [t.clone().requires_grad_() for t in inputs]
    wanted = exact(*wide, rectify)
    found, mean, variance = batch_norm(*given, EPS, rectify)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(mean.double(), wide[0].mean(0), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        variance.double(), wide[0].var(0, correction=0), rtol=1e-4, atol=1e-6
    )
    assert not mean.requires_grad
    assert not variance.requires_grad
    grad = torch.randn(rows, width)
    made = torch.autograd.grad((found * grad).sum(), given)
    for a, b in zip(made, torch.autograd.grad((wanted * grad).sum(), wide), strict=True):
        reach = 1e-3 * max(1.0, float(b.abs().max()))
        torch.testing.assert_close(a.double(), b, rtol=1e-3, atol=reach)


@pytest.mark.parametrize("rectify", [False, True])
def test_what_is_no_number_is_not_hidden(rectify):
    x = torch.randn(600, 5)
    x[530, 2] = torch.nan
    x.requires_grad_()
    found, mean, variance = batch_norm(x, torch.ones(5), torch.zeros(5), EPS, rectify)
    for values in (found, mean[None], variance[None], torch.autograd.grad(found.sum(), x)[0]):
        assert values[:, 2].isnan().all()
        assert not values[:, [0, 1, 3, 4]].isnan().any()


@pytest.mark.parametrize("slope", [None, 0.25, -0.5])
def test_bends_and_drops_have_the_gradients_of_double_precision(slope):
    torch.manual_seed(7)
    inputs = [torch.randn(700, 33), torch.randn(33), torch.randn(33)]
    inputs += [] if slope is None else [torch.tensor([slope])]
    wide = [t.double().requires_grad_() for t in inputs]
    given = [t.clone().requires_grad_() for t in inputs]
    of_wide, of_given = ((t[3] if slope is not None else None) for t in (wide, given))
    found, *_ = batch_norm(*given[:3], EPS, slope is None, of_given, 0.4, 12345678901234567)
    wanted = exact(*wide[:3], slope is None)
    if slope is not None:
        wanted = torch.nn.functional.prelu(wanted, of_wide)
    wanted = wanted * dropout(torch.ones(700, 33), 0.4, 12345678901234567)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)
    grad = torch.randn(700, 33)
    made = torch.autograd.grad((found * grad).sum(), given)
    for a, b in zip(made, torch.autograd.grad((wanted * grad).sum(), wide), strict=True):
        reach = 1e-4 * max(1.0, float(b.abs().max()))
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=reach)


def test_a_seed_chooses_the_dropped_entries():
    x = torch.randn(301, 211, requires_grad=True)
    found = dropout(x, 0.15, 2**63 - 5)
    (grad,) = torch.autograd.grad(found.sum(), x)
    torch.testing.assert_close(grad * x, found)
    assert abs(float((found == 0).float().mean()) - 0.15) < 0.006
    assert torch.equal(dropout(x, 0.15, 2**63 - 5), found)
    other = dropout(x, 0.15, 2**63 - 6)  # another seed, another choice
    both = float(((found == 0) & (other == 0)).float().mean())
    assert abs(both - 0.15**2) < 0.004
    assert dropout(x, 0.0, 1) is x


def test_what_is_dropped_may_be_no_number():
    x = torch.full((50, 8), torch.nan)
    assert dropout(x, 0.5, 3).isnan().all()
