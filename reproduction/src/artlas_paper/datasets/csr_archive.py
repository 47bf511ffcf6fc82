"""Check the arrays of a sparse matrix (CSR) that come from an untrusted file."""

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
    """Refuse arrays that are not a CSR matrix of this shape."""
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
    """Refuse a dense shape out of all proportion to its file, before memory is set aside for it."""
    size = path.stat().st_size
    if rows < 1 or columns < 1 or rows * columns > size * RATIO + SLACK:
        got = f"{rows:,} x {columns:,} in a file of {size:,} bytes"
        raise_read_error(path, f"{what} has no size that fits its file", got, _FIX)


def dense(
    path: Path, what: str, data: Any, indices: Any, indptr: Any, shape: tuple[int, int]
) -> NDArray[np.float32]:
    """Return the dense matrix, float32 [rows, columns], after all checks."""
    from scipy.sparse import csr_matrix

    check_csr(path, what, data, indices, indptr, shape)
    check_cells(path, what, *shape)
    with np.errstate(over="ignore"):  # values beyond float32 are refused with the features
        values = data.astype(np.float32)
    return np.asarray(csr_matrix((values, indices, indptr), shape=shape).todense())
