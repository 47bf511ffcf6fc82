"""The blocks of vectors in NumPy and SciPy: what compiled code writes, for installs without it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from artlas.blocks.config import DESCRIPTORS, QUANTILES, WAVES

Matrix = NDArray[np.float64]
Colours = NDArray[np.uint64]
_SPREAD = np.array([0.5, 0.5, 0.7, 0.7, 0.3, 0.4, 0.3, 0.15, 0.2])
_WALKS, _ROWS = 1 << 20, 1 << 14  # walks of two steps, and rows of waves, at a time
_STRUCTURE_SCALE, _FEATURE_SCALE, _HOPS = 0.3, 2.0, 3


def write_blocks(
    node_ptr: Tensor,
    row_ptr: Tensor,
    col: Tensor,
    x: Tensor | None,
    out: Tensor,
    rounds: int,
    buckets: int,
) -> None:
    """Write the vectors of graphs in CSR form into out [G, D]."""
    from scipy.sparse import csr_array  # importing artlas stays light

    rows, columns = row_ptr.numpy(), col.numpy()
    for g, (first, last) in enumerate(pairwise(node_ptr.tolist())):
        start, stop = rows[first], rows[last]
        ones, size = np.ones(stop - start), last - first
        index = (ones, columns[start:stop] - first, rows[first : last + 1] - start)
        A = csr_array(index, shape=(size, size))
        X = None if x is None else x[first:last].numpy()
        out.numpy()[g] = np.concatenate(_blocks(A, X, rounds, buckets))


def _blocks(A: Any, X: Any, rounds: int, buckets: int) -> list[Matrix]:
    D, triangles, core = descriptors(A)
    parts = [quantiles(D).ravel(), waves(A, D, X)]
    start = np.zeros(len(D), dtype=np.uint64) if X is None else first_colours(X)
    for shapes in (False, True):
        colours = shape_colours(start, triangles, core) if shapes else start
        for r in range(rounds):
            colours = refine(A, colours, r) if r else colours
            if shapes or r:
                parts.append(count(colours, buckets))
    return parts


def descriptors(A: Any) -> tuple[Matrix, NDArray[np.int64], NDArray[np.int64]]:
    """Compute the descriptors [n, 9], triangles [n] and core numbers [n] of nodes."""
    degree = np.diff(A.indptr).astype(np.float64)
    around, pairs = A @ degree, degree * (degree - 1)
    triangles, returns = walks(A)
    columns = [
        np.log1p(degree),
        np.log1p(around / np.maximum(degree, 1)),
        np.log1p(around),
        np.log1p(triangles),
        np.divide(2 * triangles, pairs, out=np.zeros_like(degree), where=pairs > 0),
        np.log1p(core := core_numbers(A)),
        *returns,
    ]
    return np.column_stack(columns), triangles, core


def walks(A: Any) -> tuple[NDArray[np.int64], list[Matrix]]:
    """Count triangles, and compute the probabilities of a walk to return after 2, 3 and 4 steps.

    Every cycle is found from its node of the highest degree: in a graph of m edges, no hub needs
    more memory than m and no graph more time than m to the power of 1.5.
    """
    n, order = A.shape[0], np.argsort(np.diff(A.indptr), kind="stable")
    A = A[order][:, order]  # so that degrees ascend
    degree = np.diff(A.indptr).astype(np.int64)
    inverse = np.divide(1.0, degree, out=np.zeros(n), where=degree > 0)
    reach, squares = A @ inverse, inverse**2
    triangles, three = np.zeros(n), np.zeros(n)
    # Walks that are no cycles: i - a - i - c - i, and i - a - b - a - i for b other than i.
    four = squares * reach**2 + inverse * (A @ (squares * reach)) - squares * (A @ squares)
    col = A.indices.astype(np.int64)
    high, low = np.repeat(np.arange(n), degree), col
    high, low = high[low < high], low[low < high]
    edges = high * n + low
    parts = np.cumsum(np.bincount(high, degree[low], n)) // _WALKS
    for few in np.split(np.arange(len(high)), np.flatnonzero(np.diff(parts[high])) + 1):
        # Walks t - u - w from t to lower nodes.
        steps = degree[low[few]]
        place = np.arange(steps.sum()) - np.repeat(np.cumsum(steps) - steps, steps)
        w = col[np.repeat(A.indptr[low[few]], steps) + place]
        t, u = np.repeat(high[few], steps), np.repeat(low[few], steps)
        t, u, w = (nodes[w < t] for nodes in (t, u, w))
        ends, at = np.unique(t * n + w, return_inverse=True)
        share = inverse[t] * inverse[u] * inverse[w]
        closed = (w < u) & np.isin(ends, edges, assume_unique=True)[at]
        for nodes in (t, u, w):
            triangles += np.bincount(nodes[closed], minlength=n)
            three += np.bincount(nodes[closed], 2 * share[closed], n)
        share *= np.bincount(at, inverse[u])[at] - inverse[u]  # back by another node than u
        four += np.bincount(t, share, n) + np.bincount(u, 2 * share, n) + np.bincount(w, share, n)
    back = np.empty_like(order)
    back[order] = np.arange(n)
    returns = [values[back] for values in (inverse * reach, three, four)]
    return triangles[back].astype(np.int64), returns


def core_numbers(A: Any) -> NDArray[np.int64]:
    """Peel off nodes of the lowest remaining degree."""
    degree = np.diff(A.indptr).astype(np.int64)
    core, left = np.zeros_like(degree), np.ones(len(degree), dtype=bool)
    level = 0
    while left.any():
        level = max(level, int(degree[left].min()))
        peeled = np.flatnonzero(left & (degree <= level))
        while len(peeled):
            core[peeled], left[peeled] = level, False
            near, edges = np.unique(A[peeled].indices, return_counts=True)
            degree[near] -= edges
            peeled = near[left[near] & (degree[near] <= level)]
    return core


def quantiles(D: Matrix) -> Matrix:
    """Average every descriptor over parts of equal mass of its sorted values, [9, 8]."""
    nodes = len(D)
    grid = np.sort(np.repeat(D, QUANTILES, axis=0), axis=0)
    return grid.reshape(QUANTILES, nodes, len(DESCRIPTORS)).mean(1).T


def waves(A: Any, D: Matrix, X: Any) -> Matrix:
    r"""Average :math:`\cos(H \Omega + b)` over all nodes, [256]."""
    values = [D.astype(np.float32)]
    if X is not None:
        filled = np.maximum((X != 0).sum(1), 1)
        logs = np.sign(X) * np.log1p(np.abs(X.astype(np.float64)))
        values.append(logs / (np.log(2) * np.sqrt(filled))[:, None])
    degree = np.maximum(np.diff(A.indptr).astype(np.float64), 1)[:, None]
    hops = [np.column_stack(values)]
    for _ in range(1, _HOPS):
        hops.append(A @ hops[-1] / degree)
    H, width = np.column_stack(hops), hops[0].shape[1]
    omega = np.concatenate([frequencies(width, hop) for hop in range(_HOPS)])
    parts = (H[i : i + _ROWS] @ omega + phases() for i in range(0, len(H), _ROWS))
    total: Matrix = sum(np.cos(2 * np.pi * angle).sum(0) for angle in parts)
    return total / len(H)


def frequencies(width: int, hop: int) -> Matrix:
    """Return the frequencies, in turns, of the values at a hop, [width, 256]."""
    j, wave = np.arange(width, dtype=np.uint64)[:, None], np.arange(WAVES, dtype=np.uint64)
    keys = (j * np.uint64(_HOPS) + np.uint64(hop)) * np.uint64(WAVES) + wave
    h = scramble(scramble(keys + np.uint64(0x51ED2701)))
    parts = [(h >> np.uint64(16 * k)) & np.uint64(0xFFFF) for k in range(4)]
    normal = (sum((part + 0.5) / 65536 for part in parts) - 2) * np.sqrt(3)
    scale = np.full(width, _FEATURE_SCALE)
    scale[: len(_SPREAD)] = _STRUCTURE_SCALE / _SPREAD
    return normal * scale[:, None] / (2 * np.pi)


def phases() -> Matrix:
    """Return the phases of all waves, in turns, [256]."""
    h = scramble(np.arange(WAVES, dtype=np.uint64) + np.uint64(0x7F4A7C15))
    return (h >> np.uint64(40)) / 16777216.0


def scramble(h: Colours) -> Colours:
    """Map 64-bit numbers one to one to numbers that look random (SplitMix64's finaliser)."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def first_colours(X: Any) -> Colours:
    """Hash the columns that are one; in rows of coded fields, the values of all columns."""
    whole = ((X >= 0) & (X <= 127) & (np.floor(X) == X)).all(1)
    coded = whole & ((X > 1).sum(1) > 1)
    used = np.where(coded[:, None], X != 0, X == 1)
    column = np.arange(1, X.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = column + np.where(used, X - 1, 0).astype(np.uint64)
    return scramble(np.where(used, scramble(keys), np.uint64(0)).sum(1, dtype=np.uint64))


def shape_colours(colours: Colours, triangles: Any, core: Any) -> Colours:
    """Refine colours by up to three triangles and by the core number."""
    t = np.minimum(triangles, 3).astype(np.uint64) + np.uint64(11)
    return scramble(colours + scramble(t) + scramble(core.astype(np.uint64) + np.uint64(31)))


def refine(A: Any, colours: Colours, number: int) -> Colours:
    """One round: hash a node's own colour and the multiset of its neighbours'."""
    mixed = scramble(colours + np.uint64(0x1234567))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed[A.indices], dtype=np.uint64)])
    around = total[A.indptr[1:]] - total[A.indptr[:-1]]
    return scramble(np.uint64(3) * mixed + around + np.uint64(number))


def count(colours: Colours, buckets: int) -> Matrix:
    """Add log(1 + count) of every colour to its bucket, [buckets]."""
    kinds, counts = np.unique(colours, return_counts=True)
    place = scramble(kinds + np.uint64(77)) % np.uint64(buckets)
    return np.bincount(place.astype(np.int64), np.log1p(counts), buckets).astype(np.float64)
