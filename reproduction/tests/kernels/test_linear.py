"""Linear maps and their gradients against PyTorch's in float64."""

import pytest
import torch

from artlas_paper.kernels import linear


def exact(x, weight, bias, rectify):
    found = torch.nn.functional.linear(x, weight, bias)
    return torch.relu(found) if rectify else found


@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("rows", "width", "out"),
    [(1, 32, 32), (7, 64, 32), (97, 32, 96), (3100, 128, 64), (0, 32, 32), (50, 33, 64)],
)
def test_results_and_gradients_are_those_in_double_precision(rows, width, out, biased, rectify):
    torch.manual_seed(rows)
    inputs = [torch.randn(rows, width), torch.randn(out, width), torch.randn(out)]
    inputs = inputs if biased else inputs[:2]
    wide = [t.double().requires_grad_() for t in inputs]
    given = [t.clone().requires_grad_() for t in inputs]
    missing = [] if biased else [None]
    wanted, found = exact(*wide, *missing, rectify), linear(*given, *missing, rectify)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-4)
    grad = torch.randn(rows, out)
    grad[found.detach().abs() < 1e-3] = 0  # the side of the ReLU may differ there
    made = torch.autograd.grad((found * grad).sum(), given)
    for a, b in zip(made, torch.autograd.grad((wanted * grad).sum(), wide), strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-5 * (rows + out))


def test_gradients_of_what_asks_for_them():
    x, weight, bias = torch.randn(40, 32), torch.randn(64, 32), torch.randn(64)
    for asking in range(3):
        given = [t.clone().requires_grad_(i == asking) for i, t in enumerate((x, weight, bias))]
        linear(*given, True).sum().backward()
        whole = [t.clone().requires_grad_() for t in (x, weight, bias)]
        linear(*whole, True).sum().backward()
        for i, (one, all_of_them) in enumerate(zip(given, whole, strict=True)):
            assert (one.grad is None) == (i != asking)
            assert i != asking or torch.equal(one.grad, all_of_them.grad)


def test_any_layout_will_do():
    x, weight = torch.randn(32, 50).T, torch.randn(32, 64).T
    found = linear(x.requires_grad_(), weight, None)
    torch.testing.assert_close(found, x @ weight.T, rtol=1e-5, atol=1e-4)
    (made,) = torch.autograd.grad(found, x, torch.ones(()).expand(50, 64))
    torch.testing.assert_close(made, weight.sum(0).expand(50, 32), rtol=1e-5, atol=1e-4)
    deep = torch.randn(3, 5, 32)
    torch.testing.assert_close(linear(deep, weight), deep @ weight.T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rectify", [False, True])
def test_what_is_no_number_is_not_hidden(rectify):
    x, weight, bias = torch.randn(200, 32), torch.randn(32, 32), torch.randn(32)
    x[130, 2] = torch.nan
    given = [t.requires_grad_() for t in (x, weight, bias)]
    found = linear(*given, rectify)
    assert torch.equal(found.isnan().all(1), found.isnan().any(1))
    assert found.isnan().any(1).nonzero().flatten().tolist() == [130]
    grads = torch.autograd.grad(found.sum(), given)
    assert grads[1][:, 2].isnan().all()
