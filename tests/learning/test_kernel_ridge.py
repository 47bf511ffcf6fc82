"""Kernel ridge regression: its solution and its leave-one-out scores against refits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge

from artlas.blocks import Layout
from artlas.learning import kernel_ridge, nystroem
from artlas.learning.block_kernel import BlockKernel
from artlas.learning.kernel_ridge import RIDGES

TOLERANCE = {"rtol": 1e-6, "atol": 1e-8}


def problem(count=24, outputs=3, seed=0):
    """Return a kernel, targets, weights, and the rows it compares."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, 5, generator=generator)
    kernel = BlockKernel.fit(rows, Layout.of_widths({"a": 2, "b": 3}))
    targets = torch.randn(count, outputs, generator=generator).double() + 3
    weights = 0.2 + 3 * torch.rand(count, generator=generator).double()
    return kernel, rows, targets, weights


def direct(gram, targets, weights, ridge):
    """Solve the bordered system that the definition's gradients give."""
    count = len(gram)
    system = np.zeros((count + 1, count + 1))
    system[:count, :count] = gram + ridge * np.diag(1 / weights)
    system[:count, count] = system[count, :count] = 1
    right = np.vstack([targets, np.zeros((1, targets.shape[1]))])
    solution = np.linalg.solve(system, right)
    return solution[:count], solution[count]


def as_arrays(*tensors):
    return [tensor.double().numpy() for tensor in tensors]


@pytest.mark.parametrize("small", [0, 10, 1000], ids=["factor", "sample", "spectrum"])
@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_leave_one_out_is_a_refit_to_the_other_rows(monkeypatch, small, ridge):
    monkeypatch.setattr(kernel_ridge, "SMALL", small)
    kernel, _, targets, weights = problem()
    gram = kernel.gram()
    found = kernel_ridge.fit(gram, targets, weights, ridge)
    gram, targets, weights = as_arrays(gram, targets, weights)
    coefficients, intercept = direct(gram, targets, weights, ridge)
    np.testing.assert_allclose(found.coefficients, coefficients, **TOLERANCE)
    np.testing.assert_allclose(found.intercept, intercept, **TOLERANCE)
    for i in range(len(gram)):
        rest = np.arange(len(gram)) != i
        dual, base = direct(gram[np.ix_(rest, rest)], targets[rest], weights[rest], ridge)
        np.testing.assert_allclose(found.left_out[i], gram[i, rest] @ dual + base, **TOLERANCE)


def test_the_solution_is_the_minimum_of_its_objective():
    kernel, _, targets, weights = problem()
    gram = kernel.gram().double()
    found = kernel_ridge.fit(gram, targets, weights, 0.3)
    dual, base = found.coefficients.requires_grad_(), found.intercept.requires_grad_()
    errors = (targets - gram @ dual - base).square().sum(1)
    (weights @ errors + 0.3 * (dual * (gram @ dual)).sum()).backward()
    assert dual.grad.abs().max() < 1e-10
    assert base.grad.abs().max() < 1e-10


def test_with_a_centred_kernel_it_is_that_of_scikit_learn():
    """An intercept that is not penalised is the regression on the kernel of centred features."""
    kernel, _, targets, weights = problem()
    gram = kernel.gram().double()
    found = kernel_ridge.fit(gram, targets, weights, 0.5)
    gram, targets, weights = as_arrays(gram, targets, weights)
    shares = weights / weights.sum()
    centring = np.eye(len(gram)) - shares[None]
    known = KernelRidge(alpha=0.5, kernel="precomputed")
    base = shares @ targets
    centred = centring @ gram @ centring.T
    known.fit(centred, targets - base, weights)
    wanted = known.predict(centred) + base
    scores = gram @ found.coefficients.numpy() + found.intercept.numpy()
    np.testing.assert_allclose(scores, wanted, rtol=1e-8)


def test_a_weight_of_two_is_a_row_twice():
    kernel, _, targets, _ = problem()
    gram, twice = kernel.gram().double(), torch.tensor([*range(24), 3, 5])
    weights = torch.ones(24).double()
    weights[[3, 5]] = 2
    weighted = kernel_ridge.fit(gram, targets, weights, 0.1)
    repeated = kernel_ridge.fit(gram[twice][:, twice], targets[twice], torch.ones(26).double(), 0.1)
    np.testing.assert_allclose(
        gram @ weighted.coefficients + weighted.intercept,
        gram[:, twice] @ repeated.coefficients + repeated.intercept,
        rtol=1e-9,
    )


@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_landmarks_leave_one_out_is_a_refit_with_the_same_landmarks(ridge):
    kernel, rows, targets, weights = problem(30)
    kernel = BlockKernel.fit(
        rows, Layout.of_widths({"a": 2, "b": 3}), anchors=torch.arange(0, 30, 3)
    )
    found, _ = nystroem.fit(kernel, rows, targets, weights, ridge)
    for i in range(0, 30, 7):
        rest = torch.arange(30) != i
        without, _ = nystroem.fit(kernel, rows[rest], targets[rest], weights[rest], ridge)
        wanted = kernel.cross(rows[i : i + 1]).double() @ without.coefficients + without.intercept
        np.testing.assert_allclose(found.left_out[i], wanted[0], rtol=2e-5, atol=2e-5)


