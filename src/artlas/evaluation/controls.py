"""Representations without a model, which a learned one has to beat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs

Matrix = NDArray[np.float64]


def sum_pool(graphs: Graphs) -> Matrix:
    r"""Sum the features of every graph, :math:`\sum_i X_i`, [G, d], or count its nodes."""
    if graphs.x is None:
        return _sizes(graphs)[:, None]
    x: Matrix = graphs.x.numpy().astype(np.float64)
    return np.add.reduceat(x, graphs.node_ptr[:-1].numpy())


def mean_pool(graphs: Graphs) -> Matrix:
    r"""Average the features of every graph, :math:`\frac 1 N \sum_i X_i`, [G, d]."""
    return sum_pool(graphs) / _sizes(graphs)[:, None]


def degree_histogram(graphs: Graphs, bins: int = 12) -> Matrix:
    """Compute the fraction of nodes of degree 0, 1, ..., and at least bins - 1, [G, bins]."""
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes.numpy())
    degree = np.minimum(graphs.degree.numpy().astype(np.int64), bins - 1)
    counts = np.bincount(owner * bins + degree, minlength=len(graphs) * bins)
    return counts.reshape(-1, bins) / _sizes(graphs)[:, None]


def size(graphs: Graphs) -> Matrix:
    r"""Compute :math:`[\log N, \log(1 + |E|)]` of every graph, [G, 2]."""
    entries = np.diff(graphs.row_ptr.numpy()[graphs.node_ptr.numpy()])
    counts: Matrix = np.column_stack([_sizes(graphs), 1 + entries / 2])
    return np.log(counts)


def _sizes(graphs: Graphs) -> Matrix:
    return graphs.sizes.numpy().astype(np.float64)


CONTROLS: dict[str, Callable[[Graphs], Matrix]] = {
    "sum pool of X": sum_pool,
    "mean pool of X": mean_pool,
    "degree histogram": degree_histogram,
    "log(nodes, edges)": size,
}
