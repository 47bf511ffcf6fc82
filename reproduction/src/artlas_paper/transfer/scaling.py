"""The ways in which the tables standardise representations before a head."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.evaluation.accuracy import Classify
from artlas.learning.heads import HEADS, SMALLEST_SPREAD, Linear

Scaling = Literal["double", "single", "none"]


def scaled_head(head: str, scaling: Scaling) -> str | Classify:
    """Return a head, for :func:`artlas.evaluation.evaluate`, after a way of standardising.

    ``double`` standardises with :class:`artlas.learning.heads.SupportScaler`. ``single`` is the
    published arithmetic: float32, with columns kept that are constant on the support, which can
    ruin it. ``none`` leaves the values as they are, which suits the coordinates of a kernel.
    """
    if scaling not in get_args(Scaling):
        raise ValueError(f"Scaling is one of {', '.join(get_args(Scaling))}, got {scaling!r}.")
    if scaling == "double":
        return head

    def classify(
        support: NDArray[np.float64], labels: NDArray[Any], query: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        if scaling == "single":
            return _predict_single(support, labels, query, head)
        return HEADS[head].fit(support, labels).predict(query)

    return classify


def _predict_single(
    support: NDArray[np.float64], labels: NDArray[Any], query: NDArray[np.float64], head: str
) -> NDArray[np.int64]:
    """Predict with the published arithmetic: float32, floored deviations, ``torch.cdist``."""
    learn, test = torch.from_numpy(support).float(), torch.from_numpy(query).float()
    mean, spread = learn.mean(0), learn.std(0, unbiased=False).clamp_min(SMALLEST_SPREAD)
    learn, test = (learn - mean) / spread, (test - mean) / spread
    if head == "linear":
        return Linear.fit(learn.numpy(), labels).predict(test.numpy())
    classes = np.unique(labels)
    centres = torch.stack([learn[torch.from_numpy(labels == c)].mean(0) for c in classes])
    predicted: NDArray[np.int64] = classes[torch.cdist(test, centres).argmin(1).numpy()]
    return predicted
