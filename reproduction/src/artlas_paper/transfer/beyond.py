"""Rows beyond the paper: the library's vector of blocks, which no model makes, and its own head.

They are evaluated on the same episodes as the paper's rows, and take the place of none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import artlas
from artlas.evaluation.accuracy import Classify
from artlas_paper.protocol import Level

METHOD = "beyond-paper"  # of the rows' records


def kernel_head(
    support: NDArray[np.float64], labels: NDArray[Any], query: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Fit :class:`artlas.GraphClassifier`, with no setting, to the support; classify queries."""
    fitted = artlas.GraphClassifier(blocks=artlas.blocks.layout()).fit(support, labels)
    predicted: NDArray[np.int64] = fitted.predict(query)
    return predicted


# The head of every row; None is the protocol's, as for the paper's rows.
BEYOND: Mapping[Level, Mapping[str, Classify | None]] = {
    "graph": {"blocks": None, "blocks-kernel": kernel_head},
    "node": {},
}
