"""Matrices in compressed rows that come from somebody's file, checked before they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import raise_read_error
from artlas.files.untrusted import RATIO, SLACK

_FIX = "fetch the original file anew"


def check_csr(
    path: Path, what: str, data: Any, indices: Any, indptr: Any, shape: tuple[int, int]
) -> None:
    """Refuse arrays that are not the rows of a matrix of this shape."""
    for name, array, kinds in (
        ("data", data, "biuf"),
        ("indices", indices, "iu"),
        ("indptr", indptr, "iu"),
    ):
        if array.ndim != 1 or array.dtype.kind not in kinds:
            got = f"{array.dtype} of shape {list(array.shape)}"
            raise_read_error(path, f"the {name} of {what} are not one row of numbers", got, _FIX)
    rows, columns = shape
    if len(indptr) != rows + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        got = f"{len(indptr):,} boundaries for {rows:,} rows"
        raise_read_error(path, f"the rows of {what} do not follow each other", got, _FIX)
    if not len(data) == len(indices) == indptr[-1]:
        got = f"{len(data):,} values, {len(indices):,} columns, {indptr[-1]:,} by the rows"
        raise_read_error(path, f"the arrays of {what} differ in length", got, _FIX)
    if len(indices) and (indices.min() < 0 or indices.max() >= columns):
        got = f"{indices.min()} to {indices.max()} with {columns:,} columns"
        raise_read_error(path, f"a column of {what} is out of range", got, _FIX)
    if not np.isfinite(data).all():
        raise_read_error(path, f"{what} has NaN or infinity", f"{data.dtype}", _FIX)


def check_cells(path: Path, what: str, rows: int, columns: int) -> None:
    """Refuse a shape that a file of this size merely announces: all of it becomes memory."""
    size = path.stat().st_size
    if rows < 1 or columns < 1 or rows * columns > size * RATIO + SLACK:
        got = f"{rows:,} x {columns:,} in a file of {size:,} bytes"
        raise_read_error(path, f"{what} has no size that fits its file", got, _FIX)


def dense(
    path: Path, what: str, data: Any, indices: Any, indptr: Any, shape: tuple[int, int]
) -> NDArray[np.float32]:
    """The whole matrix, float32 [rows, columns], once its parts were found right."""
    from scipy.sparse import csr_matrix

    check_csr(path, what, data, indices, indptr, shape)
    check_cells(path, what, *shape)
    with np.errstate(over="ignore"):  # what is no float32 is refused with the features
        values = data.astype(np.float32)
    return np.asarray(csr_matrix((values, indices, indptr), shape=shape).todense())
