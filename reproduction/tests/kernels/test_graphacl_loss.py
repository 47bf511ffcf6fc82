"""GraphACL's error and its gradients against float64; threads, padding, what is no number."""

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense

from artlas_paper.kernels import unit
from artlas_paper.kernels.graphacl_loss import prediction_error


def problem(n=150, width=64, others=40, density=0.1):
    rng = np.random.default_rng(n + others)
    graphs = from_dense([random_dense(n, density, rng), np.zeros((2, 2))])
    torch.manual_seed(n)
    rows = [unit(torch.randn(size, width)) for size in (n + 2, n + 2, n + 2, others)]
    return rows, (graphs.row_ptr, graphs.col, 2 * n)


def solved(rows, place, temperature, dtype=torch.float32):
    q, u, v, w = (t.to(dtype).clone() for t in rows)
    given = [t.requires_grad_() for t in (q, v, w)]
    found = prediction_error(q, u, v, w, *place, temperature)
    return found.detach(), *torch.autograd.grad(found, given)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.05, 0.99, 30.0])
@pytest.mark.parametrize(
    ("n", "width", "others"),
    [(1, 32, 1), (150, 64, 40), (3500, 128, 512), (97, 64, 32), (60, 20, 7)],
)
def test_results_and_gradients_are_those_in_double_precision(n, width, others, temperature):
    rows, place = problem(n, width, others, min(0.1, 20 / n))
    wanted = solved(rows, place, temperature, torch.float64)
    for one, exact in zip(solved(rows, place, temperature), wanted, strict=True):
        assert float((one - exact).abs().max()) <= 1e-5 * float(exact.abs().max())


@pytest.mark.parametrize("part", range(4))
def test_what_is_no_number_is_not_hidden(part):
    rows, place = problem()
    rows[part][0, 3] = torch.nan
    assert solved(rows, place, 0.7)[0].isnan()


def test_gradients_follow_what_comes_after():
    rows, place = problem()
    w = rows[3].requires_grad_()
    found = prediction_error(*rows, *place, 0.7)
    (once,) = torch.autograd.grad(found, w, retain_graph=True)
    (thrice,) = torch.autograd.grad(3 * found, w)
    torch.testing.assert_close(thrice, 3 * once)


def test_a_node_of_many_neighbours_does_not_overflow():
    n = 3000
    star = np.zeros((n, n))
    star[0, 1:] = star[1:, 0] = 1
    graphs = from_dense([star])
    rows = [unit(torch.ones(size, 32)) for size in (n, n, n, 1)]  # r - s = 0: each adds log 2
    found = prediction_error(*rows, graphs.row_ptr, graphs.col, 1, 1.0)
    assert float(found) == pytest.approx(n * np.log(2), rel=1e-5)
