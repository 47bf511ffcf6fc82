"""Weighted kernel ridge regression with an intercept, its ridge chosen by exact leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol

import torch
from torch import Tensor

from artlas.learning.block_kernel import spread_out

RIDGES = tuple(10 ** (step / 4) for step in range(-12, 9))  # 0.001 to 100; a kernel's diagonal is 1
SMALL = 1000  # most rows whose kernel is decomposed: beyond, factoring it a few times is faster


@dataclass(frozen=True, eq=False)
class RidgeFit:
    r"""Scores :math:`f(v) = \sum_i k(v, v_i) \alpha_i + b` of a kernel ridge regression.

    coefficients: float64 [m, C]; intercept: [C]; ridge; left_out: [n, C], every training row's
    scores by the regression fitted to all other rows.
    """

    coefficients: Tensor
    intercept: Tensor
    ridge: float
    left_out: Tensor


def fit(gram: Tensor, targets: Tensor, weights: Tensor, ridge: float | None = None) -> RidgeFit:
    r"""Fit to a kernel [n, n], targets [n, C] and positive weights [n].

    .. math:: \min_{f, b} \sum_i w_i (y_i - f(v_i) - b)^2 + \lambda \|f\|^2

    With :math:`P = (K + \lambda W^{-1})^{-1}` and :math:`u = P 1` the solution is
    :math:`b = u^T y / u^T 1`, :math:`\alpha = P y - u b`, and the residual of row i when it is
    left out, intercept included, :math:`\alpha_i / (P_{ii} - u_i^2 / u^T 1)`: the Schur complement
    of that row in the bordered system that determines the coefficients and the intercept.
    If ``ridge`` is None, it is the one of :data:`RIDGES` with the least weighted square of them,
    on a sample of the rows if there are many.
    """
    centre = (weights @ targets) / weights.sum()  # for precision alone: the intercept absorbs it
    order = _sample_last(len(gram))
    arranged = gram if len(gram) <= SMALL else gram[order][:, order]
    problem = _Problem(arranged, (targets - centre)[order], weights[order])
    invert = problem.inverse()
    if ridge is None:
        ridge = problem.best_ridge(invert)
    solution = problem.solve(invert, ridge, len(gram))
    back = order.argsort()
    return RidgeFit(
        solution.coefficients[back],
        solution.intercept + centre,
        ridge,
        solution.left_out[back] + centre,
    )


class _Inverse(Protocol):
    def __call__(self, ridge: float, count: int) -> tuple[Tensor, Tensor]:
        """Return [P y, P 1], [n, C + 1], and the last ``count`` entries of the diagonal of P."""


@dataclass(frozen=True, eq=False)
class _Problem:
    gram: Tensor
    targets: Tensor
    weights: Tensor

    def best_ridge(self, inverse: _Inverse) -> float:
        """Find the ridge whose leave-one-out loss on the last rows, at most SMALL, is the least.

        Of many rows only these are left out, since their part of the inverse comes from the end
        of its factor, and starting from the best ridge of these rows alone, the loss is followed
        downhill, since a factor takes long.
        """
        last = slice(-SMALL, None)

        @cache
        def loss(place: int) -> float:
            if not 0 <= place < len(RIDGES):
                return torch.inf
            left_out = self.solve(inverse, RIDGES[place], SMALL).left_out
            return squared_loss(self.targets[last], left_out, self.weights[last])

        if len(self.gram) <= SMALL:
            return RIDGES[::-1][least([loss(place) for place in reversed(range(len(RIDGES)))])]
        sample = _Problem(self.gram[last, last], self.targets[last], self.weights[last])
        place = RIDGES.index(sample.best_ridge(sample.inverse()))
        while True:
            # The place itself comes last: where it is the best, its factor is then still there.
            losses = {near: loss(near) for near in (place + 1, place - 1, place)}
            least_near = min(losses.values())
            if losses[place] == least_near:
                return RIDGES[place]
            place = next(near for near in losses if losses[near] == least_near)

    def solve(self, inverse: _Inverse, ridge: float, count: int) -> RidgeFit:
        """Solve, and leave out each of the last ``count`` rows."""
        solved, diagonal = inverse(ridge, count)
        once = solved[:, -1]
        intercept = once @ self.targets / once.sum()
        coefficients = solved[:, :-1] - once[:, None] * intercept
        pivots = diagonal - once[-count:].square() / once.sum()
        left_out = self.targets[-count:] - coefficients[-count:] / pivots[:, None]
        return RidgeFit(coefficients, intercept, ridge, left_out)

    def inverse(self) -> _Inverse:
        r"""Prepare :math:`P = W^{1/2} (W^{1/2} K W^{1/2} + \lambda)^{-1} W^{1/2}`."""
        root = self.weights.sqrt()[:, None]
        matrix = (self.gram.double() * root).mul_(root.T)
        right = torch.cat([self.targets, torch.ones_like(root)], 1) * root
        if len(matrix) <= SMALL:
            return _by_spectrum(matrix, right, root)

        @lru_cache(maxsize=1)
        def factored(ridge: float) -> tuple[Tensor, Tensor]:
            shifted = matrix.clone()
            shifted.diagonal().add_(ridge)
            return torch.linalg.cholesky_ex(shifted)

        @cache
        def by_spectrum() -> _Inverse:
            return _by_spectrum(matrix, right, root)

        def by_factor(ridge: float, count: int) -> tuple[Tensor, Tensor]:
            factor, failed = factored(ridge)
            if failed:  # rounding of the kernel in float32 exceeds the ridge
                return by_spectrum()(ridge, count)
            # The inverse of the end of a lower factor is the end of its inverse.
            end, one = factor[-count:, -count:], torch.eye(min(count, len(matrix)))
            inverse = torch.linalg.solve_triangular(end, one.double(), upper=False)
            solved = root * torch.cholesky_solve(right, factor)
            return solved, self.weights[-count:] * inverse.square_().sum(0)

        return by_factor


def _by_spectrum(matrix: Tensor, right: Tensor, root: Tensor) -> _Inverse:
    values, vectors = torch.linalg.eigh(matrix)
    values = values.clamp(min=0)
    inner, squares = vectors.T @ right, vectors.square()

    def solve(ridge: float, count: int) -> tuple[Tensor, Tensor]:
        shrunk = 1 / (values + ridge)
        solved = root * (vectors @ (shrunk[:, None] * inner))
        return solved, root[-count:, 0].square() * (squares[-count:] @ shrunk)

    return solve


def _sample_last(count: int) -> Tensor:
    """Order rows so that a fixed sample of SMALL comes last."""
    if count <= SMALL:
        return torch.arange(count)
    sample = torch.zeros(count, dtype=torch.bool)
    sample[spread_out(count, SMALL)] = True
    return torch.cat([(~sample).nonzero()[:, 0], sample.nonzero()[:, 0]])


def squared_loss(targets: Tensor, scores: Tensor, weights: Tensor) -> float:
    """Average the squared errors of scores [n, C] over the rows with their weights [n]."""
    return float(weights @ (targets - scores).square().sum(1) / weights.sum())


def least(losses: list[float]) -> int:
    """Return the place of the least loss, the first of those that differ by rounding only."""
    low = min(losses)
    return next(i for i, loss in enumerate(losses) if loss <= low + 1e-9 * abs(low))
