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


def log_sum_pool(graphs: Graphs) -> Matrix:
    r"""Compute :math:`\operatorname{sgn}(s) \log(1 + |s|)` of the sums s of features, [G, d]."""
    return _signed_log(sum_pool(graphs))


def degree_roles(graphs: Graphs, roles: int = 8) -> Matrix:
    """Sum features and degrees over roles, parts of equal mass by degree, [G, roles (d + 1)].

    Role r of a graph has the nodes from r N / roles to (r + 1) N / roles; nodes of equal degree
    have equal shares in the roles that they span. Of sums s it is sgn(s) log(1 + |s|).
    """
    degree = graphs.degree.numpy().astype(np.float64)
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes.numpy())
    order = np.lexsort((degree, owner))
    values = np.log1p(degree)[:, None]
    if graphs.x is not None:
        values = np.column_stack([graphs.x.numpy().astype(np.float64), values])
    changes = (np.diff(degree[order]) != 0) | (np.diff(owner[order]) != 0)
    first = np.concatenate([[0], np.flatnonzero(changes) + 1])  # of nodes of equal degree
    count = np.diff([*first, len(owner)])
    size = _sizes(graphs)[owner[order][first]]
    low = (first - graphs.node_ptr.numpy()[owner[order][first]]) * roles / size
    high = low + count * roles / size
    totals, starts = np.add.reduceat(values[order], first), np.flatnonzero(low == 0)
    pooled = []
    for role in range(roles):
        share = np.clip(np.minimum(high, role + 1) - np.maximum(low, role), 0, None)
        pooled.append(np.add.reduceat(totals * (share * size / roles / count)[:, None], starts))
    return _signed_log(np.concatenate(pooled, axis=1))


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


def _signed_log(values: Matrix) -> Matrix:
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))


def _sizes(graphs: Graphs) -> Matrix:
    return graphs.sizes.numpy().astype(np.float64)


CONTROLS: dict[str, Callable[[Graphs], Matrix]] = {
    "sum pool of X": sum_pool,
    "mean pool of X": mean_pool,
    "degree histogram": degree_histogram,
    "log(nodes, edges)": size,
}
