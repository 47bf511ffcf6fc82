"""Distances between a graph's coordinates, couplings and features before and after rewiring."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
EPSILON = 1e-12


def cosine_distance(first: Values, second: Values) -> Values:
    """Compute 1 - cos of rows, [n], as half the squared distance of unit vectors.

    This avoids the cancellation of the direct formula.
    """
    units = []
    for rows in (first, second):
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        units.append(rows / np.where(length > 0, length, 1))
    return ((units[0] - units[1]) ** 2).sum(1) / 2


def coupling_change(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Average over bases the relative change of couplings [K, N, M]."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    moved, whole = (np.sqrt((part**2).sum((1, 2))) for part in (a - b, a))
    return float((moved / (whole + EPSILON)).mean())


def standardised_distance(before: Values, after: Values) -> Values:
    """Compute how far q [n, K] moved, relative to the RMS distance of two objects, [n].

    Both are standardised per base by the mean and deviation of ``before``; bases without any
    deviation are left out.
    """
    spread = before.std(0)
    kept = spread > 1e-12 * np.abs(before).max(initial=1e-300)
    moved = np.sqrt((((after - before)[:, kept] / spread[kept]) ** 2).sum(1))
    count = len(before)
    typical = np.sqrt(2 * kept.sum() * count / (count - 1))
    return moved / typical if kept.any() else moved


def interval(values: Values) -> tuple[float, float]:
    """Compute the mean, and half the width of its 95 % interval by Student's t."""
    from scipy.stats import t as student

    count = len(values)
    error = values.std(ddof=1) / count**0.5
    return float(values.mean()), float(student.ppf(0.975, count - 1) * error)
