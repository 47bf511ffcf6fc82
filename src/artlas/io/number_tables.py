"""Tables of numbers in text: comma-, semicolon- or blank-separated, one row a line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from artlas import kernels
from artlas.errors import quoted, raise_read_error
from artlas.files.untrusted import mapped

BLANKS = b" \t\r\f\v"
_SEPARATOR = re.compile(rb"[ \t\r\f\v]*[,;][ \t\r\f\v]*|[ \t\r\f\v]+")
_NUMBERS = {
    "i": re.compile(rb"[+-]?[0-9]+"),
    "f": re.compile(rb"(?i)[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)"),
}


def read_numbers(
    path: Path, columns: int | None = None, dtype: Any = np.int64, skip: int = 0
) -> NDArray[Any]:
    """Read the numbers of a text file (.gz, .xz, .bz2 too), [rows, columns]; see parse_numbers."""
    return parse_numbers(mapped(path), path, columns, dtype, skip)


def parse_numbers(
    data: Any, path: Path, columns: int | None = None, dtype: Any = np.int64, skip: int = 0
) -> NDArray[Any]:
    """Parse the numbers of text, [rows, columns], int64, int32 or float64; errors name ``path``.

    Numbers are separated by a comma, a semicolon or blanks. Blank lines, lines that start with
    # or %, and the first ``skip`` lines are passed over. Without ``columns`` the first row tells
    their number. A :class:`ReadError` names the line of a row that does not fit.
    """
    kind, native = np.dtype(dtype), kernels.native_data()
    if native is None:
        return _parse_in_python(bytes(data), path, columns, kind, skip)
    values = np.frombuffer(data, dtype=np.uint8) if isinstance(data, bytes) else data
    table = native.text_table(values, columns, skip)
    out = np.empty((table.rows, table.columns), dtype=kind)
    if not table.parse(out):
        fault = table.fault.name
        _raise_row_error(path, fault, table.columns, table.found, table.text, kind, table.line)
    return out


def _raise_row_error(
    path: Path, fault: str, columns: int, count: int, row: bytes, kind: Any, line: int
) -> NoReturn:
    got = quoted(row[:60].strip(BLANKS).decode("ascii", "replace"))
    fix = f"write {columns} {'whole ' if kind.kind == 'i' else ''}numbers in every row"
    if fault in ("few", "many"):
        raise_read_error(path, f"a row has not {columns} values", f"{count} in {got}", fix, line)
    wrong = f"a value is out of range for {kind}" if fault == "range" else "a value is no number"
    raise_read_error(path, wrong, got, fix, line)


def _parse_in_python(
    data: bytes, path: Path, columns: int | None, kind: Any, skip: int
) -> NDArray[Any]:
    rows = []
    for line, text in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        text = text.strip(BLANKS)
        if line <= skip or text[:1] in b"#%":
            continue
        words = _SEPARATOR.split(text)
        count = len(words) - (not words[-1])
        columns = count if columns is None else columns
        faults = [_fault(word, kind) for word in words[:columns]]
        if len(words) > columns:
            faults.append("many" if words[columns] or len(words) > columns + 1 else "value")
        fault = next(filter(None, faults), "few" if len(words) < columns else "")
        if fault:
            _raise_row_error(path, fault, columns, count, text, kind, line)
        rows.append(np.array([(int if kind.kind == "i" else float)(word) for word in words], kind))
    return np.array(rows, dtype=kind).reshape(len(rows), columns or 0)


def _fault(word: bytes, kind: Any) -> str:
    """Return what is wrong with a number, as the compiled parser names it."""
    if not _NUMBERS[kind.kind].fullmatch(word):
        return "value"
    if kind.kind == "i":
        return "" if np.iinfo(kind).min <= int(word) <= np.iinfo(kind).max else "range"
    return "range" if np.isinf(float(word)) and b"i" not in word.lower() else ""
