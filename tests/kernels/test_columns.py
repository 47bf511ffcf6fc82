"""Batch normalisation and its gradients against PyTorch's in float64."""

import pytest
import torch

from artlas.kernels import batch_norm

EPS = 1e-5


def exact(x, weight, bias, rectify):
    found = torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True, eps=EPS)
    return torch.relu(found) if rectify else found


@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize(("rows", "width"), [(2, 1), (5, 33), (513, 64), (1500, 7)])
def test_results_and_gradients_are_those_in_double_precision(kernel, rows, width, rectify):
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
def test_what_is_no_number_is_not_hidden(kernel, rectify):
    x = torch.randn(600, 5)
    x[530, 2] = torch.nan
    x.requires_grad_()
    found, mean, variance = batch_norm(x, torch.ones(5), torch.zeros(5), EPS, rectify)
    for values in (found, mean[None], variance[None], torch.autograd.grad(found.sum(), x)[0]):
        assert values[:, 2].isnan().all()
        assert not values[:, [0, 1, 3, 4]].isnan().any()


def test_threads_do_not_change_a_bit():
    torch.manual_seed(1)
    inputs, before, made = torch.randn(20_000, 33), torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            x = inputs.clone().requires_grad_()
            found, *moments = batch_norm(x, torch.ones(33), torch.zeros(33), EPS, True)
            grads = torch.autograd.grad((found * inputs).sum(), [x])
            made.append([found, *moments, *grads])
    finally:
        torch.set_num_threads(before)
    for a, b in zip(*made, strict=True):
        assert torch.equal(a, b)
