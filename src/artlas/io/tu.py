"""A folder in TU layout: NAME_A.txt, NAME_graph_indicator.txt, and what else belongs to NAME."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas import kernels
from artlas.errors import raise_read_error
from artlas.files.untrusted import mapped
from artlas.graphs.canonical import canonical, count_changes
from artlas.graphs.collection import Graphs
from artlas.graphs.ragged import pointer
from artlas.graphs.validation import check_features, check_labels
from artlas.io.assembly import Reading
from artlas.io.number_tables import parse_numbers, read_numbers

WIDEST = 1024  # columns that the one-hot labels of nodes may take


def read(folder: Path, name: str | None = None) -> Reading:
    """Graphs with x = [attributes | one-hot labels] of their nodes and y counted from 0."""
    name = _only_name(folder) if name is None else name
    owner, node_ptr = _owners(folder / f"{name}_graph_indicator.txt")
    count, nodes = len(node_ptr) - 1, len(owner)
    order = None if (np.diff(owner) >= 0).all() else np.argsort(owner, kind="stable")
    changes = Counter[str]()
    row_ptr, col = _rows(folder / f"{name}_A.txt", owner, order, node_ptr, changes)
    x = _features(folder, name, nodes)
    if order is not None and x is not None:
        x = x[order]
    y, guesses = _labels(folder, name, count)
    features = check_features(x, [nodes])
    labels = check_labels(y, np.diff(node_ptr).tolist())
    graphs = Graphs(torch.from_numpy(node_ptr), row_ptr, col, features, labels)
    return Reading(graphs, [f"TU layout, data set {name}", *guesses], changes)


def _only_name(folder: Path) -> str:
    names = sorted(path.name.removesuffix("_A.txt") for path in folder.glob("*_A.txt"))
    if len(names) != 1:
        got = f"{len(names)} files that end in _A.txt" if names else "no file that ends in _A.txt"
        fix = "pass a folder with NAME_A.txt and NAME_graph_indicator.txt of one data set"
        raise_read_error(folder, "the folder is not in TU layout", got, fix)
    return names[0]


def _owners(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The graph of every node from 0, and the pointer to the nodes of every graph."""
    owner = read_numbers(path, 1)[:, 0]
    if len(owner) == 0:
        raise_read_error(
            path, "there are no nodes", "an empty file", "write a graph number per node"
        )
    if owner.min() < 1 or owner.max() > len(owner):
        row = int(np.argmax((owner < 1) | (owner > len(owner))))
        fix = "number the graphs from 1 without gaps"
        raise_read_error(path, "a graph number is out of range", f"{owner[row]}", fix, row + 1)
    sizes = np.bincount(owner)[1:]
    if not sizes.all():
        got = f"no node in graph {int(np.argmin(sizes)) + 1}"
        raise_read_error(path, "a graph has no nodes", got, "number the graphs from 1 without gaps")
    return owner - 1, pointer(sizes)


def _rows(
    path: Path,
    owner: NDArray[np.int64],
    order: NDArray[np.int64] | None,
    node_ptr: NDArray[np.int64],
    changes: Counter[str],
) -> tuple[Tensor, Tensor]:
    """row_ptr and col; ``order`` is that of nodes if graphs are not stored as blocks."""
    text, native, nodes = mapped(path), kernels.native_data(), len(owner)
    made = native.canonical_text(text, nodes, 1) if native is not None and order is None else None
    if made is not None:  # in ascending order, as most files are: no need for the list of edges
        count_changes(made, changes)
        row_ptr, col = torch.from_numpy(made.row_ptr), torch.from_numpy(made.col)
    else:
        pairs = parse_numbers(text, path, 2, np.int32)
        edges, first = pairs.T, 1
        if order is not None and _within(pairs, nodes):
            place = np.empty(nodes, dtype=np.int32)
            place[order] = np.arange(nodes, dtype=np.int32)
            edges, first = place[edges - 1], 0
        try:
            _, row_ptr, col = canonical([nodes], [edges], changes, first=first)
        except IndexError:
            row = int(np.argmax(((pairs < 1) | (pairs > nodes)).any(1)))
            got, fix = f"{pairs[row].tolist()} with {nodes} nodes", "number the nodes from 1"
            raise_read_error(path, "a node number is out of range", got, fix, row + 1)
    if _leaves(row_ptr.numpy(), col.numpy(), node_ptr):
        pairs = parse_numbers(text, path, 2, np.int32)
        graph = owner[pairs - 1]
        row = int(np.argmax(graph[:, 0] != graph[:, 1]))
        got = f"{pairs[row].tolist()}, of graphs {(graph[row] + 1).tolist()}"
        raise_read_error(
            path, "an edge joins two graphs", got, "keep every edge within a graph", row + 1
        )
    return row_ptr, col


def _within(pairs: NDArray[np.int32], nodes: int) -> bool:
    return len(pairs) == 0 or bool(pairs.min() >= 1 and pairs.max() <= nodes)


def _leaves(
    row_ptr: NDArray[np.int64], col: NDArray[np.int32], node_ptr: NDArray[np.int64]
) -> bool:
    """Whether an edge of symmetric, sorted rows leaves a graph: told by the last of every row."""
    some = np.flatnonzero(np.diff(row_ptr))
    reach = np.zeros(len(row_ptr) - 1, dtype=np.int32)
    reach[some] = col[row_ptr[some + 1] - 1]
    reach = np.maximum.accumulate(reach)
    return bool((reach[node_ptr[1:] - 1] >= node_ptr[1:]).any())


def _features(folder: Path, name: str, nodes: int) -> NDArray[np.float32] | None:
    attributes = _optional(folder / f"{name}_node_attributes.txt", nodes, "node", np.float64)
    labels = _optional(folder / f"{name}_node_labels.txt", nodes, "node", np.int64)
    parts = [] if attributes is None else [attributes.astype(np.float32)]
    if labels is not None:
        parts += [_one_hot(column, folder / f"{name}_node_labels.txt") for column in labels.T]
    return np.concatenate(parts, axis=1) if parts else None


def _one_hot(values: NDArray[np.int64], path: Path) -> NDArray[np.float32]:
    low, high = int(values.min()), int(values.max())
    if high - low >= WIDEST:
        fix = f"renumber them, or store them as attributes (at most {WIDEST} columns are made)"
        raise_read_error(path, "node labels span too wide a range", f"{low} to {high}", fix)
    out = np.zeros((len(values), high - low + 1), dtype=np.float32)
    out[np.arange(len(values)), values - low] = 1
    return out


def _labels(folder: Path, name: str, graphs: int) -> tuple[Any, list[str]]:
    classes = _optional(folder / f"{name}_graph_labels.txt", graphs, "graph", np.int64)
    if classes is not None:
        if classes.shape[1] == 1:
            found, y = np.unique(classes[:, 0], return_inverse=True)
            return y, [f"{len(found)} classes"]
        return None, [f"{classes.shape[1]} columns of graph labels left out"]
    values = _optional(folder / f"{name}_graph_attributes.txt", graphs, "graph", np.float64)
    if values is not None and values.shape[1] == 1:
        return values[:, 0], ["the attribute of every graph is y"]
    return None, ["no labels of graphs"]


def _optional(path: Path, rows: int, what: str, dtype: Any) -> NDArray[Any] | None:
    if not path.exists():
        return None
    values = read_numbers(path, None, dtype)
    if len(values) != rows:
        got, fix = f"{len(values)} for {rows} {what}s", f"write one line per {what}"
        raise_read_error(path, "the number of lines is wrong", got, fix)
    return values