def test_landmarks_minimise_their_objective():
    kernel, rows, targets, weights = problem(30)
    kernel = BlockKernel.fit(rows, Layout.of_widths({"a": 2, "b": 3}), anchors=torch.arange(8))
    found, _ = nystroem.fit(kernel, rows, targets, weights, 0.2)
    near, gram = kernel.cross(rows).double().numpy(), kernel.gram().double().numpy()
    targets, weights = as_arrays(targets, weights)
    ones = np.ones((30, 1))
    design = np.hstack([near, ones]) * np.sqrt(weights)[:, None]
    penalty = np.zeros((9, 9))
    penalty[:8, :8] = 0.2 * gram
    wanted = np.linalg.solve(
        design.T @ design + penalty, design.T @ (np.sqrt(weights)[:, None] * targets)
    )
    np.testing.assert_allclose(found.coefficients, wanted[:8], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.intercept, wanted[8], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("ridge", [None, 0.01, 1.0])
def test_all_rows_as_landmarks_are_the_exact_solution(ridge):
    kernel, rows, targets, weights = problem(60)
    exact = kernel_ridge.fit(kernel.gram(), targets, weights, ridge)
    found, nearest = nystroem.fit(kernel, rows, targets, weights, ridge)
    assert found.ridge == exact.ridge
    near = kernel.cross(rows).double()
    np.testing.assert_allclose(
        near @ found.coefficients + found.intercept,
        near @ exact.coefficients + exact.intercept,
        atol=1e-3,
    )
    np.testing.assert_allclose(found.left_out, exact.left_out, atol=1e-3)
    np.testing.assert_allclose(nearest, 1, atol=1e-5)


def test_the_chosen_ridge_has_the_least_loss():
    kernel, _, _, weights = problem(80)
    gram = kernel.gram()
    smooth = gram.double() @ torch.randn(80, 2, generator=torch.Generator().manual_seed(1)).double()
    noise = torch.randn(80, 2, generator=torch.Generator().manual_seed(2)).double()
    chosen = []
    for scale in (0.01, 0.5, 4.0):
        targets = smooth + scale * noise
        found = kernel_ridge.fit(gram, targets, weights)
        losses = [
            float(weights @ (targets - fitted.left_out).square().sum(1))
            for fitted in (kernel_ridge.fit(gram, targets, weights, ridge) for ridge in RIDGES)
        ]
        assert found.ridge == RIDGES[int(np.argmin(losses))]
        chosen.append(found.ridge)
    assert chosen[0] < chosen[1] < chosen[2]


def test_many_rows_walk_to_a_ridge_of_least_loss_on_the_sample(monkeypatch):
    monkeypatch.setattr(kernel_ridge, "SMALL", 40)
    kernel, _, _, weights = problem(120)
    gram = kernel.gram()
    noise = torch.randn(120, 2, generator=torch.Generator().manual_seed(1)).double()
    targets = gram.double() @ noise + 0.5 * noise.roll(1, 0)
    found = kernel_ridge.fit(gram, targets, weights)
    sample = kernel_ridge.spread_out(120, 40)
    losses = [
        float(weights[sample] @ (targets - fitted.left_out)[sample].square().sum(1))
        for fitted in (kernel_ridge.fit(gram, targets, weights, ridge) for ridge in RIDGES)
    ]
    place = RIDGES.index(found.ridge)
    assert losses[place] == min(losses[max(place - 1, 0) : place + 2])
    again = kernel_ridge.fit(gram, targets, weights, found.ridge)
    np.testing.assert_array_equal(found.left_out, again.left_out)


@pytest.mark.parametrize("small", [5, 1000])
def test_equal_rows_are_given_the_mean(monkeypatch, small):
    monkeypatch.setattr(kernel_ridge, "SMALL", small)
    _, _, targets, weights = problem(20)
    found = kernel_ridge.fit(torch.ones(20, 20), targets, weights)
    mean = weights @ targets / weights.sum()
    scores = torch.ones(20, 20).double() @ found.coefficients + found.intercept
    np.testing.assert_allclose(scores, mean.expand(20, 3), rtol=1e-6)


def test_a_kernel_that_rounding_made_indefinite_is_solved(monkeypatch):
    monkeypatch.setattr(kernel_ridge, "SMALL", 5)
    gram = torch.ones(20, 20) + 0.01 * torch.diag(-torch.ones(20))
    _, _, targets, weights = problem(20)
    found = kernel_ridge.fit(gram, targets, weights, 0.001)
    assert found.coefficients.isfinite().all()
    assert found.left_out.isfinite().all()
