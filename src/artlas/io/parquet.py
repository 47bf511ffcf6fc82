"""Parquet, one graph a row: edge_index or source and target, and optionally num_nodes, x, y, ids.

Lists are taken as Arrow holds them, offsets and one flat array, so a row costs no Python object.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from artlas.errors import raise_read_error
from artlas.files.atomic import atomic
from artlas.graphs.collection import Graphs
from artlas.graphs.ragged import pointer, ranges
from artlas.io.assembly import Reading, assemble, check_announced
from artlas.io.parquet_process import read_table

_ENDS = (("source", "target"), ("src", "dst"))
_COLUMNS = {"edge_index", *_ENDS[0], *_ENDS[1], "num_nodes", "x", "node_feat", "y", "ids"}


def read(path: Path) -> Reading:
    """Read the graphs of a Parquet file, one for every row."""
    arrow, _ = _pyarrow()
    content, size = read_table(path, _COLUMNS)
    table = _Table(path, content, arrow.types)
    counts, ends = _edges(table)
    listed, x = _features(table)
    guesses = list[str]()
    sizes = _sizes(table, listed, counts, ends, guesses)
    check_announced(path, int(sizes.sum()), size)
    _check_nodes(table, sizes, listed, counts, ends)
    edges = ends.astype(np.int64) + np.repeat(pointer(sizes)[:-1], counts)
    return assemble(
        sizes.tolist(),
        edges,
        undirected=not table.has("edge_index"),
        x=x,
        y=_labels(table, sizes),
        ids=_ids(table, sizes),
        guesses=guesses,
    )


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError("Parquet needs PyArrow: pip install 'artlas[parquet]'") from error


@dataclass(frozen=True)
class _Column:
    """A column of lists of any depth: the lengths of the lists at each, and the flat values."""

    lengths: list[NDArray[np.int64]]
    values: NDArray[Any]

    @property
    def depth(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True)
class _Table:
    """The columns of a file; errors name the row."""

    path: Path
    table: Any
    types: Any

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def has(self, name: str) -> bool:
        return name in self.table.column_names

    def refuse(self, wrong: str, got: str, fix: str) -> NoReturn:
        raise_read_error(self.path, wrong, got, fix)

    def refuse_row(self, row: int, wrong: str, got: str, fix: str) -> NoReturn:
        self.refuse(f"row {row}: {wrong}", got, fix)

    def column(self, name: str, text: bool = False) -> _Column:
        """Return a column of numbers (or of text), or of lists of them; a null is refused."""
        array, rows, lengths = self.table[name].combine_chunks(), np.arange(self.rows), []
        while True:
            if array.null_count:
                first_null = int(array.is_null().to_numpy(zero_copy_only=False).argmax())
                fix = "fill the gaps or leave the row out"
                self.refuse_row(int(rows[first_null]), f"{name} has a null", "null", fix)
            kind, types = array.type, self.types
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
            got = f"{self.table.schema.field(name).type}"
            self.refuse(f"{name} is not a list in every row", got, "store lists")
        return column


def _first(bad: Any) -> int:
    return int(np.argmax(bad))


def _edges(table: _Table) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the edges per row, [rows], and their ends, [2, E]."""
    if table.has("edge_index"):
        counts, ends = _edge_index(table)
    else:
        pair = next((pair for pair in _ENDS if table.has(pair[0]) and table.has(pair[1])), None)
        if pair is None:
            got = f"the columns {', '.join(table.table.column_names) or '(none)'}"
            fix = "store edge_index, or source and target, as lists"
            table.refuse("there is no column of edges", got, fix)
        source, target = map(table.lists, pair)
        counts, others = source.lengths[0], target.lengths[0]
        if (bad := counts != others).any():
            g = _first(bad)
            got, fix = f"{counts[g]} and {others[g]}", "make the lists equally long"
            table.refuse_row(g, f"{pair[0]} and {pair[1]} differ in length", got, fix)
        if source.depth > 1 or target.depth > 1:
            table.refuse(f"{pair[0]} is a list of lists", "two levels", "store flat lists")
        ends = np.stack([source.values, target.values])
    if ends.dtype.kind not in "iu" and ends.size:
        table.refuse("node ids are not integers", f"{ends.dtype}", "store integers")
    return counts, ends if ends.size else ends.astype(np.int64)


