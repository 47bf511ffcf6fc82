"""Parquet, one graph a row: edge_index or source and target, and optionally num_nodes, x, y, ids.

Lists are taken as Arrow holds them, offsets and one flat array, so a row costs no Python object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from artlas.errors import import_extra, raise_read_error
from artlas.graphs.ragged import pointer, ranges
from artlas.io.assembly import Reading, assemble, check_announced
from artlas.io.parquet_process import read_table

_ENDS = (("source", "target"), ("src", "dst"))
_COLUMNS = {"edge_index", *_ENDS[0], *_ENDS[1], "num_nodes", "x", "node_feat", "y", "ids"}


def read(path: Path) -> Reading:
    """Read the graphs of a Parquet file, one for every row."""
    arrow = import_extra("pyarrow", "Parquet needs PyArrow", "parquet")
    content, size = read_table(path, _COLUMNS)
    table, guesses = _Table(path, content, arrow.types), list[str]()
    counts, ends = _edges(table)
    listed, x = _features(table)
    sizes = _sizes(table, listed, counts, ends, guesses)
    check_announced(path, int(sizes.sum()), size)
    y, ids = _labels(table, sizes), _ids(table, sizes)
    ends = ends.astype(np.int64) + np.repeat(pointer(sizes)[:-1], counts)
    undirected = not table.has("edge_index")
    return assemble(sizes.tolist(), ends, undirected=undirected, x=x, y=y, ids=ids, guesses=guesses)


class _Column(NamedTuple):
    """A column of lists of any depth: the lengths of the lists at each, and the flat values."""

    lengths: list[NDArray[np.int64]]
    values: NDArray[Any]


class _Table(NamedTuple):
    """The columns of a file; errors name the row."""

    path: Path
    content: Any
    types: Any

    def has(self, name: str) -> bool:
        return name in self.content.column_names

    def refuse(self, wrong: str, got: str, fix: str) -> NoReturn:
        raise_read_error(self.path, wrong, got, fix)

    def check(
        self, good: Any, wrong: str, got: str, fix: str, *values: Any, at: Any = None
    ) -> None:
        """Refuse the first row that is not good; its ``values`` fill the gaps in ``got``.

        ``at`` are the rows that good and values belong to, if there is not one of them a row.
        """
        if not good.all():
            i = int(np.argmin(good))
            row = i if at is None else at[i]
            self.refuse(f"row {row}: {wrong}", got.format(*(value[i] for value in values)), fix)

    def column(self, name: str, text: bool = False) -> _Column:
        """Return a column of numbers (or of text), or of lists of them; a null is refused."""
        array, types = self.content[name].combine_chunks(), self.types
        rows, lengths = np.arange(len(array)), list[NDArray[np.int64]]()
        while True:
            if array.null_count:
                valid = array.is_valid().to_numpy(zero_copy_only=False)
                self.check(valid, f"{name} has a null", "null", "leave the row out", at=rows)
            kind = array.type
            if types.is_fixed_size_list(kind):
                lengths.append(np.full(len(array), kind.list_size, dtype=np.int64))
            elif types.is_list(kind) or types.is_large_list(kind):
                lengths.append(np.diff(array.offsets.to_numpy()).astype(np.int64))
            else:
                break
            rows, array = np.repeat(rows, lengths[-1]), array.flatten()
        if types.is_null(kind):  # only lists that are empty
            return _Column(lengths, np.empty(0, dtype=np.int64))
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if not (number or (text and (types.is_string(kind) or types.is_large_string(kind)))):
            self.refuse(f"{name} does not hold numbers", str(kind), "store numbers")
        return _Column(lengths, array.to_numpy(zero_copy_only=False))

    def lists(self, name: str) -> _Column:
        column = self.column(name)
        if not column.lengths:
            got = f"{self.content.schema.field(name).type}"
            self.refuse(f"{name} is not a list in every row", got, "store lists")
        return column


def _edges(table: _Table) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the edges per row, [rows], and their ends, [2, E]."""
    pair = next((pair for pair in _ENDS if all(map(table.has, pair))), None)
    if table.has("edge_index"):
        counts, ends = _edge_index(table)
    elif pair is None:
        got = f"the columns {', '.join(table.content.column_names) or '(none)'}"
        fix = "store edge_index, or source and target, as lists"
        table.refuse("there is no column of edges", got, fix)
    else:
        source, target = map(table.lists, pair)
        counts, others = source.lengths[0], target.lengths[0]
        wrong, fix = f"{pair[0]} and {pair[1]} differ in length", "make the lists equally long"
        table.check(counts == others, wrong, "{} and {}", fix, counts, others)
        if len(source.lengths) > 1 or len(target.lengths) > 1:
            table.refuse(f"{pair[0]} is a list of lists", "two levels", "store flat lists")
        ends = np.stack([source.values, target.values])
    if ends.dtype.kind not in "iu" and ends.size:
        table.refuse("node ids are not integers", f"{ends.dtype}", "store integers")
    return counts, ends if ends.size else ends.astype(np.int64)


