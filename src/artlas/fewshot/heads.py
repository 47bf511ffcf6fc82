"""What learns from the support of an episode and classifies its queries, in float64."""

from __future__ import annotations

from dataclasses import dataclass

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
        # Differences and not a product of matrices, so that equal distances come out equal.
        distances = [((values - centre) ** 2).sum(1) for centre in self.centres]
        chosen: NDArray[np.int64] = self.classes[np.argmin(distances, axis=0)]
        return chosen


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
        logits = _matrix(queries, "queries") @ self.weights + self.bias
        chosen: NDArray[np.int64] = self.classes[np.argmax(logits, axis=1)]
        return chosen


def _logistic(rows: NDArray[np.float64], marks: NDArray[np.int64]) -> NDArray[np.float64]:
    """The optimal weights and, in the last row, biases, [r + 1, C], for rows [S, r]."""
    from scipy.optimize import minimize

    truth = np.eye(int(marks.max()) + 1)[marks]
    weight = (len(marks) / (truth.shape[1] * truth.sum(0)))[marks]

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        W = flat.reshape(-1, truth.shape[1])
        logits = rows @ W[:-1] + W[-1]
        logits -= logits.max(1, keepdims=True)
        total = np.exp(logits).sum(1, keepdims=True)
        loss = weight @ (np.log(total[:, 0]) - (logits * truth).sum(1))
        error = weight[:, None] * (np.exp(logits) / total - truth)
        grad = np.concatenate([rows.T @ error + W[:-1], error.sum(0)[None]])
        return loss + 0.5 * (W[:-1] ** 2).sum(), grad.ravel()

    start = np.zeros((rows.shape[1] + 1) * truth.shape[1])
    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-13, "gtol": 1e-6}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(-1, truth.shape[1])


HEADS: dict[str, type[Prototypes] | type[Linear]] = {"prototype": Prototypes, "linear": Linear}


def _matrix(values: ArrayLike, what: str) -> NDArray[np.float64]:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(
            f"The {what} must be one row an example; got shape {list(matrix.shape)}. "
            "To fix this, reshape one value an example to [n, 1]."
        )
    return matrix
