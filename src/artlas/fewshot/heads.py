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


def _matrix(values: ArrayLike, what: str) -> NDArray[np.float64]:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(
            f"The {what} must be one row an example; got shape {list(matrix.shape)}. "
            "To fix this, reshape one value an example to [n, 1]."
        )
    return matrix