def _edge_index(table: _Table) -> tuple[Any, Any]:
    column, fix = table.lists("edge_index"), "store sources and targets as its two rows"
    lengths, depth = column.lengths[0], len(column.lengths)
    if depth == 1:  # [2, E] laid out flat
        table.check(lengths % 2 == 0, "edge_index is flat and of odd length", "{}", fix, lengths)
        counts = lengths // 2
    elif depth == 2:
        two_or_none = (lengths == 2) | (lengths == 0)
        table.check(two_or_none, "edge_index is not of shape [2, E]", "{} rows", fix, lengths)
        filled, (sources, targets) = np.flatnonzero(lengths), column.lengths[1].reshape(-1, 2).T
        wrong, got = "the two rows of edge_index differ in length", "{} sources and {} targets"
        table.check(sources == targets, wrong, got, fix, sources, targets, at=filled)
        counts = np.zeros(len(lengths), dtype=np.int64)
        counts[filled] = sources
    else:
        table.refuse("edge_index is nested too deeply", f"{depth} levels", fix)
    first = ranges(pointer(2 * counts)[:-1], pointer(counts))
    return counts, column.values[np.stack([first, first + np.repeat(counts, counts)])]


def _features(table: _Table) -> tuple[Any, Any]:
    """Return nodes per row and features float32 [N, d]; None where there is no such column."""
    name = next((name for name in ("x", "node_feat") if table.has(name)), None)
    if name is None:
        return None, None
    column, fix = table.lists(name), "store one list of numbers for each node"
    if len(column.lengths) != 2:
        table.refuse(f"{name} is not of shape [n, d]", f"{len(column.lengths)} levels", fix)
    listed, widths = column.lengths
    rows, first = np.repeat(np.arange(len(listed)), listed), np.resize(widths[:1], len(widths))
    wrong = f"{name} has nodes of different width"
    table.check(widths == first, wrong, "{} after {}", fix, widths, first, at=rows)
    with np.errstate(over="ignore"):
        x = column.values.astype(np.float32).reshape(len(widths), int(first.max(initial=0)))
    finite, wrong = np.isfinite(x).all(axis=1), f"{name} has NaN or infinity"
    table.check(finite, wrong, "it as float32", "replace it before storing", at=rows)
    return listed, x


def _sizes(
    table: _Table, listed: Any, counts: Any, ends: Any, guesses: list[str]
) -> NDArray[np.int64]:
    """Return the number of nodes of every row, which features and edges fit."""
    if table.has("num_nodes"):
        column = table.column("num_nodes")
        sizes = column.values
        if sizes.dtype.kind not in "iu" or column.lengths:
            table.refuse("num_nodes is not an integer", f"{sizes.dtype}", "store integers")
    elif listed is not None:
        sizes = listed
    else:
        guesses.append("num_nodes is the highest id of a row + 1")
        sizes, filled = np.zeros(len(counts), dtype=np.int64), counts > 0
        if filled.any():
            highest = np.maximum(ends[0], ends[1]).clip(0, 2**31).astype(np.int64)
            sizes[filled] = np.maximum.reduceat(highest, pointer(counts)[:-1][filled]) + 1
    possible = (sizes >= 1) & (sizes <= np.iinfo(np.int32).max)
    table.check(possible, "there are no nodes, or too many", "{}", "correct num_nodes", sizes)
    if listed is not None:
        wrong, fix = "x does not have one row for each node", "correct x or num_nodes"
        table.check(listed == sizes, wrong, "{} for {} nodes", fix, listed, sizes)
    rows = np.repeat(np.arange(len(counts)), counts)
    each = sizes[rows]
    within = ((ends >= 0) & (ends < each)).all(axis=0)
    wrong, got = "a node id is out of range", "{} - {} with {} nodes"
    table.check(within, wrong, got, "number the nodes from 0", *ends, each, at=rows)
    return sizes.astype(np.int64)


def _labels(table: _Table, sizes: Any) -> Any:
    if not table.has("y"):
        return None
    column, fix = table.column("y"), "leave the row out"
    y, rows = column.values, np.arange(len(sizes))
    if column.lengths:
        lengths, *inner = column.lengths
        rows = np.repeat(rows, lengths)
        good = lengths == (1 if (lengths == 1).all() else sizes)
        good &= all((level == 1).all() for level in inner)
        wrong, got = "y is neither one label nor one per node", "{} values for {} nodes"
        keep = "keep one label for a graph, or one for each node, or drop the column"
        table.check(good, wrong, got, keep, lengths, sizes)
    table.check(np.isfinite(y), "y has NaN or infinity", "{}", fix, y, at=rows)
    return y


def _ids(table: _Table, sizes: Any) -> Any:
    """Return ids of nodes, lists of int64 or text; None if the column is something else."""
    if not table.has("ids"):
        return None
    types, kind = table.types, table.content.schema.field("ids").type
    if not (types.is_list(kind) or types.is_large_list(kind)):
        return None
    inner = kind.value_type
    if not (types.is_int64(inner) or types.is_string(inner) or types.is_large_string(inner)):
        return None
    column = table.column("ids", text=True)
    return column.values if np.array_equal(column.lengths[0], sizes) else None
