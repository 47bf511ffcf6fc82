"""Means, standard errors and paired differences of accuracies over splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Estimate(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float

    def points(self, signed: bool = False) -> str:
        """Format as percentage points: ``12.3 ± 0.4``."""
        sign = "+" if signed else ""
        return f"{100 * self.mean:{sign}.1f} ± {100 * self.error:.1f}"


def estimate(values: ArrayLike) -> Estimate:
    """Average values over splits; the error is their deviation (n - 1) over the root of n."""
    values = np.asarray(values, dtype=np.float64)
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return Estimate(float(values.mean()), float(error))


def difference(ours: ArrayLike, theirs: ArrayLike) -> Estimate:
    """Estimate the mean paired difference over the same splits."""
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if len(ours) != len(theirs):
        raise ValueError(f"The splits differ: {len(ours)} and {len(theirs)}.")
    return estimate(ours - theirs)


def over_sets(estimates: Sequence[Estimate]) -> Estimate:
    """Average over datasets; the error is that of the mean, the datasets being given."""
    errors: NDArray[np.float64] = np.array([each.error for each in estimates])
    mean = float(np.mean([each.mean for each in estimates]))
    return Estimate(mean, float((errors**2).sum() ** 0.5 / len(errors)))
