"""Choose the centre nodes of ego-graphs: at most so many of every class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import raise_graph_error
from artlas.graphs.validation import as_array
from artlas_paper.protocol import CENTRE_SEED, CENTRES


def choose_centres(
    labels: Any, per_class: int | None = CENTRES, seed: int = CENTRE_SEED
) -> NDArray[np.int64]:
    """Choose at most ``per_class`` nodes of every class, the same for a seed, in shuffled order.

    None: all nodes in their order. Nodes with a negative label have no class and are left out.
    """
    y = as_array(labels, "labels")
    if y.ndim != 1 or y.dtype.kind not in "iu":
        got = f"{y.dtype} of shape {list(y.shape)}"
        raise_graph_error("labels must be one integer per node", got, "number the classes from 0")
    if per_class is None:
        return np.flatnonzero(y >= 0)
    rng = np.random.default_rng(seed)
    chosen: list[int] = []
    for label in np.unique(y[y >= 0]):
        members = np.flatnonzero(y == label)
        if len(members) > per_class:
            members = rng.choice(members, per_class, replace=False)
        chosen += members.tolist()
    rng.shuffle(chosen)
    return np.array(chosen, dtype=np.int64)
