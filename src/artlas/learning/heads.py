"""What learns from the support of an episode and classifies its queries, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST_SPREAD = 1e-6  # the published floor of a standard deviation


@dataclass(frozen=True, eq=False)
class SupportScaler:
    r"""Standardise by the support alone, without the columns that are constant on it.

    .. math:: (v_j - m_j) / \max(s_j, 10^{-6}), \quad m, s \text{ over the support, } s \text{
        with denominator } S

    A constant column says nothing about the classes, and division by the floor would let it drown
    the others. mean, spread: [d']; varies: bool [d], true for the d' columns that are kept.
    """

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    varies: NDArray[np.bool_]

    @classmethod
    def fit(cls, support: ArrayLike) -> SupportScaler:
        """Measure support [S, d]."""
        values = _matrix(support, "support")
        varies = values.max(0) != values.min(0)
        kept = values[:, varies]
        return cls(kept.mean(0), np.maximum(kept.std(0), SMALLEST_SPREAD), varies)

    def transform(self, values: ArrayLike) -> NDArray[np.float64]:
        """Scale values [n, d] to [n, d']."""
        return (_matrix(values, "values")[:, self.varies] - self.mean) / self.spread


@dataclass(frozen=True, eq=False)
class Prototypes:
    r"""The nearest class mean of the support, :math:`\arg\min_c \|v - p_c\|_2`; ties to the lowest.

    classes: [C], ascending; centres: [C, d].
    """

    classes: NDArray[np.int64]
    centres: NDArray[np.float64]

    @classmethod
    def fit(cls, support: ArrayLike, labels: ArrayLike) -> Prototypes:
        """Average support [S, d] by its labels [S]."""
        values, marks = _matrix(support, "support"), np.asarray(labels)
        classes = np.unique(marks)
        return cls(classes, np.stack([values[marks == c].mean(0) for c in classes]))

    def predict(self, queries: ArrayLike) -> NDArray[np.int64]:
        """Classify queries [Q, d] to [Q]."""
        values = _matrix(queries, "queries")
        chosen: NDArray[np.int64] = self.classes[np.argmin(self._squares(values), axis=1)]
        return chosen

    def scores(self, queries: ArrayLike) -> NDArray[np.float64]:
        """Distances to the class means, negative, [Q, C]."""
        return -np.sqrt(self._squares(_matrix(queries, "queries")))

    def _squares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        # Differences and not a product of matrices, so that equal distances come out equal.
        return np.stack([((values - centre) ** 2).sum(1) for centre in self.centres], 1)


@dataclass(frozen=True, eq=False)
class Linear:
    r"""Multinomial logistic regression with balanced classes, solved in the support's row space.

    .. math:: \min_{W, b} \sum_i w_{y_i} \ell_i + \tfrac 1 2 \|W\|_F^2, \quad
        w_c = S / (C S_c)

    The optimal W is a combination of the support's rows, so that S coordinates hold all of the d;
    where d is the smaller, they are the features themselves. classes: [C]; weights: [d, C].
    """

    classes: NDArray[np.int64]
    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    @classmethod
    def fit(cls, support: ArrayLike, labels: ArrayLike) -> Linear:
        """Learn from support [S, d] and its labels [S]."""
        rows, (classes, marks) = _matrix(support, "support"), np.unique(labels, return_inverse=True)
        if rows.shape[1] <= len(rows):
            W = _logistic(rows, marks)
            return cls(classes, W[:-1], W[-1])
        values, vectors = np.linalg.eigh(rows @ rows.T)
        kept = values > values[-1] * 1e-12
        vectors, scale = vectors[:, kept], np.sqrt(values[kept])
        W = _logistic(vectors * scale, marks)
        return cls(classes, rows.T @ ((vectors / scale) @ W[:-1]), W[-1])

    def predict(self, queries: ArrayLike) -> NDArray[np.int64]:
        """Classify queries [Q, d] to [Q]."""
        chosen: NDArray[np.int64] = self.classes[np.argmax(self.scores(queries), axis=1)]
        return chosen

    def scores(self, queries: ArrayLike) -> NDArray[np.float64]:
        """Logits, [Q, C]."""
        return _matrix(queries, "queries") @ self.weights + self.bias


def _logistic(rows: NDArray[np.float64], marks: NDArray[np.int64]) -> NDArray[np.float64]:
    """The optimal weights and, in the last row, biases, [r + 1, C], for rows [S, r]."""
    truth = np.eye(int(marks.max()) + 1)[marks]
    weight = (len(marks) / (truth.shape[1] * truth.sum(0)))[marks]
    problem = _Logistic(np.column_stack([rows, np.ones(len(rows))]), truth, weight)
    start = np.zeros((rows.shape[1] + 1, truth.shape[1]))
    return problem.minimum(start)


@dataclass(frozen=True, eq=False)
class _Logistic:
    """The objective for rows [S, r + 1] that end in a one, which is not penalised."""

    rows: NDArray[np.float64]
    truth: NDArray[np.float64]
    weight: NDArray[np.float64]

    def value(self, W: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], Any]:
        """Loss, gradient [r + 1, C] and probabilities [S, C]."""
        logits = self.rows @ W
        logits -= logits.max(1, keepdims=True)
        shares = np.exp(logits)
        total = shares.sum(1, keepdims=True)
        shares /= total
        loss = self.weight @ (np.log(total[:, 0]) - (logits * self.truth).sum(1))
        grad = self.rows.T @ (self.weight[:, None] * (shares - self.truth))
        grad[:-1] += W[:-1]
        return float(loss + 0.5 * (W[:-1] ** 2).sum()), grad, shares

    def minimum(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Newton's method from W, its equations solved by conjugate gradients, steps halved."""
        loss, grad, shares = self.value(W)
        first = np.abs(grad).max()
        for _ in range(200):
            size = np.abs(grad).max()
            if size < 1e-9 * max(first, 1.0):
                break
            step = self._newton_step(grad, shares, min(0.1, (size / max(first, 1e-300)) ** 0.5))
            length, slope = 1.0, float((grad * step).sum())
            while length > 1e-8:
                tried = W - length * step
                new, *rest = self.value(tried)
                if new <= loss - 1e-4 * length * slope:
                    break
                length /= 2
            else:  # no step lowers the loss any more
                break
            W, loss, (grad, shares) = tried, new, rest
        return W

    def _newton_step(
        self, grad: NDArray[np.float64], shares: Any, tolerance: float
    ) -> NDArray[np.float64]:
        """Conjugate gradients on Hessian times step = grad, scaled by the Hessian's diagonal."""
        curve = self.weight[:, None] * shares
        ridge = np.ones((len(grad), 1))
        ridge[-1] = 1e-9  # biases may all move alike
        inverse = 1 / (self._squares.T @ (curve * (1 - shares)) + ridge)
        step = np.zeros_like(grad)
        left = grad.copy()
        scaled = inverse * left
        toward, strength = scaled, float((left * scaled).sum())
        enough = tolerance * np.linalg.norm(grad)
        for _ in range(grad.size):
            along = self.rows @ toward
            along = curve * along - shares * (curve * along).sum(1, keepdims=True)
            image = self.rows.T @ along + ridge * toward
            reach = strength / float((toward * image).sum())
            step = step + reach * toward
            left = left - reach * image
            if np.linalg.norm(left) <= enough:
                break
            scaled = inverse * left
            before, strength = strength, float((left * scaled).sum())
            toward = scaled + strength / before * toward
        return step

    @cached_property
    def _squares(self) -> NDArray[np.float64]:
        return self.rows**2


HEADS: dict[str, type[Prototypes] | type[Linear]] = {"prototype": Prototypes, "linear": Linear}


def _matrix(values: ArrayLike, what: str) -> NDArray[np.float64]:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(
            f"The {what} must be one row an example; got shape {list(matrix.shape)}. "
            "To fix this, reshape one value an example to [n, 1]."
        )
    return matrix
