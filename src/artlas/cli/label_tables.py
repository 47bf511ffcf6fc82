"""Tables of labels: CSV, TSV or Parquet, with or without a line of names."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from artlas.errors import import_extra, quoted, raise_read_error
from artlas.files.untrusted import read_text, suffix
from artlas.io import parquet_process

LABEL_NAMES = ("label", "labels", "y", "class", "target")
ID_NAMES = ("id", "ids", "graph", "graph_id", "index", "number", "name", "file", "source")


class LabelTable(NamedTuple):
    """Columns of a file, their names or None, and the lines of its rows or None.

    chosen: number of the column that was asked for, or None.
    """

    path: Path
    names: list[str] | None
    columns: Sequence[Sequence[Any]]
    lines: list[int] | None
    chosen: int | None

    def line(self, row: int) -> int | None:
        """Return the line of a row, where the file has lines."""
        return None if self.lines is None else self.lines[row]

    def column(self, name: str) -> Sequence[Any]:
        """Return the column that was asked for by this name."""
        assert self.chosen is not None, name
        return self.columns[self.chosen]


def read_table(path: Path, graphs: int, column: str | None) -> LabelTable:
    """Read a table of labels for so many graphs, in which ``column`` must be if it is given."""
    parquet = suffix(path) in (".parquet", ".pq")
    return _read_parquet(path, column) if parquet else _read_text(path, graphs, column)


def _read_parquet(path: Path, column: str | None) -> LabelTable:
    import_extra("pyarrow", "Parquet needs PyArrow", "parquet")
    known = {*LABEL_NAMES, *ID_NAMES}
    wanted = {name.title() for name in known} | {name.upper() for name in known} | known
    content, _ = parquet_process.read_table(path, wanted if column is None else {column, *wanted})
    # Lists, such as the sources of a graph's edges, are neither labels nor ids.
    flat = [name for name in content.column_names if not _is_list(content[name])]
    content = content.select([name for name in content.column_names if name in (*flat, column)])
    names = list(content.column_names)
    if column is None and not {name.lower() for name in names} & set(LABEL_NAMES):
        got = f"no column called {', '.join(LABEL_NAMES)}"
        raise_read_error(path, "the column of labels is not known", got, "pass --label-column")
    columns = [part.to_pylist() for part in content.columns]
    for name, values in zip(names, columns, strict=True):
        for value in values:
            if not isinstance(value, (str, int, float, type(None))):
                fix = "store numbers or text"
                raise_read_error(path, f"column {name} holds no labels", quoted(value), fix)
    return LabelTable(path, names, columns, None, _place(path, names, column))


def _is_list(column: Any) -> bool:
    return bool(column.type.num_fields)


def _read_text(path: Path, graphs: int, column: str | None) -> LabelTable:
    text = read_text(path).rstrip("\r\n")
    if not text.strip():
        raise_read_error(path, "the table is empty", "no rows", "write one label per graph")
    first = text.split("\n", 1)[0]
    comma = "\t" if "\t" in first else ";" if ";" in first and "," not in first else ","
    reader = csv.reader(io.StringIO(text, newline=None), delimiter=comma)
    try:
        numbered = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        fix = "write the table anew"
        raise_read_error(path, "a row is not a row of cells", str(error), fix, reader.line_num)
    width = len(numbered[0][1])
    if width > 1:  # else an empty line may be a missing label
        numbered = [(line, row) for line, row in numbered if any(cell.strip() for cell in row)]
    for line, row in numbered:
        if len(row) != width and not (width == 1 and not row):
            got, fix = f"{len(row)} cells after {width}", "give all rows the same columns"
            raise_read_error(path, "a row has another number of cells", got, fix, line)
    rows = [row or [""] for _, row in numbered]
    lines = [line for line, _ in numbered]
    names = None
    if _is_header(rows, graphs, column):
        names, rows, lines = [cell.strip() for cell in rows[0]], rows[1:], lines[1:]
    if not rows:
        raise_read_error(path, "the table is empty", "names alone", "write one label per graph")
    columns = list(zip(*rows, strict=True))
    return LabelTable(path, names, columns, lines, _place(path, names, column))


def _is_header(rows: list[list[str]], graphs: int, column: str | None) -> bool:
    """Tell whether the first row is one of names.

    It is if it has the name asked for or a usual one, or no number where others below have one,
    or if it is one row too many and like no other.
    """
    first, rest = [cell.strip() for cell in rows[0]], rows[1:]
    usual = {cell.lower() for cell in first} & {*LABEL_NAMES, *ID_NAMES}
    if column in first or any(_is_number(cell) for cell in first):
        return column in first
    below = [{row[i].strip() for row in rest} for i in range(len(first))]
    if usual and not any(cell in cells for cell, cells in zip(first, below, strict=True)):
        return True
    if any(all(map(_is_number, cells)) for cells in below if cells):
        return True
    return len(rest) == graphs and first[-1] not in below[-1]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _place(path: Path, names: list[str] | None, column: str | None) -> int | None:
    if column is None:
        return None
    times = (names or []).count(column)
    if times != 1:
        wrong = "there is no such column" if times == 0 else "two columns have the same name"
        few = list(itertools.islice(names or [], 20))
        got = f"{quoted(column)} among {', '.join(few) or 'no names'}"
        raise_read_error(path, wrong, got, "pass --label-column with one of the columns' names")
    return (names or []).index(column)
