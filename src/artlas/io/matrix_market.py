"""Matrix Market: one graph as the text of a coordinate or array matrix."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.files.untrusted import read_bytes
from artlas.graphs.convert import drop_weights
from artlas.graphs.validation import SQUARE_FIX
from artlas.io.assembly import Reading, assemble, check_announced
from artlas.io.number_tables import parse_numbers

_EXAMPLE = "%%MatrixMarket matrix coordinate pattern symmetric"
_FIELDS = {
    "pattern": None,
    "integer": np.int64,
    "unsigned-integer": np.int64,
    "real": np.float64,
    "double": np.float64,
}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read(path: Path) -> Reading:
    """Read one graph; the stored entries that are not zero are its edges."""
    data = read_bytes(path)
    layout, field, symmetry, line, sizes = _read_header(path, data)
    n = sizes[0]
    if n != sizes[1]:
        raise_read_error(path, "the matrix is not square", f"shape {sizes[:2]}", SQUARE_FIX, line)
    check_announced(path, n, len(data), line)
    changes = Counter[str]()
    if layout == "coordinate":
        edges, values = _read_coordinates(path, data, field, line, n, sizes[2])
    else:
        edges, values = _read_array(path, data, field, symmetry, line, n)
    if values is not None:
        edges = drop_weights(edges, values, changes, "the matrix")
    undirected, guesses = symmetry != "general", [symmetry, layout]
    return assemble([n], edges, undirected=undirected, guesses=guesses, changes=changes)


def _read_header(path: Path, data: bytes) -> tuple[str, str, str, int, list[int]]:
    """Return the words of the banner, the number of the line of sizes, and the sizes."""
    first = data[:1024].split(b"\n", 1)[0].decode("ascii", "replace")
    words, got = first.lower().split(), quoted(first)
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        fix = f"begin the file with e.g. {_EXAMPLE!r}"
        raise_read_error(path, "the first line is no Matrix Market banner", got, fix, 1)
    if words[3] == "complex" or words[4] == "hermitian":
        raise_read_error(path, "the entries are complex", got, "store a real adjacency", 1)
    known = (("coordinate", "array"), tuple(_FIELDS), _SYMMETRIES)
    for word, allowed in zip(words[2:], known, strict=True):
        if word not in allowed:
            fix = f"use one of {', '.join(allowed)}"
            raise_read_error(path, "the banner has an unknown word", quoted(word), fix, 1)
    if words[2] == "array" and words[3] == "pattern":
        raise_read_error(path, "an array has no pattern", got, "use integer or real", 1)
    layout, field, symmetry = words[2:]
    count = 3 if layout == "coordinate" else 2
    at, line, text = data.find(b"\n") + 1, 1, ""
    while 0 < at < len(data) and (not text or text.startswith("%")):
        end = data.find(b"\n", at) % (len(data) + 1)  # the end of the data where there is no more
        text = data[at:end].decode("ascii", "replace").strip()
        at, line = end + 1, line + 1
    words = text.split()
    if len(words) != count or not all(w.isdigit() and len(w) < 19 for w in words):
        fix = f"write {' '.join(['rows', 'columns', 'entries'][:count])} there"
        raise_read_error(path, "the line of sizes is missing or broken", quoted(text), fix, line)
    return layout, field, symmetry, line, [int(word) for word in words]


def _read_coordinates(
    path: Path, data: bytes, field: str, skip: int, n: int, entries: int
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    dtype = _FIELDS[field]
    table = parse_numbers(data, path, 2 if dtype is None else 3, dtype or np.int64, skip)
    if len(table) != entries:
        got = f"{len(table):,} entries of {entries:,}"
        fix = "correct the third size, or fetch the file anew"
        raise_read_error(path, "the file has not as many entries as it says", got, fix, skip)
    ends = table[:, :2]
    valid = (ends >= 1) & (ends <= n) & (ends == np.floor(ends))
    if not valid.all():
        row = int(valid.all(axis=1).argmin())
        got, fix = f"{ends[row].tolist()} with {n} rows", "number rows and columns from 1"
        text = enumerate(data.split(b"\n"), start=1)
        lines = [i for i, words in text if i > skip and words.strip()[:1] not in b"#%"]
        raise_read_error(path, "an entry lies outside the matrix", got, fix, lines[row])
    return ends.T.astype(np.int64) - 1, None if dtype is None else table[:, 2]


def _read_array(
    path: Path, data: bytes, field: str, symmetry: str, skip: int, n: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    values = parse_numbers(data, path, 1, _FIELDS[field], skip)[:, 0]
    general, skew = symmetry == "general", symmetry == "skew-symmetric"
    expected = n * n if general else n * (n - 1) // 2 if skew else n * (n + 1) // 2
    if len(values) != expected:
        got = f"{len(values):,} values, where {expected:,} are due for {n} rows"
        fix = "write one value a line, column by column (the lower triangle if symmetric)"
        raise_read_error(path, "the array has the wrong length", got, fix, skip)
    if general:
        place = np.arange(expected)
        return np.stack([place % n, place // n]), values
    # The lower triangle column by column is the upper one row by row.
    columns, rows = np.triu_indices(n, 1 if skew else 0)
    return np.stack([rows, columns]), values
