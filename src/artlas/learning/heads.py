"""Standardise labelled vectors and classify new ones, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST_SPREAD = 1e-6  # the published floor of a standard deviation


@dataclass(frozen=True, eq=False)
class SupportScaler:
    r"""Standardise by the support alone, dropping the columns that are constant on it.

    .. math:: (v_j - m_j) / \max(s_j, 10^{-6}), \quad m, s \text{ over the support, } s \text{
        with denominator } S

    A constant column says nothing about the classes, and dividing by the floor would let it
    dominate the others. mean, spread: [d']; varies: bool [d], true for the d' kept columns.
    """

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    varies: NDArray[np.bool_]

    @classmethod
    def fit(cls, support: ArrayLike) -> SupportScaler:
        """Fit to support [S, d]."""
        values = _matrix(support, "support")
        varies = values.max(0) != values.min(0)
        kept = values[:, varies]
        return cls(kept.mean(0), np.maximum(kept.std(0), SMALLEST_SPREAD), varies)

    def transform(self, values: ArrayLike) -> NDArray[np.float64]:
        """Scale values [n, d] to [n, d']."""
        return (_matrix(values, "values")[:, self.varies] - self.mean) / self.spread


@dataclass(frozen=True, eq=False)
class Prototypes:
    r"""Predict the class of the nearest mean, :math:`\arg\min_c \|v - p_c\|_2`.

    Ties go to the lowest class. classes: [C], ascending; centres: [C, d].
    """

    classes: NDArray[np.int64]
    centres: NDArray[np.float64]

    @classmethod
    def fit(cls, support: ArrayLike, labels: ArrayLike) -> Prototypes:
        """Average support [S, d] per class of labels [S]."""
        values, targets = _matrix(support, "support"), np.asarray(labels)
        classes = np.unique(targets)
        return cls(classes, np.stack([values[targets == c].mean(0) for c in classes]))

    def predict(self, queries: ArrayLike) -> NDArray[np.int64]:
        """Classify queries [Q, d] to [Q]."""
        values = _matrix(queries, "queries")
        return self.classes.take(np.argmin(self._squares(values), axis=1))

    def scores(self, queries: ArrayLike) -> NDArray[np.float64]:
        """Return the negative distances to the class means, [Q, C]."""
        return -np.sqrt(self._squares(_matrix(queries, "queries")))

    def _squares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        # Differences instead of a matrix product, so that equal distances have equal bits.
        return np.stack([((values - centre) ** 2).sum(1) for centre in self.centres], 1)


@dataclass(frozen=True, eq=False)
class Linear:
    r"""Classify by balanced multinomial logistic regression, solved in the support's row space.

    .. math:: \min_{W, b} \sum_i w_{y_i} \ell_i + \tfrac 1 2 \|W\|_F^2, \quad
        w_c = S / (C S_c)

    The optimal W is a combination of the support's rows, so S coordinates suffice where S < d.
    classes: [C]; weights: [d, C]; bias: [C].
    """

    classes: NDArray[np.int64]
    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    @classmethod
    def fit(cls, support: ArrayLike, labels: ArrayLike) -> Linear:
        """Fit to support [S, d] and its labels [S]."""
        rows = _matrix(support, "support")
        classes, targets = np.unique(labels, return_inverse=True)
        if rows.shape[1] <= len(rows):
            W = _logistic(rows, targets)
            return cls(classes, W[:-1], W[-1])
        values, vectors = np.linalg.eigh(rows @ rows.T)
        kept = values > values[-1] * 1e-12
        vectors, scale = vectors[:, kept], np.sqrt(values[kept])
        W = _logistic(vectors * scale, targets)
        return cls(classes, rows.T @ ((vectors / scale) @ W[:-1]), W[-1])

    def predict(self, queries: ArrayLike) -> NDArray[np.int64]:
        """Classify queries [Q, d] to [Q]."""
        return self.classes.take(np.argmax(self.scores(queries), axis=1))

    def scores(self, queries: ArrayLike) -> NDArray[np.float64]:
        """Return the logits, [Q, C]."""
        return _matrix(queries, "queries") @ self.weights + self.bias


def _logistic(rows: NDArray[np.float64], targets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Find the optimal weights [r, C] for rows [S, r], with the biases as an extra last row.

    Newton's method with conjugate gradients and step halving.
    """
    one_hot = np.eye(int(targets.max()) + 1)[targets]
    weight = (len(targets) / (one_hot.shape[1] * one_hot.sum(0)))[targets]
    problem = _Logistic(np.column_stack([rows, np.ones(len(rows))]), one_hot, weight)
    W = np.zeros((rows.shape[1] + 1, one_hot.shape[1]))
    loss, grad, shares = problem.value(W)
    first = np.abs(grad).max()
    for _ in range(200):
        size = np.abs(grad).max()
        if size < 1e-9 * max(first, 1.0):
            break
        step = problem.newton_step(grad, shares, min(0.1, (size / max(first, 1e-300)) ** 0.5))
        length, slope = 1.0, float((grad * step).sum())
        while length > 1e-8:
            candidate = W - length * step
            new, *rest = problem.value(candidate)
            if new <= loss - 1e-4 * length * slope:
                break
            length /= 2
        else:  # no step lowers the loss further
            break
        W, loss, (grad, shares) = candidate, new, rest
    return W


@dataclass(frozen=True, eq=False)
class _Logistic:
    """The objective for rows [S, r + 1] that end in a one, whose weight is not penalised."""

    rows: NDArray[np.float64]
    one_hot: NDArray[np.float64]
    weight: NDArray[np.float64]

    def value(self, W: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], Any]:
        """Compute the loss, its gradient [r + 1, C] and the probabilities [S, C]."""
        logits = self.rows @ W
        logits -= logits.max(1, keepdims=True)
        shares = np.exp(logits)
        total = shares.sum(1, keepdims=True)
        shares /= total
        loss = self.weight @ (np.log(total[:, 0]) - (logits * self.one_hot).sum(1))
        grad = self.rows.T @ (self.weight[:, None] * (shares - self.one_hot))
        grad[:-1] += W[:-1]
        return float(loss + 0.5 * (W[:-1] ** 2).sum()), grad, shares

    def newton_step(self, grad: Any, shares: Any, tolerance: float) -> NDArray[np.float64]:
        """Solve Hessian x step = grad by conjugate gradients, preconditioned by the diagonal."""
        weighted = self.weight[:, None] * shares
        ridge = np.ones((len(grad), 1))
        ridge[-1] = 1e-9  # a common shift of all biases changes nothing
        inverse = 1 / ((self.rows**2).T @ (weighted * (1 - shares)) + ridge)
        step, residual = np.zeros_like(grad), grad.copy()
        scaled = inverse * residual
        direction, norm = scaled, float((residual * scaled).sum())
        enough = tolerance * np.linalg.norm(grad)
        for _ in range(grad.size):
            along = self.rows @ direction
            along = weighted * along - shares * (weighted * along).sum(1, keepdims=True)
            image = self.rows.T @ along + ridge * direction
            length = norm / float((direction * image).sum())
            step = step + length * direction
            residual = residual - length * image
            if np.linalg.norm(residual) <= enough:
                break
            scaled = inverse * residual
            previous, norm = norm, float((residual * scaled).sum())
            direction = scaled + norm / previous * direction
        return step


HEADS: dict[str, type[Prototypes] | type[Linear]] = {"prototype": Prototypes, "linear": Linear}


def _matrix(values: ArrayLike, what: str) -> NDArray[np.float64]:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        wrong = f"The {what} must be one row per example; got shape {list(matrix.shape)}."
        raise ValueError(f"{wrong} To fix this, reshape one value per example to [n, 1].")
    return matrix
