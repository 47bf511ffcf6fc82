"""Tables of numbers in text: comma-, semicolon- or blank-separated, one row a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.formats.files import mapped, refuse, shown


def read_numbers(
    path: Path, columns: int | None = None, dtype: Any = np.int64, skip: int = 0
) -> NDArray[Any]:
    """The numbers of a text file (.gz, .xz, .bz2 too), [rows, columns]; see parse_numbers."""
    with mapped(path) as data:
        return parse_numbers(data, path, columns, dtype, skip)


def parse_numbers(
    data: Any, path: Path, columns: int | None = None, dtype: Any = np.int64, skip: int = 0
) -> NDArray[Any]:
    """The numbers of text, [rows, columns], int64, int32 or float64; ``path`` is for errors.

    Numbers are separated by a comma, a semicolon or blanks. Blank lines, lines that start with
    # or %, and the first ``skip`` lines are passed over. Without ``columns`` the first row tells
    their number. A :class:`ReadError` names the line of a row that does not fit.
    """
    kind, rows = np.dtype(dtype), []
    for line, text in enumerate(bytes(data).split(b"\n"), start=1):
        words = text.replace(b",", b" ").replace(b";", b" ").split()
        if line <= skip or not words or words[0][:1] in b"#%":
            continue
        columns = len(words) if columns is None else columns
        fix = f"write {columns} numbers in every row"
        if len(words) != columns:
            refuse(path, "a row has the wrong length", f"{len(words)} values", fix, line)
        try:
            rows.append([kind.type(word.decode("ascii")) for word in words])
        except (ValueError, OverflowError):
            refuse(path, f"a value is no {kind}", shown(text.decode("ascii", "replace")), fix, line)
    return np.array(rows, dtype=kind).reshape(len(rows), columns or 0)
