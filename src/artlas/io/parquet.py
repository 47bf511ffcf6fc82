"""Parquet, one graph a row: edge_index or source and target, and if there num_nodes, x, y, ids.

Lists are taken as Arrow holds them, offsets and one flat array, so a row costs no Python object.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from artlas.errors import raise_read_error
from artlas.files.atomic import atomic
from artlas.graphs.collection import Graphs
from artlas.graphs.ragged import pointer, ranges
from artlas.io.assembly import Reading, assemble, check_announced
from artlas.io.parquet_columns import Lists, Table
from artlas.io.parquet_process import read_table

_ENDS = (("source", "target"), ("src", "dst"))
_COLUMNS = {"edge_index", *_ENDS[0], *_ENDS[1], "num_nodes", "x", "node_feat", "y", "ids"}


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError("Parquet needs PyArrow: pip install 'artlas[parquet]'") from error


def _first(bad: Any) -> int:
    return int(np.argmax(bad))


def _edges(table: Table) -> tuple[Any, Any, bool]:
    """Edges per row, int64 [rows], their ends [2, E], and whether they lie in both directions."""
    if table.has("edge_index"):
        counts, ends = _edge_index(table)
    else:
        pair = next((pair for pair in _ENDS if table.has(pair[0]) and table.has(pair[1])), None)
        if pair is None:
            got = f"the columns {', '.join(table.table.column_names) or '(none)'}"
            fix = "store edge_index, or source and target, as lists"
            raise_read_error(table.path, "there is no column of edges", got, fix)
        source, target = table.lists(pair[0]), table.lists(pair[1])
        if (bad := source.lengths != target.lengths).any():
            g = _first(bad)
            got = f"{source.lengths[g]} and {target.lengths[g]}"
            fix = "make the lists equally long"
            table.raise_read_error(g, f"{pair[0]} and {pair[1]} differ in length", got, fix)
        if source.depth > 1 or target.depth > 1:
            raise_read_error(
                table.path, f"{pair[0]} is a list of lists", "two levels", "store flat lists"
            )
        counts, ends = source.lengths, np.stack([source.flat, target.flat])
    if ends.dtype.kind not in "iu":
        if ends.size:
            raise_read_error(
                table.path, "node ids are not integers", f"{ends.dtype}", "store integers"
            )
        ends = ends.astype(np.int64)
    return counts, ends, table.has("edge_index")


def _edge_index(table: Table) -> tuple[Any, Any]:
    lists, fix = table.lists("edge_index"), "store sources and targets as its two rows"
    if lists.depth == 1:  # [2, E] laid out flat
        if (bad := lists.lengths % 2 != 0).any():
            g = _first(bad)
            table.raise_read_error(
                g, "edge_index is flat and of odd length", f"{lists.lengths[g]}", fix
            )
        counts = lists.lengths // 2
        starts = pointer(lists.lengths)[:-1]
    elif lists.depth == 2 and lists.inner is not None:
        if (bad := (lists.lengths != 2) & (lists.lengths != 0)).any():
            g = _first(bad)
            table.raise_read_error(
                g, "edge_index is not of shape [2, E]", f"{lists.lengths[g]} rows", fix
            )
        two, lengths = np.flatnonzero(lists.lengths), lists.inner.lengths.reshape(-1, 2)
        if (bad := lengths[:, 0] != lengths[:, 1]).any():
            g = _first(bad)
            got = f"{lengths[g, 0]} sources and {lengths[g, 1]} targets"
            table.raise_read_error(
                int(two[g]), "the two rows of edge_index differ in length", got, fix
            )
        counts = np.zeros(table.rows, dtype=np.int64)
        counts[two] = lengths[:, 0]
        starts = pointer(2 * counts)[:-1]
    else:
        raise_read_error(
            table.path, "edge_index is nested too deeply", f"{lists.depth} levels", fix
        )
    sources = ranges(starts, pointer(counts))
    return counts, np.stack([lists.flat[sources], lists.flat[sources + np.repeat(counts, counts)]])


def _features(table: Table) -> tuple[Any, Any]:
    """Nodes per row and features float32 [N, d]; None where there is no such column."""
    name = next((name for name in ("x", "node_feat") if table.has(name)), None)
    if name is None:
        return None, None
    lists, fix = table.lists(name), "store one list of numbers for each node"
    if lists.depth != 2 or lists.inner is None:
        raise_read_error(
            table.path, f"{name} is not of shape [n, d]", f"{lists.depth} levels of lists", fix
        )
    widths, rows = lists.inner.lengths, np.repeat(np.arange(table.rows), lists.lengths)
    if (bad := widths != widths[:1]).any():
        i = _first(bad)
        got = f"{widths[i]} after {widths[0]}"
        table.raise_read_error(int(rows[i]), f"{name} has nodes of different width", got, fix)
    width = int(widths[0]) if len(widths) else 0
    with np.errstate(over="ignore"):
        x = lists.flat.astype(np.float32).reshape(len(widths), width)
    if not (finite := np.isfinite(x)).all():
        i = _first(~finite.all(axis=1))
        fix = "replace it before storing"
        table.raise_read_error(int(rows[i]), f"{name} has NaN or infinity", "it as float32", fix)
    return lists.lengths, x


def _sizes(table: Table, size: int, listed: Any, counts: Any, ends: Any) -> tuple[Any, list[str]]:
    """Nodes of every row, checked, and what had to be guessed for them."""
    said = []
    if table.has("num_nodes"):
        sizes = table.scalars("num_nodes")
        if sizes.dtype.kind not in "iu":
            raise_read_error(
                table.path, "num_nodes is not an integer", f"{sizes.dtype}", "store integers"
            )
    elif listed is not None:
        sizes = listed
    else:
        said.append("num_nodes is the highest id of a row + 1")
        sizes, some = np.zeros(table.rows, dtype=np.int64), counts > 0
        if some.any():
            highest = np.maximum(ends[0], ends[1]).clip(0, 2**31).astype(np.int64)
            sizes[some] = np.maximum.reduceat(highest, pointer(counts)[:-1][some]) + 1
    if (bad := (sizes < 1) | (sizes > np.iinfo(np.int32).max)).any():
        g = _first(bad)
        table.raise_read_error(
            g, "there are no nodes, or too many", f"{sizes[g]}", "correct num_nodes"
        )
    sizes = sizes.astype(np.int64)
    check_announced(table.path, int(sizes.sum()), size)
    if listed is not None and (bad := listed != sizes).any():
        g = _first(bad)
        got = f"{listed[g]} for {sizes[g]} nodes"
        table.raise_read_error(
            g, "x does not have one row for each node", got, "correct x or num_nodes"
        )
    owner = np.repeat(np.arange(table.rows), counts)
    if (bad := ((ends < 0) | (ends >= sizes[owner])).any(axis=0)).any():
        i = _first(bad)
        got = f"{ends[0, i]} - {ends[1, i]} with {sizes[owner[i]]} nodes"
        table.raise_read_error(
            int(owner[i]), "a node id is out of range", got, "number the nodes from 0"
        )
    return sizes, said


def _labels(table: Table, sizes: Any) -> Any:
    if not table.has("y"):
        return None
    if not table.is_list("y"):
        y, owner = table.scalars("y"), np.arange(table.rows)
    else:
        lists = table.lists("y")
        y, owner = lists.flat, np.repeat(np.arange(table.rows), lists.lengths)
        while lists.inner is not None and (lists.inner.lengths == 1).all():
            lists = Lists(lists.lengths, lists.inner.inner, y)
        bad = lists.lengths != (1 if (lists.lengths == 1).all() else sizes)
        if lists.inner is not None or bad.any():
            g = _first(bad)
            got = f"{lists.lengths[g]} values for {sizes[g]} nodes"
            fix = "keep one label for a graph, or one for each node, or drop the column"
            table.raise_read_error(g, "y is neither one label nor one per node", got, fix)
    if not (finite := np.isfinite(y)).all():
        i = _first(~finite)
        table.raise_read_error(
            int(owner[i]), "y has NaN or infinity", f"{y[i]}", "leave the row out"
        )
    return y


def _ids(table: Table, sizes: Any) -> Any:
    """Names of nodes as :func:`write` stores them; None if a column ids is something else."""
    if not table.has("ids") or not table.is_list("ids"):
        return None
    kind, types = table.table.schema.field("ids").type.value_type, table.arrow.types
    if not (types.is_int64(kind) or types.is_string(kind) or types.is_large_string(kind)):
        return None
    ids = table.lists("ids", text=True)
    return ids.flat if np.array_equal(ids.lengths, sizes) else None


def read(path: Path) -> Reading:
    """The graphs of a Parquet file, one for every row."""
    arrow, _ = _pyarrow()
    columns, size = read_table(path, _COLUMNS)
    table = Table(path, columns, arrow)
    counts, ends, both = _edges(table)
    listed, x = _features(table)
    sizes, said = _sizes(table, size, listed, counts, ends)
    y, ids = _labels(table, sizes), _ids(table, sizes)
    edges = ends.astype(np.int64) + np.repeat(pointer(sizes)[:-1], counts)
    return assemble(sizes.tolist(), edges, undirected=not both, x=x, y=y, ids=ids, guesses=said)


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
