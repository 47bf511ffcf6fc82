"""The labels of graphs: from a table, in order or by id, or from the graphs' own files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.cli.label_tables import ID_NAMES, LABEL_NAMES, LabelTable, read_table
from artlas.embedding.pieces import Input
from artlas.errors import quoted, raise_graph_error, raise_read_error
from artlas.graphs.collection import Graphs

_MISSING = ("", "nan", "na", "n/a", "null", "-nan")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_OWN = (".csv", ".tsv", ".parquet", ".pq")  # tables whose rows are graphs


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of graphs, [G], integers, floats or strings, and a phrase that says whose they are."""

    values: NDArray[Any]
    origin: str


def find_labels(
    parts: Sequence[tuple[Input, Graphs]], file: Path | None, column: str | None
) -> Labels:
    """Find one label for every graph of the inputs.

    They are in ``file``; or, if only a column is named, in the inputs, which are tables with a row
    per graph; or else they are those that the readers of the inputs found.
    """
    graphs = sum(len(part) for _, part in parts)
    if file is not None:
        own = len(parts) == 1 and parts[0][0].path == file  # the graphs' own table: by row
        return _from_table(read_table(file, graphs, column), parts, own)
    if column is None:
        return Labels(np.concatenate([_carried(*part) for part in parts]), "those of the graphs")
    cells: list[Any] = []
    for entry, part in parts:
        if entry.path.is_dir() or not set(_OWN) & set(entry.path.suffixes):
            fix = "pass a table of labels with --labels FILE"
            got = f"--label-column {quoted(column)}"
            raise_read_error(entry.path, "only a table of graphs has columns", got, fix)
        table = read_table(entry.path, len(part), column)
        _check_count(table, len(part))
        cells += _checked(table, table.column(column))
    return Labels(_typed(cells), f"column {column} of the graphs' tables")


def _carried(entry: Input, graphs: Graphs) -> NDArray[Any]:
    fix = (
        "pass --labels FILE, a table with one label per graph, or name a column of the graphs' "
        "table by --label-column (GraphML, GML and node-link JSON can carry them as the numeric "
        "graph attribute y)"
    )
    if graphs.y is None:
        got = f"{len(graphs):,} graph{'s' * (len(graphs) > 1)} without labels"
        raise_read_error(entry.path, "there are no labels in the file", got, fix)
    if len(graphs.y) != len(graphs):
        got = f"{len(graphs.y):,} labels of nodes"
        raise_read_error(entry.path, "the labels are not those of graphs", got, fix)
    return graphs.y.numpy()


def _from_table(table: LabelTable, parts: Sequence[tuple[Input, Graphs]], own: bool) -> Labels:
    graphs = sum(len(part) for _, part in parts)
    label, ids = _choose_columns(table)
    name = "labels" if table.names is None else f"column {table.names[label]}"
    cells = table.columns[label]
    if ids is None or own:
        _check_count(table, graphs)
        return Labels(_typed(_checked(table, cells)), f"{name} of {table.path.name}, in order")
    places, how = _match(table, table.columns[ids], parts)
    checked, ordered = _checked(table, cells), [None] * graphs
    for place, cell in zip(places, checked, strict=True):
        ordered[place] = cell
    return Labels(_typed(ordered), f"{name} of {table.path.name}, by {how}")


def _choose_columns(table: LabelTable) -> tuple[int, int | None]:
    """Return the numbers of the columns of labels and of ids."""
    count = len(table.columns)
    fix = "name the one by --label-column"
    if table.names is None:
        if count > 2:
            got, head = f"{count} columns without names", "add a line with the columns' names"
            raise_read_error(table.path, "the column of labels is not known", got, head)
        return count - 1, 0 if count == 2 else None
    lower = [name.strip().lower() for name in table.names]
    ids = next((lower.index(name) for name in ID_NAMES if name in lower), None)
    if table.chosen is not None:
        label = table.chosen
    elif count == 1:
        label = 0
    else:
        known = [i for i, name in enumerate(lower) if name in LABEL_NAMES]
        if not known and count == 2 and ids is not None:
            known = [1 - ids]
        if len(known) != 1:
            got = f"the columns {', '.join(table.names)}"
            raise_read_error(table.path, "the column of labels is not known", got, fix)
        label = known[0]
    return label, None if ids == label else ids


