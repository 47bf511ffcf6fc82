"""What formats with named nodes and attributes share: from nodes and edges to a Reading.

Nodes keep the order of the file. Attributes that are numbers on every node become x, the one
called y becomes y, and what is left out is said.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.graphs.collection import Graphs
from artlas.graphs.ragged import pointer
from artlas.graphs.validation import check_features, check_labels
from artlas.io.assembly import Reading, assemble

WEIGHTS = ("weight", "value")
NESTED = object()  # the value of an attribute that is a structure, or is given twice
MOST_NAMES = 8
ENTRIES_ALWAYS = 1_000_000  # entries of x that defaults may add whatever the size of the file
ENTRIES_PER_BYTE = 16
FLOAT32_MAX = float(np.finfo(np.float32).max)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def integer(text: str) -> int:
    """A whole number in ASCII digits; ValueError otherwise, also for thousands of digits."""
    if not text.isascii() or "_" in text:
        raise ValueError(f"no integer: {text}")
    return int(text)


def real(text: str) -> float:
    """A decimal number; ValueError otherwise."""
    if not text.isascii() or "_" in text:
        raise ValueError(f"no number: {text}")
    return float(text)


@dataclass
class Column:
    """The numbers of one node attribute, and the nodes that have it."""

    rows: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    default: Any = None
    trouble: str = ""

    def add(self, row: int, value: Any) -> None:
        if value is None or self.trouble:
            return
        if is_number(value):
            self.rows.append(row)
            self.values.append(value)
            return
        self.trouble = "text" if isinstance(value, str) else "not a number"
        self.rows, self.values = [], []

    def filled(self, nodes: int) -> list[Any]:
        """One value for every node; ``trouble`` is set where there is none."""
        if self.default is not None and not self.trouble:
            if not is_number(self.default):
                self.trouble = "text"
                return []
            every = [self.default] * nodes
            for row, value in zip(self.rows, self.values, strict=True):
                every[row] = value
            return every
        if len(self.rows) < nodes and not self.trouble:
            self.trouble = "not on every node"
        return self.values


class Builder:
    """Takes graphs, nodes and edges in the order of a file and makes a Reading of them.

    ``where`` is a number that ``line_of`` turns into a line, or the name of the place in the file.
    """

    line_of: Callable[[int], int] = staticmethod(int)

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.line: int | None = None  # of the graph, where every line holds one
        self.sizes: list[int] = []
        self.graph_y: list[Any] = []
        self.names: list[Any] = []
        self.columns: dict[str, Column] = {}
        self.ends: list[int] = []  # source, target, source, target, ...
        self.directed: list[bool] = []
        self.late: list[tuple[int, Hashable, int | str]] = []
        self.numbers: dict[Hashable, int] = {}
        self.changes = Counter[str]()

    def raise_read_error(self, where: int | str, wrong: str, got: str, fix: str) -> NoReturn:
        if isinstance(where, int):
            raise_read_error(self.path, wrong, got, fix, self.line_of(where))
        raise_read_error(self.path, f"{where}: {wrong}" if where else wrong, got, fix, self.line)

    def column(self, name: str) -> Column:
        return self.columns.setdefault(name, Column())

    def node(self, key: Hashable, attributes: Mapping[str, Any], where: int | str) -> None:
        """Add a node that edges call ``key``."""
        if key in self.numbers:
            fix = "give every node of a graph an id of its own"
            self.raise_read_error(where, "a node id appears twice", quoted(key), fix)
        row = len(self.names)
        self.numbers[key] = row
        self.names.append(key)
        for name, value in attributes.items():
            self.column(name).add(row, value)

    def edge(
        self, source: Hashable, target: Hashable, where: int | str, directed: bool, weight: Any = 1
    ) -> None:
        """Add an edge; its nodes may come later in the same graph."""
        for key in (source, target):
            number = self.numbers.get(key, -1)
            if number < 0:
                self.late.append((len(self.ends), key, where))
            self.ends.append(number)
        self.directed.append(directed)
        if is_number(weight) and weight != 1:
            self.changes["weights"] += 1

    def close(self, where: int | str, y: Any = None) -> None:
        """End a graph: every edge must have found its nodes."""
        if not self.numbers:
            fix = "leave out graphs without nodes"
            self.raise_read_error(where, "a graph has no nodes", f"graph {len(self.sizes)}", fix)
        for position, key, place in self.late:
            if key not in self.numbers:
                fix = "declare the node in the same graph, or drop the edge"
                self.raise_read_error(
                    place, "an edge names a node that is not there", quoted(key), fix
                )
            self.ends[position] = self.numbers[key]
        self.sizes.append(len(self.numbers))
        self.graph_y.append(y)
        self.late, self.numbers = [], {}

    def finish(self, names: Sequence[Any] | None = None, guesses: Sequence[str] = ()) -> Reading:
        """The reading of all graphs; ``names`` replace the keys of the nodes as their names."""
        if not self.sizes:
            self.raise_read_error(
                "", "there is no graph in the file", "none", "check that it is the right one"
            )
        said = list(guesses)
        y, y_of = self._labels(said)
        x = self._features(said, y_of)
        directed = np.array(self.directed, dtype=bool)
        edges = np.array(self.ends, dtype=np.int64).reshape(-1, 2).T
        one_way = bool(directed.any())
        if one_way and not directed.all():
            edges = both_ways(edges, directed, len(self.names), self.changes)
        return assemble_flat(
            self.sizes,
            edges,
            undirected=not one_way,
            x=x,
            y=y,
            ids=as_ids(self.names if names is None else names, self.sizes),
            guesses=said,
            changes=self.changes,
        )

    def _labels(self, said: list[str]) -> tuple[Any, str]:
        of_graphs = [y for y in self.graph_y if is_number(y) and math.isfinite(wide(y))]
        if len(of_graphs) == len(self.sizes) and (y := as_labels(of_graphs)) is not None:
            said.append("graph attribute y is y")
            return y, "graph"
        if any(y is not None for y in self.graph_y):
            said.append("graph attribute y is not a number on every graph: left out")
        column = self.columns.get("y")
        if column is not None:
            values = column.filled(len(self.names))
            whole = not column.trouble and all(isinstance(value, int) for value in values)
            if whole and (y := as_labels(values)) is not None:
                said.append("node attribute y is y")
                return y, "node"
            column.trouble = column.trouble or "not whole numbers"
        return None, ""

    def _features(self, said: list[str], y_of: str) -> Any:
        nodes, kept, left = len(self.names), [], dict[str, list[str]]()
        most = ENTRIES_ALWAYS + ENTRIES_PER_BYTE * self.size
        if nodes * sum(column.default is not None for column in self.columns.values()) > most:
            got = f"{len(self.columns):,} attributes for {nodes:,} nodes from {self.size:,} bytes"
            self.raise_read_error(
                "", "default values make far too much of the file", got, "drop the defaults"
            )
        for name, column in self.columns.items():
            if name == "y" and y_of == "node":
                continue
            if name == "y" and y_of == "graph":
                column.trouble = "not y of the graphs"
            if not (column.rows or column.trouble or column.default is not None):
                continue
            values = column.filled(nodes)
            if not column.trouble:
                numbers = np.fromiter(map(wide, values), dtype=np.float64, count=nodes)
                if (np.abs(numbers) <= FLOAT32_MAX).all():
                    kept.append((name, numbers.astype(np.float32)))
                else:
                    column.trouble = "not finite on every node"
            if column.trouble:
                left.setdefault(column.trouble, []).append(name)
        if kept:
            said.append(f"{phrase([name for name, _ in kept])} x")
        said += [f"{phrase(names)} {trouble}: left out" for trouble, names in left.items()]
        return np.stack([values for _, values in kept], axis=1) if kept else None


def phrase(names: Sequence[str]) -> str:
    """``node attributes a, b are``, shortened where there are many."""
    text = ", ".join(name if len(name) <= 60 else f"{name[:57]}..." for name in names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        text += f" and {len(names) - MOST_NAMES} more"
    return f"node attribute {text} is" if len(names) == 1 else f"node attributes {text} are"


def wide(value: Any) -> float:
    """A number as a float; infinity where it is too large to be one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def as_labels(values: Sequence[Any]) -> NDArray[Any] | None:
    """Numbers as int64 if all are whole by type, else float64; None if they do not fit."""
    if not all(isinstance(value, int) for value in values):
        return np.array([wide(value) for value in values], dtype=np.float64)
    try:
        return np.array([int(value) for value in values], dtype=np.int64)
    except OverflowError:
        return None


