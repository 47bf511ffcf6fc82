"""TU layout, a folder or .zip: NAME_A.txt, NAME_graph_indicator.txt, and what belongs to NAME."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas import kernels
from artlas.errors import ReadError, raise_read_error
from artlas.files.untrusted import mapped, unpack
from artlas.graphs.canonical import canonical, count_changes
from artlas.graphs.collection import Graphs
from artlas.graphs.ragged import pointer
from artlas.graphs.validation import check_features, check_labels
from artlas.io.assembly import Reading
from artlas.io.number_tables import parse_numbers, read_numbers

WIDEST = 1024  # columns that the one-hot labels of nodes may take
_MEMBER = re.compile(r"(?s).+_(A|graph_indicator|(graph|node|edge)_(labels|attributes))\.txt")


def read(path: Path, name: str | None = None) -> Reading:
    """Read graphs with x = [attributes | one-hot labels] of their nodes, and y counted from 0."""
    if path.is_dir():
        return _read_folder(path, name)
    with tempfile.TemporaryDirectory(prefix="artlas-") as folder:
        if not unpack(path, Path(folder), lambda member: _MEMBER.fullmatch(member) is not None):
            fix = "pass a .zip that holds NAME_A.txt and its companions, or unpack it"
            raise_read_error(path, "the archive is not in TU layout", "no file NAME_A.txt", fix)
        try:
            return read(Path(folder), name)
        except ReadError as error:
            raise ReadError(str(error).replace(folder, str(path))) from None


def _read_folder(folder: Path, name: str | None) -> Reading:
    names = sorted(path.name.removesuffix("_A.txt") for path in folder.glob("*_A.txt"))
    if name is None and len(names) != 1:
        got = f"{len(names)} files that end in _A.txt" if names else "no file NAME_A.txt"
        fix = "pass a folder with NAME_A.txt and NAME_graph_indicator.txt of one data set"
        raise_read_error(folder, "the folder is not in TU layout", got, fix)
    name = name or names[0]
    owner, node_ptr = _read_owners(folder / f"{name}_graph_indicator.txt")
    nodes, sizes = len(owner), np.diff(node_ptr)
    order = None if (np.diff(owner) >= 0).all() else np.argsort(owner, kind="stable")
    changes = Counter[str]()
    row_ptr, col = _read_rows(folder / f"{name}_A.txt", owner, order, node_ptr, changes)
    x = _read_features(folder, name, nodes)
    x = x if x is None or order is None else x[order]
    y, guess = _read_labels(folder, name, len(sizes))
    features, labels = check_features(x, [nodes]), check_labels(y, sizes.tolist())
    graphs = Graphs(torch.from_numpy(node_ptr), row_ptr, col, features, labels)
    return Reading(graphs, [f"TU layout, data set {name}", guess], changes)


def _read_owners(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the graph of every node, from 0, and node_ptr."""
    owner, fix = read_numbers(path, 1)[:, 0], "number the graphs from 1 without gaps"
    if len(owner) == 0:
        raise_read_error(path, "there are no nodes", "an empty file", "write a number per node")
    if owner.min() < 1 or owner.max() > len(owner):
        row = int(np.argmax((owner < 1) | (owner > len(owner))))
        raise_read_error(path, "a graph number is out of range", f"{owner[row]}", fix, row + 1)
    sizes = np.bincount(owner)[1:]
    if not sizes.all():
        raise_read_error(path, "a graph has no nodes", f"graph {np.argmin(sizes) + 1}", fix)
    return owner - 1, pointer(sizes)


def _read_rows(
    path: Path, owner: Any, order: Any, node_ptr: Any, changes: Counter[str]
) -> tuple[Tensor, Tensor]:
    """Return row_ptr and col; ``order`` is that of nodes if graphs are not stored as blocks."""
    text, native, nodes = mapped(path), kernels.native_data(), len(owner)
    rows = native.canonical_text(text, nodes, 1) if native is not None and order is None else None
    if rows is not None:  # in ascending order, as most files are: no need for the list of edges
        count_changes(rows, changes)
        row_ptr, col = torch.from_numpy(rows.row_ptr), torch.from_numpy(rows.col)
    else:
        pairs = parse_numbers(text, path, 2, np.int32)
        edges, first = pairs.T, 1
        outside = ((pairs < 1) | (pairs > nodes)).any(axis=1)
        if order is not None and not outside.any():
            place = np.empty(nodes, dtype=np.int32)
            place[order] = np.arange(nodes, dtype=np.int32)
            edges, first = place[edges - 1], 0
        try:
            row_ptr, col = canonical([nodes], [edges], changes, first=first)
        except IndexError:
            row = int(np.argmax(outside))
            got, fix = f"{pairs[row].tolist()} with {nodes} nodes", "number the nodes from 1"
            raise_read_error(path, "a node number is out of range", got, fix, row + 1)
    # Rows are symmetric and sorted: an edge leaves a graph if the last neighbour lies behind it.
    filled, reach = np.flatnonzero(row_ptr.diff()), np.zeros(nodes, dtype=np.int32)
    reach[filled] = col.numpy()[row_ptr.numpy()[filled + 1] - 1]
    reach = np.maximum.accumulate(reach)
    if (reach[node_ptr[1:] - 1] >= node_ptr[1:]).any():
        pairs = parse_numbers(text, path, 2, np.int32)
        graph = owner[pairs - 1]
        row = int(np.argmax(graph[:, 0] != graph[:, 1]))
        got = f"{pairs[row].tolist()}, of graphs {(graph[row] + 1).tolist()}"
        raise_read_error(path, "an edge joins two graphs", got, "leave the edge out", row + 1)
    return row_ptr, col


def _read_features(folder: Path, name: str, nodes: int) -> NDArray[np.float32] | None:
    path = folder / f"{name}_node_labels.txt"
    labels = _read_optional(path, nodes, "node", np.int64)
    values = _read_optional(folder / f"{name}_node_attributes.txt", nodes, "node", np.float64)
    parts = [] if values is None else [values.astype(np.float32)]
    for column in [] if labels is None else labels.T:
        low, high = int(column.min()), int(column.max())
        if high - low >= WIDEST:
            fix = f"renumber them, or store them as attributes (at most {WIDEST} columns are made)"
            raise_read_error(path, "node labels span too wide a range", f"{low} to {high}", fix)
        parts.append((column[:, None] == np.arange(low, high + 1)).astype(np.float32))
    return np.concatenate(parts, axis=1) if parts else None


def _read_labels(folder: Path, name: str, graphs: int) -> tuple[Any, str]:
    """Return y and what was guessed for it."""
    path = folder / f"{name}_graph_labels.txt"
    classes = _read_optional(path, graphs, "graph", np.int64)
    if classes is not None:
        if classes.shape[1] > 1:
            return None, f"{classes.shape[1]} columns of graph labels left out"
        distinct, y = np.unique(classes[:, 0], return_inverse=True)
        return y, f"{len(distinct)} classes"
    values = _read_optional(folder / f"{name}_graph_attributes.txt", graphs, "graph", np.float64)
    if values is not None and values.shape[1] == 1:
        return values[:, 0], "the attribute of every graph is y"
    return None, "no labels of graphs"


def _read_optional(path: Path, rows: int, what: str, dtype: Any) -> NDArray[Any] | None:
    if not path.exists():
        return None
    values = read_numbers(path, None, dtype)
    if len(values) != rows:
        got, fix = f"{len(values)} for {rows} {what}s", f"write one line per {what}"
        raise_read_error(path, "the number of lines is wrong", got, fix)
    return values