def _edge_index(table: _Table) -> tuple[Any, Any]:
    column, fix = table.lists("edge_index"), "store sources and targets as its two rows"
    lengths = column.lengths[0]
    if column.depth == 1:  # [2, E] laid out flat
        if (bad := lengths % 2 != 0).any():
            g = _first(bad)
            table.refuse_row(g, "edge_index is flat and of odd length", f"{lengths[g]}", fix)
        counts = lengths // 2
    elif column.depth == 2:
        if (bad := (lengths != 2) & (lengths != 0)).any():
            g = _first(bad)
            table.refuse_row(g, "edge_index is not of shape [2, E]", f"{lengths[g]} rows", fix)
        filled, pairs = np.flatnonzero(lengths), column.lengths[1].reshape(-1, 2)
        if (bad := pairs[:, 0] != pairs[:, 1]).any():
            g = _first(bad)
            got = f"{pairs[g, 0]} sources and {pairs[g, 1]} targets"
            table.refuse_row(
                int(filled[g]), "the two rows of edge_index differ in length", got, fix
            )
        counts = np.zeros(table.rows, dtype=np.int64)
        counts[filled] = pairs[:, 0]
    else:
        table.refuse("edge_index is nested too deeply", f"{column.depth} levels", fix)
    sources = ranges(pointer(2 * counts)[:-1], pointer(counts))
    return counts, column.values[np.stack([sources, sources + np.repeat(counts, counts)])]


def _features(table: _Table) -> tuple[Any, Any]:
    """Return nodes per row and features float32 [N, d]; None where there is no such column."""
    name = next((name for name in ("x", "node_feat") if table.has(name)), None)
    if name is None:
        return None, None
    column, fix = table.lists(name), "store one list of numbers for each node"
    if column.depth != 2:
        table.refuse(f"{name} is not of shape [n, d]", f"{column.depth} levels of lists", fix)
    listed, widths = column.lengths
    rows = np.repeat(np.arange(table.rows), listed)
    if (bad := widths != widths[:1]).any():
        i = _first(bad)
        got = f"{widths[i]} after {widths[0]}"
        table.refuse_row(int(rows[i]), f"{name} has nodes of different width", got, fix)
    width = int(widths[0]) if len(widths) else 0
    with np.errstate(over="ignore"):
        x = column.values.astype(np.float32).reshape(len(widths), width)
    if not (finite := np.isfinite(x).all(axis=1)).all():
        row, fix = int(rows[_first(~finite)]), "replace it before storing"
        table.refuse_row(row, f"{name} has NaN or infinity", "it as float32", fix)
    return listed, x


def _sizes(
    table: _Table, listed: Any, counts: Any, ends: Any, guesses: list[str]
) -> NDArray[np.int64]:
    """Return the number of nodes of every row."""
    if table.has("num_nodes"):
        column = table.column("num_nodes")
        sizes = column.values
        if sizes.dtype.kind not in "iu" or column.depth:
            table.refuse("num_nodes is not an integer", f"{sizes.dtype}", "store integers")
    elif listed is not None:
        sizes = listed
    else:
        guesses.append("num_nodes is the highest id of a row + 1")
        sizes, filled = np.zeros(table.rows, dtype=np.int64), counts > 0
        if filled.any():
            highest = np.maximum(ends[0], ends[1]).clip(0, 2**31).astype(np.int64)
            sizes[filled] = np.maximum.reduceat(highest, pointer(counts)[:-1][filled]) + 1
    if (bad := (sizes < 1) | (sizes > np.iinfo(np.int32).max)).any():
        g, wrong = _first(bad), "there are no nodes, or too many"
        table.refuse_row(g, wrong, f"{sizes[g]}", "correct num_nodes")
    return sizes.astype(np.int64)