def as_ids(names: Sequence[Any], sizes: Sequence[int]) -> NDArray[Any] | None:
    """Names of nodes: int64 if all are integers, else str; None if they only count from 0."""
    try:
        numbers = np.array([whole_name(name) for name in names], dtype=np.int64)
    except (ValueError, OverflowError):
        ids = np.empty(len(names), dtype=object)
        ids[:] = [name if isinstance(name, str) else str(name) for name in names]
        return ids
    ptr = pointer(sizes)
    plain = np.array_equal(numbers, np.arange(ptr[-1]) - np.repeat(ptr[:-1], np.diff(ptr)))
    return None if plain else numbers


def whole_name(name: Any) -> int:
    """The integer that a name is, written as one writes it; ValueError for any other name."""
    if isinstance(name, str) and len(name) <= 20 and str(number := integer(name)) == name:
        return number
    if isinstance(name, int) and not isinstance(name, bool):
        return name
    raise ValueError("no integer")


def both_ways(edges: Any, directed: Any, nodes: int, changes: Counter[str]) -> Any:
    """Undirected edges in both directions, beside directed ones, which stay as they are."""
    source, target = edges[:, ~directed]
    loops = source == target
    stored = (source * nodes + target)[~loops]
    once = np.unique(stored)
    changes["duplicates"] += len(stored) - len(once)
    every = np.unique(np.concatenate([once, once % nodes * nodes + once // nodes]))
    parts = [np.stack([every // nodes, every % nodes]), np.stack([source[loops], target[loops]])]
    return np.concatenate([edges[:, directed], *parts], axis=1)


def assemble_flat(
    sizes: Sequence[int],
    edges: Any,
    *,
    undirected: bool,
    x: Any = None,
    y: Any = None,
    ids: NDArray[Any] | None = None,
    guesses: Sequence[str] = (),
    changes: Counter[str] | None = None,
) -> Reading:
    """As assemble, for the edges of all graphs in one [2, E] of global ids: no array per graph."""
    features, labels = check_features(x, sizes), check_labels(y, sizes)
    whole = assemble([sum(sizes)], [edges], undirected=undirected, guesses=guesses, changes=changes)
    node_ptr = torch.from_numpy(pointer(sizes))
    made = Graphs(node_ptr, whole.graphs.row_ptr, whole.graphs.col, features, labels, ids)
    return Reading(made, whole.guesses, whole.changes)
