"""Turn scores into probabilities by one temperature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

_TYPICAL = 3.0  # a sharpness to expect before seeing a score
_SHARPNESS = (0.01, 1000.0)


def fit_sharpness(
    scores: NDArray[np.float64], targets: NDArray[np.int64], weights: NDArray[np.float64]
) -> float:
    r"""Find the t with which softmax(t scores) predicts held-out rows best.

    .. math:: \min_t \sum_i w_i \ell(t s_i, \tilde y_i) + (\log t - \log 3)^2 / 2

    on scores [n, C] of rows that did not take part in their own score. The penalty, worth about
    one row, and targets smoothed by 1 / (n + 2) keep t finite where all rows are predicted well
    and positive where they are not: the most probable class is always that of the highest score.
    """
    count, classes = scores.shape
    smooth = np.full((count, classes), 1 / (count + 2) / classes)
    smooth[np.arange(count), targets] += 1 - 1 / (count + 2)

    def loss(log_sharpness: float) -> float:
        logs = log_softmax(np.exp(log_sharpness) * scores, axis=1)
        penalty = (log_sharpness - np.log(_TYPICAL)) ** 2 / 2
        return float(penalty - weights @ (smooth * logs).sum(1))

    found = minimize_scalar(loss, bounds=np.log(_SHARPNESS), method="bounded")
    return float(np.exp(found.x))


def probabilities(scores: NDArray[np.float64], sharpness: float) -> NDArray[np.float64]:
    """Compute softmax(sharpness x scores), [n, C]."""
    return np.asarray(softmax(sharpness * scores, axis=1))
