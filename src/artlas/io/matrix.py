"""Adjacency matrices: Matrix Market text, and .npz of SciPy or NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.files.untrusted import read_bytes
from artlas.files.untrusted import read_npz as read_arrays
from artlas.io.assembly import Reading, assemble, check_announced
from artlas.io.number_tables import parse_numbers

_BANNER = "%%MatrixMarket matrix coordinate pattern symmetric"
_FIELDS = {
    "pattern": None,
    "integer": np.int64,
    "unsigned-integer": np.int64,
    "real": np.float64,
    "double": np.float64,
}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_SQUARE = "store an [n, n] matrix (for a bipartite block B, [[0, B], [B.T, 0]])"
_SAVE = "write it anew by scipy.sparse.save_npz"


@dataclass(frozen=True)
class _Banner:
    coordinate: bool
    field: str
    symmetry: str


def read_market(path: Path) -> Reading:
    """Read one graph from a Matrix Market file; the stored entries that are not zero are edges."""
    data = read_bytes(path)
    banner = _read_banner(path, data)
    line, sizes = _read_sizes(path, data, 3 if banner.coordinate else 2)
    n = sizes[0]
    if n != sizes[1]:
        raise_read_error(path, "the matrix is not square", f"shape {sizes[:2]}", _SQUARE, line)
    check_announced(path, n, len(data), line)
    changes: Counter[str] = Counter()
    if banner.coordinate:
        edges, values = _coordinates(path, data, banner, line, n, sizes[2])
    else:
        edges, values = _dense(path, data, banner, line, n)
    edges = _weighed(path, edges, values, changes)
    symmetric = banner.symmetry != "general"
    guesses = [banner.symmetry, "coordinate" if banner.coordinate else "array"]
    return assemble([n], [edges], undirected=symmetric, guesses=guesses, changes=changes)


def _read_banner(path: Path, data: bytes) -> _Banner:
    first = data[:1024].split(b"\n", 1)[0].decode("ascii", "replace")
    words = first.lower().split()
    fix = f"begin the file with e.g. {_BANNER!r}"
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise_read_error(path, "the first line is no Matrix Market banner", quoted(first), fix, 1)
    if words[3] == "complex" or words[4] == "hermitian":
        fix = "store the real adjacency, without its phases"
        raise_read_error(path, "the entries are complex", quoted(first), fix, 1)
    known = (("coordinate", "array"), tuple(_FIELDS), _SYMMETRIES)
    for word, allowed in zip(words[2:], known, strict=True):
        if word not in allowed:
            fix = f"use one of {', '.join(allowed)}"
            raise_read_error(path, "the banner has an unknown word", quoted(word), fix, 1)
    if words[2] == "array" and words[3] == "pattern":
        raise_read_error(path, "an array has no pattern", quoted(first), "use integer or real", 1)
    return _Banner(words[2] == "coordinate", words[3], words[4])


def _read_sizes(path: Path, data: bytes, count: int) -> tuple[int, list[int]]:
    """The number of the line of sizes, and the sizes."""
    at, line, text = data.find(b"\n") + 1, 1, b""
    while 0 < at < len(data) and (not text or text.startswith(b"%")):
        end = data.find(b"\n", at) % (len(data) + 1)  # the end of the data where there is no more
        text = data[at:end].strip()
        at, line = end + 1, line + 1
    words = text.split()
    if len(words) != count or not all(w.isdigit() and len(w) < 19 for w in words):
        fix = f"write {' '.join(['rows', 'columns', 'entries'][:count])} there"
        got = quoted(text.decode("ascii", "replace"))
        raise_read_error(path, "the line of sizes is missing or broken", got, fix, line)
    return line, [int(word) for word in words]


def _coordinates(
    path: Path, data: bytes, banner: _Banner, skip: int, n: int, entries: int
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    kind = _FIELDS[banner.field]
    table = parse_numbers(data, path, 2 if kind is None else 3, kind or np.int64, skip)
    if len(table) != entries:
        got = f"{len(table):,} entries of {entries:,}"
        fix = "correct the third size, or fetch the file anew"
        raise_read_error(path, "the file has not as many entries as it says", got, fix, skip)
    ends = table[:, :2]
    right = (ends >= 1) & (ends <= n) & (ends == np.floor(ends))
    if not right.all():
        row = int(right.all(axis=1).argmin())
        fix = "number rows and columns from 1"
        got = f"{ends[row].tolist()} with {n} rows"
        line = _line_of(data, skip, row)
        raise_read_error(path, "an entry lies outside the matrix", got, fix, line)
    return ends.T.astype(np.int64) - 1, None if kind is None else table[:, 2]


def _line_of(data: bytes, skip: int, row: int) -> int | None:
    """The line of the row-th line behind the first ``skip`` that is not blank or a comment."""
    for number, text in enumerate(data.split(b"\n"), start=1):
        if number > skip and text.strip() and text.strip()[:1] not in b"#%":
            if row == 0:
                return number
            row -= 1
    return None


def _dense(
    path: Path, data: bytes, banner: _Banner, skip: int, n: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    values = parse_numbers(data, path, 1, _FIELDS[banner.field], skip)[:, 0]
    general, skew = banner.symmetry == "general", banner.symmetry == "skew-symmetric"
    due = n * n if general else n * (n - 1) // 2 if skew else n * (n + 1) // 2
    if len(values) != due:
        got = f"{len(values):,} values, where {due:,} are due for {n} rows"
        fix = "write one value a line, column by column (the lower triangle if symmetric)"
        raise_read_error(path, "the array has the wrong length", got, fix, skip)
    if general:
        place = np.arange(due)
        return np.stack([place % n, place // n]), values
    # The lower triangle column by column is the upper one row by row.
    columns, rows = np.triu_indices(n, 1 if skew else 0)
    return np.stack([rows, columns]), values


def _weighed(
    path: Path, edges: NDArray[Any], values: NDArray[Any] | None, changes: Counter[str]
) -> NDArray[Any]:
    """Drop stored zeros and count the weights that are lost."""
    if values is None:
        return edges
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        fix = "store every edge as 1 and nothing else"
        raise_read_error(path, "the matrix has entries that are not finite", f"{values.dtype}", fix)
    if not values.all():
        edges, values = edges[:, values != 0], values[values != 0]
    changes["weights"] += int((values != 1).sum())
    return edges


def read_npz(path: Path) -> Reading:
    """Read one graph from an .npz of SciPy, or of NumPy with edge_index or a square array."""
    arrays, changes = read_arrays(path), Counter[str]()
    names = ["x", "y", "num_nodes"]
    rest = {name: arrays.pop(name) for name in names if name in arrays}
    values: NDArray[Any] | None
    if "format" in arrays:
        known, guess = ["format", "shape", "data", "indices", "indptr", "row", "col"], "SciPy"
        n, edges, values = _sparse(path, arrays)
    elif "edge_index" in arrays:
        known, guess = ["edge_index", "edge_weight"], "edge_index"
        n, edges, values = _edge_index(path, arrays, rest)
    else:
        name = "adjacency" if "adjacency" in arrays else _only(path, arrays, rest)
        known, guess = [name], f"array {name!r} is an adjacency"
        n, edges, values = _square(path, name, arrays[name])
    edges = _weighed(path, edges, values, changes)
    ignored = sorted(set(arrays) - {*known, "_is_array"})
    guesses = [guess, *(f"array {quoted(name)} ignored" for name in ignored[:8])]
    x, y = rest.get("x"), rest.get("y")
    return assemble([n], [edges], undirected=False, x=x, y=y, guesses=guesses, changes=changes)


def _only(path: Path, arrays: dict[str, Any], rest: Iterable[str]) -> str:
    square = [name for name, array in arrays.items() if array.ndim == 2]
    if len(square) != 1:
        got = f"arrays {quoted(sorted([*arrays, *rest]))}"
        fix = "save edge_index [2, E], adjacency [n, n], or a matrix by scipy.sparse.save_npz"
        raise_read_error(path, "the archive holds no graph that is known", got, fix)
    return square[0]


def _integers(path: Path, arrays: dict[str, Any], name: str, ndim: int) -> NDArray[Any]:
    """An array of whole numbers within int64, by name."""
    array = arrays.get(name)
    if array is None:
        raise_read_error(path, f"array {name!r} is missing", f"{quoted(sorted(arrays))}", _SAVE)
    if array.ndim != ndim or array.dtype.kind not in "iu":
        got = f"{array.dtype} of shape {list(array.shape)}"
        raise_read_error(
            path, f"array {name!r} is no integer array of {ndim} dimensions", got, _SAVE
        )
    if array.size and int(array.max()) >= 2**63:
        raise_read_error(path, f"array {name!r} is out of range", f"{array.max()}", _SAVE)
    return array.astype(np.int64)


def _sparse(path: Path, arrays: dict[str, Any]) -> tuple[int, NDArray[Any], NDArray[Any]]:
    label = arrays["format"]
    text = (
        label.tobytes().replace(b"\0", b"") if label.dtype.kind in "SU" and label.ndim == 0 else b""
    )
    layout = text.decode("ascii", "replace")
    if layout not in ("csr", "csc", "coo"):
        fix = "save matrix.tocsr() instead"
        raise_read_error(path, "the sparse format is not csr, csc or coo", quoted(layout), fix)
    shape = _integers(path, arrays, "shape", 1).tolist()
    if len(shape) != 2 or shape[0] != shape[1]:
        raise_read_error(path, "the matrix is not square", f"shape {shape}", _SQUARE)
    n, values = shape[0], arrays.get("data")
    if values is None or values.ndim != 1:
        raise_read_error(
            path, "array 'data' is missing or has the wrong shape", quoted(sorted(arrays)), _SAVE
        )
    check_announced(path, n, path.stat().st_size)
    if layout == "coo":
        row, col = (_integers(path, arrays, name, 1) for name in ("row", "col"))
    else:
        pointer, col = (_integers(path, arrays, name, 1) for name in ("indptr", "indices"))
        steps = np.diff(pointer)
        if len(pointer) != n + 1 or pointer[0] != 0 or (steps < 0).any() or pointer[-1] != len(col):
            got = f"{len(pointer)} pointers for {n} rows and {len(col)} entries"
            raise_read_error(path, "array 'indptr' does not fit", got, _SAVE)
        row = np.repeat(np.arange(n), steps)
        row, col = (row, col) if layout == "csr" else (col, row)
    if not len(row) == len(col) == len(values):
        got = f"{len(row)} rows, {len(col)} columns and {len(values)} values"
        raise_read_error(path, "the arrays differ in length", got, _SAVE)
    edges = np.stack([row, col])
    _check_range(path, edges, n)
    return n, edges, values


def _check_range(path: Path, edges: NDArray[Any], n: int) -> None:
    if edges.size and (edges.min() < 0 or edges.max() >= n):
        got = f"{edges.min()} to {edges.max()} with {n} nodes"
        raise_read_error(path, "a node id is out of range", got, "number the nodes from 0")


def _edge_index(
    path: Path, arrays: dict[str, Any], rest: dict[str, Any]
) -> tuple[int, NDArray[Any], NDArray[Any] | None]:
    edges = _integers(path, arrays, "edge_index", 2)
    if len(edges) != 2:
        fix = "stack sources and targets as its two rows"
        raise_read_error(path, "edge_index is not of shape [2, E]", f"{list(edges.shape)}", fix)
    size = path.stat().st_size
    if "num_nodes" in rest:
        n = int(_integers(path, rest, "num_nodes", 0))
    elif "x" in rest and rest["x"].ndim == 2:
        n = len(rest["x"])
    else:
        n = int(edges.max()) + 1 if edges.size else 0
    check_announced(path, n, size)
    _check_range(path, edges, n)
    weight = arrays.get("edge_weight")
    if weight is not None and weight.shape != edges.shape[1:]:
        got = f"shape {list(weight.shape)} for {edges.shape[1]} edges"
        raise_read_error(path, "edge_weight has the wrong length", got, "save one weight per edge")
    if weight is None:
        return n, edges, None
    return n, edges, np.where(weight == 0, 2, weight)  # an edge is there whatever its weight


def _square(path: Path, name: str, array: NDArray[Any]) -> tuple[int, NDArray[Any], NDArray[Any]]:
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise_read_error(
            path, f"array {name!r} is not square", f"shape {list(array.shape)}", _SQUARE
        )
    check_announced(path, len(array), path.stat().st_size)
    if array.dtype.kind not in "biuf":
        fix = "store every edge as 1 and nothing else"
        raise_read_error(path, f"array {name!r} does not hold numbers", f"{array.dtype}", fix)
    edges = np.stack(array.nonzero())
    return len(array), edges, array[edges[0], edges[1]]
