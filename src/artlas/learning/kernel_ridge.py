"""Weighted kernel ridge regression with an intercept, its ridge chosen by exact leave-one-out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from artlas.learning.block_kernel import spread_out

RIDGES = tuple(10 ** (step / 2) for step in range(-6, 5))  # 0.001 to 100; a kernel's diagonal is 1
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
    If ``ridge`` is None, it is the one of :data:`RIDGES` with the least weighted square of them.
    """
    centre = (weights @ targets) / weights.sum()  # for precision alone: the intercept absorbs it
    problem = _Problem(gram, targets - centre, weights)
    if ridge is not None:
        fitted = problem.solve(problem.inverse(), ridge)
    elif len(gram) <= SMALL:
        fitted = problem.best(problem.inverse())
    else:
        part = spread_out(len(gram), SMALL)
        sample = _Problem(gram[part][:, part], problem.targets[part], weights[part])
        fitted = problem.walk(sample.best(sample.inverse()).ridge)
    return RidgeFit(
        fitted.coefficients, fitted.intercept + centre, fitted.ridge, fitted.left_out + centre
    )


# For a ridge, [P y, P 1] as [n, C + 1] and the diagonal of P as [n].
_Inverse = Callable[[float], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class _Problem:
    gram: Tensor
    targets: Tensor
    weights: Tensor

    def best(self, inverse: _Inverse) -> RidgeFit:
        """Try all ridges from the largest down, so that it wins where the ridge is immaterial."""
        fits = [self.solve(inverse, ridge) for ridge in reversed(RIDGES)]
        return fits[least([self.loss(fitted) for fitted in fits])]

    def walk(self, start: float) -> RidgeFit:
        """Follow the loss downhill along the ridges, from that of a sample of the rows."""
        inverse, fits = self.inverse(), dict[int, RidgeFit]()

        def loss(place: int) -> float:
            if not 0 <= place < len(RIDGES):
                return torch.inf
            if place not in fits:
                fits[place] = self.solve(inverse, RIDGES[place])
            return self.loss(fits[place])

        place = RIDGES.index(start)
        for step in (1, -1):
            while loss(place + step) < loss(place):
                place += step
        return fits[place]

    def solve(self, inverse: _Inverse, ridge: float) -> RidgeFit:
        solved, diagonal = inverse(ridge)
        once = solved[:, -1]
        intercept = once @ self.targets / once.sum()
        coefficients = solved[:, :-1] - once[:, None] * intercept
        pivots = diagonal - once.square() / once.sum()
        left_out = self.targets - coefficients / pivots[:, None]
        return RidgeFit(coefficients, intercept, ridge, left_out)

    def loss(self, fitted: RidgeFit) -> float:
        return squared_loss(self.targets, fitted.left_out, self.weights)

    def inverse(self) -> _Inverse:
        r"""Prepare :math:`P = W^{1/2} (W^{1/2} K W^{1/2} + \lambda)^{-1} W^{1/2}`."""
        root = self.weights.sqrt()[:, None]
        matrix = self.gram.double() * root * root.T
        right = torch.cat([self.targets, torch.ones_like(root)], 1) * root
        if len(matrix) <= SMALL:
            return _by_spectrum(matrix, right, root)

        def by_factor(ridge: float) -> tuple[Tensor, Tensor]:
            shifted = matrix.clone()
            shifted.diagonal().add_(ridge)
            factor, failed = torch.linalg.cholesky_ex(shifted)
            if failed:  # rounding of the kernel in float32 exceeds the ridge
                return _by_spectrum(matrix, right, root)(ridge)
            inverse = torch.cholesky_inverse(factor)
            return root * (inverse @ right), root[:, 0].square() * inverse.diagonal()

        return by_factor


def _by_spectrum(matrix: Tensor, right: Tensor, root: Tensor) -> _Inverse:
    values, vectors = torch.linalg.eigh(matrix)
    values = values.clamp(min=0)
    inner, squares = vectors.T @ right, vectors.square()

    def solve(ridge: float) -> tuple[Tensor, Tensor]:
        shrunk = 1 / (values + ridge)
        solved = root * (vectors @ (shrunk[:, None] * inner))
        return solved, root[:, 0].square() * (squares @ shrunk)

    return solve


def squared_loss(targets: Tensor, scores: Tensor, weights: Tensor) -> float:
    """Average the squared errors of scores [n, C] over the rows with their weights [n]."""
    return float(weights @ (targets - scores).square().sum(1) / weights.sum())


def least(losses: list[float]) -> int:
    """Return the place of the least loss, the first of those that differ by rounding only."""
    low = min(losses)
    return next(i for i, loss in enumerate(losses) if loss <= low + 1e-9 * abs(low))
