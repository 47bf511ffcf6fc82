"""NumPy archives (.npz): a SciPy matrix, an edge_index, or a square array, as one graph."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.files.untrusted import read_npz
from artlas.graphs.convert import drop_weights
from artlas.graphs.validation import SQUARE_FIX
from artlas.io.assembly import Reading, assemble, check_announced

_SAVE = "write it anew by scipy.sparse.save_npz"


def read(path: Path) -> Reading:
    """Read one graph from an archive of SciPy, or of NumPy with edge_index or a square array."""
    arrays, changes = read_npz(path), Counter[str]()
    more: dict[str, Any]
    more = {name: arrays.pop(name) for name in ("x", "y", "num_nodes") if name in arrays}
    if "format" in arrays:
        used, guess = {"format", "shape", "data", "indices", "indptr", "row", "col"}, "SciPy"
        name, n, edges, weights = "the matrix", *_sparse_matrix(path, arrays)
    elif "edge_index" in arrays:
        used, guess = {"edge_index", "edge_weight"}, "edge_index"
        name, n, edges, weights = "edge_weight", *_edge_index(path, arrays, more)
    else:
        matrices = [name for name, array in arrays.items() if array.ndim == 2]
        if "adjacency" not in arrays and len(matrices) != 1:
            got = f"arrays {quoted(sorted([*arrays, *more]))}"
            fix = "save edge_index [2, E], adjacency [n, n], or a matrix by scipy.sparse.save_npz"
            raise_read_error(path, "the archive holds no graph that is known", got, fix)
        name = "adjacency" if "adjacency" in arrays else matrices[0]
        used, array, name = {name}, arrays[name], f"array {name!r}"
        guess = f"{name} is an adjacency"
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise_read_error(path, f"{name} is not square", f"shape {[*array.shape]}", SQUARE_FIX)
        n, edges = len(array), np.stack(array.nonzero())
        weights = array[*edges]
    check_announced(path, n, path.stat().st_size)
    if edges.size and (edges.min() < 0 or edges.max() >= n):
        got = f"{edges.min()} to {edges.max()} with {n} nodes"
        raise_read_error(path, "a node id is out of range", got, "number the nodes from 0")
    edges = drop_weights(edges, weights, changes, name)
    ignored = sorted(set(arrays) - {*used, "_is_array"})
    guesses = [guess, *(f"array {quoted(name)} ignored" for name in ignored[:8])]
    x, y = more.get("x"), more.get("y")
    return assemble([n], edges, undirected=False, x=x, y=y, guesses=guesses, changes=changes)


def _integers(path: Path, arrays: dict[str, Any], name: str, ndim: int) -> NDArray[np.int64]:
    array = arrays.get(name)
    if array is None:
        raise_read_error(path, f"array {name!r} is missing", f"{quoted(sorted(arrays))}", _SAVE)
    if array.ndim != ndim or array.dtype.kind not in "iu":
        wrong = f"array {name!r} is no integer array of {ndim} dimensions"
        raise_read_error(path, wrong, f"{array.dtype} of shape {list(array.shape)}", _SAVE)
    if array.size and int(array.max()) >= 2**63:
        raise_read_error(path, f"array {name!r} is out of range", f"{array.max()}", _SAVE)
    return array.astype(np.int64)


def _sparse_matrix(path: Path, arrays: dict[str, Any]) -> tuple[int, NDArray[Any], NDArray[Any]]:
    """Read what ``scipy.sparse.save_npz`` stored, without SciPy.

    SciPy does not check ``indptr`` of a matrix without entries, and then writes out of bounds.
    """
    label = arrays["format"]
    text = label.tobytes().replace(b"\0", b"") if label.dtype.kind in "SU" else b""
    layout = text.decode("ascii", "replace")
    if layout not in ("csr", "csc", "coo") or label.ndim:
        wrong, fix = "the sparse format is not csr, csc or coo", "save matrix.tocsr() instead"
        raise_read_error(path, wrong, quoted(layout), fix)
    shape = _integers(path, arrays, "shape", 1).tolist()
    if len(shape) != 2 or shape[0] != shape[1]:
        raise_read_error(path, "the matrix is not square", f"shape {shape}", SQUARE_FIX)
    n, data = shape[0], arrays.get("data")
    check_announced(path, n, path.stat().st_size)
    if data is None or data.ndim != 1:
        raise_read_error(path, "array 'data' is missing or not flat", quoted(sorted(arrays)), _SAVE)
    if layout == "coo":
        row, col = (_integers(path, arrays, name, 1) for name in ("row", "col"))
    else:
        ptr, col = (_integers(path, arrays, name, 1) for name in ("indptr", "indices"))
        within = ((ptr >= 0) & (ptr <= len(col))).all()  # so that differences cannot overflow
        ends_fit = len(ptr) == n + 1 and ptr[0] == 0 and ptr[-1] == len(col)
        if not (within and ends_fit and (np.diff(ptr) >= 0).all()):
            got = f"{len(ptr)} pointers for {n} rows and {len(col)} entries"
            raise_read_error(path, "array 'indptr' does not fit", got, _SAVE)
        row = np.repeat(np.arange(n), np.diff(ptr))
        row, col = (row, col) if layout == "csr" else (col, row)
    if not len(row) == len(col) == len(data):
        got = f"{len(row)} rows, {len(col)} columns and {len(data)} values"
        raise_read_error(path, "the arrays differ in length", got, _SAVE)
    return n, np.stack([row, col]), data


def _edge_index(
    path: Path, arrays: dict[str, Any], more: dict[str, Any]
) -> tuple[int, NDArray[Any], NDArray[Any]]:
    edges = _integers(path, arrays, "edge_index", 2)
    if len(edges) != 2:
        fix = "stack sources and targets as its two rows"
        raise_read_error(path, "edge_index is not of shape [2, E]", f"{list(edges.shape)}", fix)
    if "num_nodes" in more:
        n = int(_integers(path, more, "num_nodes", 0))
    elif "x" in more and more["x"].ndim == 2:
        n = len(more["x"])
    else:
        n = int(edges.max()) + 1 if edges.size else 0
    weights = arrays.get("edge_weight", np.ones(edges.shape[1], dtype=bool))
    if weights.shape != edges.shape[1:]:
        got = f"shape {list(weights.shape)} for {edges.shape[1]} edges"
        raise_read_error(path, "edge_weight has the wrong length", got, "save one weight per edge")
    return n, edges, np.where(weights == 0, 2, weights)  # an edge is there whatever its weight
