"""Build a :class:`Reading` of the nodes, edges and attributes of GraphML, GML and node-link JSON.

Nodes keep the order of the file. Attributes that are numbers on every node become x, and the
attribute y of graphs or nodes becomes y. What is left out is reported among the guesses.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.graphs.ragged import pointer
from artlas.io.assembly import Reading, assemble

Place = int | str  # a number that ``line_of`` turns into a line, or the name of a place in the file
WEIGHTS = ("weight", "value")
NESTED = object()  # stands for the value of an attribute that is a structure
NAMES_SHOWN = 8
ENTRIES_ALWAYS = 1_000_000  # entries of x that defaults may add whatever the size of the file
ENTRIES_PER_BYTE = 16
FLOAT32_MAX = float(np.finfo(np.float32).max)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def scalar(value: Any) -> Any:
    return NESTED if isinstance(value, (list, tuple, dict)) else value


def parse_integer(text: str) -> int:
    """Parse a whole number in ASCII digits; ValueError otherwise, also for thousands of digits."""
    if not text.isascii() or "_" in text:
        raise ValueError(f"no integer: {text}")
    return int(text)


@dataclass
class Column:
    """The numbers of one node attribute, and the nodes that have it."""

    rows: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    default: Any = None
    problem: str = ""  # why it cannot be a column of x

    def add(self, row: int, value: Any) -> None:
        if is_number(value):
            self.rows.append(row)
            self.values.append(value)
        elif value is not None:
            self.problem = self.problem or ("text" if isinstance(value, str) else "not a number")

    def fill(self, nodes: int) -> list[Any]:
        """Return one value for every node, or set ``problem`` if there is none for some."""
        if not (self.problem or self.default is None or is_number(self.default)):
            self.problem = "text"
        if self.problem or self.default is None:
            self.problem = self.problem or ("not on every node" if len(self.rows) < nodes else "")
            return self.values
        values = [self.default] * nodes
        for row, value in zip(self.rows, self.values, strict=True):
            values[row] = value
        return values


class GraphBuilder:
    """Takes graphs, nodes and edges in the order of a file and makes a Reading of them."""

    line_of: Callable[[int], int] = staticmethod(int)

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.line: int | None = None  # of the graph, where every line holds one
        self.sizes: list[int] = []
        self.graph_labels: list[Any] = []
        self.names: list[Any] = []
        self.columns = defaultdict[str, Column](Column)
        self.ends: list[int] = []  # source, target, source, target, ...
        self.directed: list[bool] = []
        self.unresolved: list[tuple[int, Hashable, Place]] = []  # nodes that edges name early
        self.numbers: dict[Hashable, int] = {}  # of the nodes of the graph that is being built
        self.guesses: list[str] = []
        self.changes = Counter[str]()

    def raise_read_error(self, where: Place, wrong: str, got: str, fix: str) -> NoReturn:
        if isinstance(where, int):
            raise_read_error(self.path, wrong, got, fix, self.line_of(where))
        raise_read_error(self.path, f"{where}: {wrong}" if where else wrong, got, fix, self.line)

    def add_node(self, key: Hashable, attributes: Mapping[str, Any], where: Place) -> None:
        """Add a node that edges call ``key``."""
        if key in self.numbers:
            fix = "give every node of a graph an id of its own"
            self.raise_read_error(where, "a node id appears twice", quoted(key), fix)
        row = self.numbers[key] = len(self.names)
        self.names.append(key)
        for name, value in attributes.items():
            self.columns[name].add(row, value)

    def add_edge(
        self,
        source: Hashable,
        target: Hashable,
        where: Place,
        directed: bool,
        values: dict[str, Any],
    ) -> None:
        """Add an edge; its nodes may come later in the same graph."""
        for key in (source, target):
            if key not in self.numbers:
                self.unresolved.append((len(self.ends), key, where))
            self.ends.append(self.numbers.get(key, -1))
        self.directed.append(directed)
        weight = next((values[w] for w in WEIGHTS if values.get(w) is not None), None)
        if is_number(weight) and weight != 1:
            self.changes["weights"] += 1

    def close_graph(self, where: Place, y: Any = None) -> None:
        """End a graph, whose edges must now all have their nodes."""
        if not self.numbers:
            fix = "leave out graphs without nodes"
            self.raise_read_error(where, "a graph has no nodes", f"graph {len(self.sizes)}", fix)
        for position, key, place in self.unresolved:
            if key not in self.numbers:
                wrong = "an edge names a node that is not there"
                fix = "declare the node in the same graph, or drop the edge"
                self.raise_read_error(place, wrong, quoted(key), fix)
            self.ends[position] = self.numbers[key]
        self.sizes.append(len(self.numbers))
        self.graph_labels.append(y)
        self.unresolved, self.numbers = [], {}

    def finish(self, names: Sequence[Any] | None = None) -> Reading:
        """Return the reading of all graphs; ``names`` replace the nodes' keys as their ids."""
        if not self.sizes:
            self.raise_read_error("", "there is no graph in the file", "none", "check the file")
        y, x = self._labels(), self._features()
        directed = np.array(self.directed, dtype=bool)
        ends = np.array(self.ends, dtype=np.int64).reshape(-1, 2).T
        if directed.any() and not directed.all():
            ends = both_directions(ends, directed, len(self.names), self.changes)
        ids, undirected = as_ids(names or self.names, self.sizes), not directed.any()
        more: dict[str, Any] = {"ids": ids, "guesses": self.guesses, "changes": self.changes}
        return assemble(self.sizes, ends, undirected=undirected, x=x, y=y, **more)

    def _labels(self) -> Any:
        """Return y of the graphs or nodes, and settle the column y of nodes."""
        numbers = [y for y in self.graph_labels if is_number(y) and math.isfinite(as_float(y))]
        column = self.columns.get("y", Column())
        if len(numbers) == len(self.sizes) and (y := as_labels(numbers)) is not None:
            self.guesses.append("graph attribute y is y")
            column.problem = "not y of the graphs"
            return y
        if any(y is not None for y in self.graph_labels):
            self.guesses.append("graph attribute y is not a number on every graph: left out")
        values = column.fill(len(self.names))
        whole = not column.problem and all(isinstance(value, int) for value in values)
        if whole and (y := as_labels(values)) is not None:
            self.guesses.append("node attribute y is y")
            del self.columns["y"]
            return y
        column.problem = column.problem or "not whole numbers"
        return None

    def _features(self) -> Any:
        nodes, kept, left_out = len(self.names), dict[str, Any](), defaultdict[str, list[str]](list)
        columns = {
            name: column
            for name, column in self.columns.items()
            if column.rows or column.problem or column.default is not None
        }
        defaults = sum(column.default is not None for column in columns.values())
        if nodes * defaults > ENTRIES_ALWAYS + ENTRIES_PER_BYTE * self.size:
            got = f"{len(columns):,} attributes for {nodes:,} nodes from {self.size:,} bytes"
            self.raise_read_error("", "default values make far too much", got, "drop the defaults")
        for name, column in columns.items():
            values = column.fill(nodes)
            if not column.problem:
                numbers = np.fromiter(map(as_float, values), dtype=np.float64, count=nodes)
                if (np.abs(numbers) <= FLOAT32_MAX).all():
                    kept[name] = numbers.astype(np.float32)
                else:
                    column.problem = "not finite on every node"
            if column.problem:
                left_out[column.problem].append(name)
        if kept:
            self.guesses.append(f"{attribute_phrase(list(kept))} x")
        for problem, names in left_out.items():
            self.guesses.append(f"{attribute_phrase(names)} {problem}: left out")
        return np.stack(list(kept.values()), axis=1) if kept else None


