"""How far probabilities are from the accuracy they promise: the expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 15


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions by the probability of the predicted class, in bins of equal width.

    counts, confidence, hits: [15], the number of predictions, and the sums of their probabilities
    and of those that are right. Those of several test parts add up.
    """

    counts: NDArray[np.float64]
    confidence: NDArray[np.float64]
    hits: NDArray[np.float64]

    @classmethod
    def of(cls, probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> Reliability:
        """Sort predictions with probabilities [n, C] of graphs with labels [n] into bins.

        A bin includes its upper end: (0, 1/15], ..., (14/15, 1].
        """
        confidence = probabilities.max(1)
        right = (probabilities.argmax(1) == labels).astype(np.float64)
        place = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
        sums = [np.bincount(place, w, minlength=BINS) for w in (None, confidence, right)]
        return cls(*(np.asarray(each, dtype=np.float64) for each in sums))

    def __add__(self, other: Reliability) -> Reliability:
        """Join the predictions of two test parts."""
        return Reliability(
            self.counts + other.counts, self.confidence + other.confidence, self.hits + other.hits
        )

    @property
    def error(self) -> float:
        r""":math:`\sum_b |\text{confidence}_b - \text{hits}_b| / n`, over bins."""
        return float(np.abs(self.confidence - self.hits).sum() / self.counts.sum())