def _check_nodes(table: _Table, sizes: Any, listed: Any, counts: Any, ends: Any) -> None:
    """Check features and edges against the number of nodes."""
    if listed is not None and (bad := listed != sizes).any():
        g, wrong = _first(bad), "x does not have one row for each node"
        table.refuse_row(g, wrong, f"{listed[g]} for {sizes[g]} nodes", "correct x or num_nodes")
    rows = np.repeat(np.arange(table.rows), counts)
    if (bad := ((ends < 0) | (ends >= sizes[rows])).any(axis=0)).any():
        i = _first(bad)
        g, fix = int(rows[i]), "number the nodes from 0"
        got = f"{ends[0, i]} - {ends[1, i]} with {sizes[g]} nodes"
        table.refuse_row(g, "a node id is out of range", got, fix)


def _labels(table: _Table, sizes: Any) -> Any:
    if not table.has("y"):
        return None
    column = table.column("y")
    y, rows = column.values, np.arange(table.rows)
    if column.depth:
        lengths, inner = column.lengths[0], column.lengths[1:]
        rows = np.repeat(rows, lengths)
        bad = lengths != (1 if (lengths == 1).all() else sizes)
        if bad.any() or not all((level == 1).all() for level in inner):
            g = _first(bad)
            got = f"{lengths[g]} values for {sizes[g]} nodes"
            fix = "keep one label for a graph, or one for each node, or drop the column"
            table.refuse_row(g, "y is neither one label nor one per node", got, fix)
    if not (finite := np.isfinite(y)).all():
        i = _first(~finite)
        fix = "leave the row out"
        table.refuse_row(int(rows[i]), "y has NaN or infinity", f"{y[i]}", fix)
    return y


def _ids(table: _Table, sizes: Any) -> Any:
    """Return ids of nodes as :func:`write` stores them; None if the column is something else."""
    if not table.has("ids"):
        return None
    types, kind = table.types, table.table.schema.field("ids").type
    if not (types.is_list(kind) or types.is_large_list(kind)):
        return None
    inner = kind.value_type
    if not (types.is_int64(inner) or types.is_string(inner) or types.is_large_string(inner)):
        return None
    column = table.column("ids", text=True)
    return column.values if np.array_equal(column.lengths[0], sizes) else None


def write(graphs: Graphs, path: Path | str) -> None:
    """Store graphs, one a row, with all their edges in both directions; read gives them back."""
    arrow, parquet = _pyarrow()
    node_ptr, row_ptr = graphs.node_ptr.numpy(), graphs.row_ptr.numpy()
    sizes, first = np.diff(node_ptr), row_ptr[node_ptr]
    counts = np.diff(first)
    ends = np.empty(2 * len(graphs.col), dtype=np.int32)
    # Graph g holds entries first[g] ... and is preceded by two numbers for each earlier entry.
    place = np.arange(len(graphs.col)) + np.repeat(first[:-1], counts)
    base = np.repeat(node_ptr[:-1], counts)
    ends[place] = np.repeat(np.arange(graphs.num_nodes), np.diff(row_ptr)) - base
    ends[place + np.repeat(counts, counts)] = graphs.col.numpy() - base

    def lists(lengths: Any, values: Any) -> Any:
        return arrow.LargeListArray.from_arrays(pointer(lengths), values)

    rows = lists(np.repeat(counts, 2), arrow.array(ends))
    columns = {"num_nodes": sizes, "edge_index": lists(np.full(len(sizes), 2), rows)}
    if graphs.x is not None:
        width = np.full(graphs.num_nodes, graphs.num_features)
        flat = arrow.array(graphs.x.contiguous().numpy().reshape(-1))
        columns["x"] = lists(sizes, lists(width, flat))
    if graphs.y is not None:
        y = arrow.array(graphs.y.contiguous().numpy())
        columns["y"] = y if len(graphs.y) == len(graphs) else lists(sizes, y)
    if graphs.ids is not None:
        columns["ids"] = lists(sizes, arrow.array(graphs.ids))
    with atomic(Path(path)) as out:
        parquet.write_table(arrow.table(columns), out)