def attribute_phrase(names: Sequence[str]) -> str:
    """Return ``node attributes a, b are``, shortened where there are many."""
    short = [name if len(name) <= 60 else f"{name[:57]}..." for name in names[:NAMES_SHOWN]]
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    text = ", ".join(short) + more
    return f"node attribute {text} is" if len(names) == 1 else f"node attributes {text} are"


def as_float(value: Any) -> float:
    """Return a number as a float, infinity if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def as_labels(values: Sequence[Any]) -> NDArray[Any] | None:
    """Return numbers as int64 if all are whole by type, else as float64; None if they overflow."""
    if not all(isinstance(value, int) for value in values):
        return np.array(list(map(as_float, values)), dtype=np.float64)
    try:
        return np.array(list(map(int, values)), dtype=np.int64)
    except OverflowError:
        return None


def as_ids(names: Sequence[Any], sizes: Sequence[int]) -> NDArray[Any] | None:
    """Return ids as int64 if all are integers, else as str; None if they only count from 0."""
    try:
        numbers = np.array(list(map(_integer_name, names)), dtype=np.int64)
    except (ValueError, OverflowError):
        ids = np.empty(len(names), dtype=object)
        # Escapes of GML and JSON can name half a surrogate pair, which no file can store.
        ids[:] = [str(name).encode(errors="replace").decode() for name in names]
        return ids
    ptr = pointer(sizes)
    plain = np.array_equal(numbers, np.arange(ptr[-1]) - np.repeat(ptr[:-1], np.diff(ptr)))
    return None if plain else numbers


def _integer_name(name: Any) -> int:
    """Return the integer that a name is, written in the usual way; ValueError for other names."""
    if isinstance(name, str) and len(name) <= 20 and str(number := parse_integer(name)) == name:
        return number
    if isinstance(name, int) and not isinstance(name, bool):
        return name
    raise ValueError("no integer")


def both_directions(edges: Any, directed: Any, nodes: int, changes: Counter[str]) -> Any:
    """Store undirected edges in both directions, and directed ones as they are."""
    source, target = edges[:, ~directed]
    loops = source == target
    listed = (source * nodes + target)[~loops]
    once = np.unique(listed)
    changes["duplicates"] += len(listed) - len(once)
    entries = np.unique(np.concatenate([once, once % nodes * nodes + once // nodes]))
    stored = np.stack([entries // nodes, entries % nodes])
    return np.concatenate([edges[:, directed], stored, edges[:, ~directed][:, loops]], axis=1)
