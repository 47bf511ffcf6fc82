"""Tables of numbers in text: comma-, semicolon- or blank-separated, one row a line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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
    """The numbers of a text file (.gz, .xz, .bz2 too), [rows, columns]; see parse_numbers."""
    return parse_numbers(mapped(path), path, columns, dtype, skip)


def parse_numbers(
    data: Any, path: Path, columns: int | None = None, dtype: Any = np.int64, skip: int = 0
) -> NDArray[Any]:
    """The numbers of text, [rows, columns], int64, int32 or float64; ``path`` is for errors.

    Numbers are separated by a comma, a semicolon or blanks. Blank lines, lines that start with
    # or %, and the first ``skip`` lines are passed over. Without ``columns`` the first row tells
    their number. A :class:`ReadError` names the line of a row that does not fit.
    """
    kind, native = np.dtype(dtype), kernels.native_data()
    if native is None:
        return _parse_slowly(bytes(data), path, columns, kind, skip)
    bytes_ = np.frombuffer(data, dtype=np.uint8) if isinstance(data, bytes) else data
    table = native.text_table(bytes_, columns, skip)
    out = np.empty((table.rows, table.columns), dtype=kind)
    if not table.parse(out):
        fault, text = table.fault, _told(table.text)
        _refuse_row(path, fault.name, table.columns, table.found, text, kind, table.line)
    return out


def _refuse_row(
    path: Path, fault: str, columns: int, found: int, text: str, kind: Any, line: int
) -> None:
    fix = f"write {columns} {'whole ' if kind.kind == 'i' else ''}numbers in every row"
    if fault in ("few", "many"):
        raise_read_error(
            path, f"a row has not {columns} values", f"{found} in {quoted(text)}", fix, line
        )
    wrong = f"a value is out of range for {kind}" if fault == "range" else "a value is no number"
    raise_read_error(path, wrong, quoted(text), fix, line)


def _told(line: bytes) -> str:
    return line[:60].strip(BLANKS).decode("ascii", "replace")


def _parse_slowly(
    data: bytes, path: Path, columns: int | None, kind: Any, skip: int
) -> NDArray[Any]:
    """The same without compiled code."""
    rows = []
    for line, text in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        words = _SEPARATOR.split(text.strip(BLANKS))
        if line <= skip or words == [b""] or text.strip(BLANKS)[:1] in b"#%":
            continue
        count = len(words) - (not words[-1])
        columns = count if columns is None else columns
        values, fault = _parse_row(words, columns, kind)
        if fault:
            _refuse_row(path, fault, columns, count, _told(text), kind, line)
        rows.append(np.array(values, dtype=kind))
    return np.array(rows, dtype=kind).reshape(len(rows), columns or 0)


def _parse_row(words: list[bytes], columns: int, kind: Any) -> tuple[list[Any], str]:
    values: list[Any] = []
    for i, word in enumerate(words):
        if i == columns:
            return values, "many" if word or i + 1 < len(words) else "value"
        if not _NUMBERS[kind.kind].fullmatch(word):
            return values, "value"
        value: Any = int(word) if kind.kind == "i" else float(word)
        if kind.kind == "i" and not np.iinfo(kind).min <= value <= np.iinfo(kind).max:
            return values, "range"
        if kind.kind == "f" and np.isinf(value) and b"i" not in word.lower():
            return values, "range"
        values.append(value)
    return values, "" if len(values) == columns else "few"
