"""Make graphs undirected, loop-free, coalesced and binary, and report what was changed."""

from __future__ import annotations

import warnings
from collections import Counter, namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from artlas import kernels
from artlas.errors import GraphCleaningWarning, raise_graph_error
from artlas.graphs.validation import check_total

_CHANGES = {
    "one_way": "one-way edges completed",
    "duplicates": "duplicate entries merged",
    "loops": "self-loops dropped",
    "weights": "edge weights ignored",
    "attributes": "graphs whose edge attributes were dropped",
}


def canonical(
    sizes: Sequence[int],
    edges: Sequence[Any],
    changes: Counter[str],
    undirected: bool = False,
    first: int = 0,
) -> tuple[Tensor, Tensor]:
    """Return row_ptr and col of edges [2, E_g]: A = [A_in or A_in^T] without diagonal.

    The nodes of every graph are numbered from ``first``. What had to be changed is counted in
    ``changes``; if edges are ``undirected``, one that is listed in one direction is no change.
    """
    total = sum(sizes)
    check_total(total)
    if len(edges) == 1 and edges[0].dtype == np.int32:
        ends = edges[0]
    else:
        ends = np.empty((2, sum(part.shape[1] for part in edges)), dtype=np.int32)
        node = entry = 0
        for n, part in zip(sizes, edges, strict=True):
            span = ends[:, entry : entry + part.shape[1]]
            span[:] = part
            span += node
            node, entry = node + n, entry + part.shape[1]
    native = kernels.native_data()
    rows = (_sparse_rows if native is None else native.canonical)(ends, total, first)
    if rows is None:
        raise IndexError(f"A node is out of range: there are {total}, counted from {first}.")
    count_changes(rows, changes, undirected)
    return torch.from_numpy(rows.row_ptr), torch.from_numpy(rows.col)


def count_changes(rows: Any, changes: Counter[str], undirected: bool = False) -> None:
    """Add what was changed to make these rows canonical."""
    changes["duplicates"] += rows.duplicates
    if rows.loops:
        changes["loops"] += rows.loops
    if rows.one_way and not undirected:
        changes["one_way"] += rows.one_way


_Rows = namedtuple("_Rows", ("row_ptr", "col", "loops", "duplicates", "one_way"))


def _sparse_rows(ends: Any, total: int, first: int) -> _Rows | None:
    """Return what the compiled code makes of entries [2, E], by SciPy."""
    from scipy.sparse import coo_array

    if ends.size and (ends.min() < first or ends.max() >= total + first):
        return None
    kept = ends[:, ends[0] != ends[1]] - first
    # Boolean, because SciPy sums duplicates, and a small integer would wrap around to zero.
    ones = np.ones(kept.shape[1], dtype=bool)
    a = coo_array((ones, (kept[0], kept[1])), shape=(total, total)).tocsr()
    loops, duplicates = ends.shape[1] - kept.shape[1], kept.shape[1] - a.nnz
    del kept, ones
    reverse = a.T.tocsr()
    same = np.array_equal(a.indptr, reverse.indptr) and np.array_equal(a.indices, reverse.indices)
    # |A or A^T| - |A| = |A| - |A and A^T|: the entries whose reverse is absent.
    either = a if same else a.maximum(reverse)
    row_ptr, col = either.indptr.astype(np.int64), either.indices.astype(np.int32, copy=False)
    return _Rows(row_ptr, col, loops, duplicates, either.nnz - a.nnz)


def announce(changes: Counter[str], strict: bool, stacklevel: int = 4) -> None:
    """Warn of what was changed, or refuse it."""
    parts = [f"{text}: {changes[key]:,}" for key, text in _CHANGES.items() if changes[key]]
    got = ", ".join(parts)
    if parts and strict:
        raise_graph_error("the graphs are not canonical and strict=True", got, "clean them")
    if parts:
        warnings.warn(
            f"graphs were made undirected, loop-free, coalesced and binary ({got}). "
            "strict=True refuses such input; warnings.simplefilter('ignore', "
            "artlas.GraphCleaningWarning) silences this.",
            GraphCleaningWarning,
            stacklevel=stacklevel,
        )