def _match(
    table: LabelTable, ids: Sequence[Any], parts: Sequence[tuple[Input, Graphs]]
) -> tuple[list[int], str]:
    """Return the graph of every id: a file's name, or a number that counts from 0 or from 1."""
    words = [str(value).strip() for value in ids]
    seen = set[str]()
    for row, word in enumerate(words):
        if word in seen:
            fix = "keep one label for each graph"
            raise_read_error(table.path, "an id appears twice", quoted(word), fix, table.line(row))
        seen.add(word)
    graphs = sum(len(part) for _, part in parts)
    names = _names(parts)
    known, how = names, "name of the file"
    if not all(word in names for word in words):
        one = str(graphs) in words and "0" not in words
        known = {str(number + one): number for number in range(graphs)}
        how = f"number from {int(one)}"
    for row, word in enumerate(words):
        if word not in known:
            fix = (
                f"number the graphs from 0 to {graphs - 1} or from 1 to {graphs}, or use the names "
                "of files that hold one graph, or drop the ids if the labels are in order"
            )
            raise_read_error(
                table.path, "an id is that of no graph", quoted(word), fix, table.line(row)
            )
    places = [known[word] for word in words]
    if without := sorted(set(range(graphs)) - set(places)):
        got = f"{len(without):,} of {graphs:,} graphs without one, the first is graph {without[0]}"
        raise_read_error(table.path, "a graph has no label", got, "add a row for every graph")
    return places, how


def _names(parts: Sequence[tuple[Input, Graphs]]) -> dict[str, int]:
    """Return what inputs of one graph are called, by every name that is one graph's alone."""
    found, number = dict[str, set[int]](), 0
    for entry, graphs in parts:
        if len(graphs) == 1:
            for name in (entry.name, Path(entry.name).name, Path(entry.name).stem):
                found.setdefault(name, set()).add(number)
        number += len(graphs)
    return {name: next(iter(places)) for name, places in found.items() if len(places) == 1}


def _check_count(table: LabelTable, graphs: int) -> None:
    rows = len(table.columns[0])
    if rows != graphs:
        fix = "give every graph one label, in their order, or name the graphs in a column id"
        wrong = "the table does not have one row per graph"
        raise_read_error(table.path, wrong, f"{rows:,} rows for {graphs:,} graphs", fix)


def _checked(table: LabelTable, cells: Sequence[Any]) -> list[Any]:
    """Return the cells of a column after refusing missing ones."""
    for row, cell in enumerate(cells):
        text = isinstance(cell, str) and cell.strip().lower() in _MISSING
        if cell is None or text or cell != cell:
            fix = "label the graph, or leave it out of the graphs and of the labels"
            got = "nothing" if cell in (None, "") else quoted(cell)
            raise_read_error(table.path, "a label is missing", got, fix, table.line(row))
    return list(cells)


def _typed(cells: Sequence[Any]) -> NDArray[Any]:
    """Return labels as int64 if all are whole, as float64 if all are numbers, else as text."""
    words = [str(cell).strip() for cell in cells]
    if all(isinstance(cell, bool) for cell in cells):
        return np.array(cells, dtype=np.int64)
    if all(_INTEGER.fullmatch(word) for word in words):
        return np.array([int(word) for word in words], dtype=np.int64)
    try:
        values = [float(word) for word in words]
    except ValueError:
        return np.array(words, dtype=np.str_)
    if not all(map(math.isfinite, values)):
        row = next(i for i, value in enumerate(values) if not math.isfinite(value))
        raise_graph_error("a label is not finite", f"{words[row]} of graph {row}", "correct it")
    whole = all(value == int(value) and abs(value) < 2**53 for value in values)
    return np.array(values, dtype=np.int64 if whole else np.float64)
