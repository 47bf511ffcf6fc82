"""Random sparse graphs for measurements and sanity checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def random_edges(rng: np.random.Generator, nodes: int, degree: float) -> NDArray[Any]:
    """Draw about nodes * degree / 2 distinct pairs of nodes, in both directions, [2, E]."""
    wanted = min(round(nodes * degree / 2), nodes * (nodes - 1) // 2)
    codes = np.empty(0, dtype=np.int64)
    while len(codes) < wanted:
        drawn = rng.integers(0, nodes, size=(2, wanted - len(codes) + 16))
        drawn = np.sort(drawn[:, drawn[0] != drawn[1]], axis=0)
        codes = np.unique(np.concatenate([codes, drawn[0] * nodes + drawn[1]]))
    codes = rng.permutation(codes)[:wanted]
    low, high = np.divmod(codes, nodes)
    return np.stack([np.concatenate([low, high]), np.concatenate([high, low])])
