"""A folder in TU layout: NAME_A.txt, NAME_graph_indicator.txt, and what else belongs to NAME."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.entrance import canonical, check_features, check_labels, pointer
from artlas.formats.files import refuse
from artlas.formats.numbers import read_numbers
from artlas.formats.reading import Reading
from artlas.graphs import Graphs

WIDEST = 1024  # columns that the one-hot labels of nodes may take


def read(folder: Path, name: str | None = None) -> Reading:
    """Graphs with x = [attributes | one-hot labels] of their nodes and y counted from 0."""
    name = _only_name(folder) if name is None else name
    owner, node_ptr = _owners(folder / f"{name}_graph_indicator.txt")
    edges, order = _edges(folder / f"{name}_A.txt", owner)
    count, nodes = len(node_ptr) - 1, len(owner)
    x = _features(folder, name, nodes)
    if order is not None and x is not None:
        x = x[order]
    y, guesses = _labels(folder, name, count)
    changes = Counter[str]()
    _, row_ptr, col = canonical([nodes], [edges], changes)
    features = check_features(x, [nodes])
    labels = check_labels(y, np.diff(node_ptr).tolist())
    graphs = Graphs(torch.from_numpy(node_ptr), row_ptr, col, features, labels)
    return Reading(graphs, [f"TU layout, data set {name}", *guesses], changes)


def _only_name(folder: Path) -> str:
    names = sorted(path.name.removesuffix("_A.txt") for path in folder.glob("*_A.txt"))
    if len(names) != 1:
        got = f"{len(names)} files that end in _A.txt" if names else "no file that ends in _A.txt"
        fix = "pass a folder with NAME_A.txt and NAME_graph_indicator.txt of one data set"
        refuse(folder, "the folder is not in TU layout", got, fix)
    return names[0]


def _owners(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The graph of every node from 0, and the pointer to the nodes of every graph."""
    owner = read_numbers(path, 1)[:, 0]
    if len(owner) == 0:
        refuse(path, "there are no nodes", "an empty file", "write a graph number per node")
    if owner.min() < 1 or owner.max() > len(owner):
        row = int(np.argmax((owner < 1) | (owner > len(owner))))
        fix = "number the graphs from 1 without gaps"
        refuse(path, "a graph number is out of range", f"{owner[row]}", fix, row + 1)
    sizes = np.bincount(owner)[1:]
    if not sizes.all():
        got = f"no node in graph {int(np.argmin(sizes)) + 1}"
        refuse(path, "a graph has no nodes", got, "number the graphs from 1 without gaps")
    return owner - 1, pointer(sizes)


def _edges(
    path: Path, owner: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64] | None]:
    """Edges [2, E], counted from 0; and the order of nodes if graphs are not stored as blocks."""
    pairs = read_numbers(path, 2, np.int32)
    if len(pairs) and (pairs.min() < 1 or pairs.max() > len(owner)):
        row = int(np.argmax(((pairs < 1) | (pairs > len(owner))).any(1)))
        got, fix = f"{pairs[row].tolist()} with {len(owner)} nodes", "number the nodes from 1"
        refuse(path, "a node number is out of range", got, fix, row + 1)
    pairs -= 1
    small = owner.astype(np.int32)
    across = small[pairs[:, 0]] != small[pairs[:, 1]]
    if across.any():
        row = int(np.argmax(across))
        got = f"{(pairs[row] + 1).tolist()}, of graphs {(owner[pairs[row]] + 1).tolist()}"
        refuse(path, "an edge joins two graphs", got, "keep every edge within a graph", row + 1)
    if (np.diff(owner) >= 0).all():
        return pairs.T, None
    order = np.argsort(owner, kind="stable")
    place = np.empty(len(owner), dtype=np.int32)
    place[order] = np.arange(len(owner), dtype=np.int32)
    return place[pairs.T], order


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
        refuse(path, "node labels span too wide a range", f"{low} to {high}", fix)
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
        refuse(path, "the number of lines is wrong", got, fix)
    return values
