"""Read raw files of the Open Graph Benchmark: compressed tables of numbers without a header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import raise_read_error
from artlas.graphs.ragged import pointer
from artlas.io.assembly import Reading, assemble
from artlas.io.number_tables import read_numbers

ARXIV_FEATURES = 128
_FIX = "fetch the original files anew"


def read_graphs(folder: Path, name: str) -> Reading:
    """Read graphs with one label each; a bond is stored once and counts in both directions."""
    sizes = _column(folder / "num-node-list.csv.gz")
    lengths = _column(folder / "num-edge-list.csv.gz", len(sizes))
    labels = _column(folder / "graph-label.csv.gz", len(sizes))
    if not len(sizes) or sizes.min() < 1 or lengths.min() < 0 or labels.min() < 0:
        got = f"{len(sizes)} graphs"
        raise_read_error(folder, f"{name} has graphs without nodes, or counts below 0", got, _FIX)
    # Summed as Python integers, which do not overflow.
    features = _rows(folder / "node-feat.csv.gz", None, sum(sizes.tolist()), np.int64)
    path = folder / "edge.csv.gz"
    edges = _rows(path, 2, sum(lengths.tolist()), np.int64)
    limit = np.repeat(sizes, lengths)[:, None]
    if ((edges < 0) | (edges >= limit)).any():
        row = int(((edges < 0) | (edges >= limit)).any(axis=1).argmax())
        got = f"{edges[row].tolist()} in a graph of {limit[row, 0]} nodes"
        raise_read_error(path, "a node number is out of range", got, _FIX, row + 1)
    ends = edges.T + np.repeat(pointer(sizes)[:-1], lengths)
    x = features.astype(np.float32)
    return assemble(sizes.tolist(), ends, undirected=True, x=x, y=labels)


def read_node(folder: Path, name: str) -> Reading:
    """Read one graph with a label per node; citations count in both directions."""
    labels = _column(folder / "node-label.csv.gz")
    nodes = len(labels)
    if not nodes or labels.min() < 0:
        raise_read_error(
            folder / "node-label.csv.gz", "there are no labels from 0", f"{nodes} nodes", _FIX
        )
    _column(folder / "node_year.csv.gz", nodes)
    path = folder / "edge.csv.gz"
    edges = read_numbers(path, 2)
    if len(edges) and (edges.min() < 0 or edges.max() >= nodes):
        row = int(((edges < 0) | (edges >= nodes)).any(axis=1).argmax())
        got = f"{edges[row].tolist()} with {nodes} nodes"
        raise_read_error(path, "a node number is out of range", got, _FIX, row + 1)
    path, x, guesses = folder / "node-feat.csv.gz", None, []
    if path.is_file():
        x = _rows(path, ARXIV_FEATURES, nodes, np.float64).astype(np.float32)
    else:
        guesses.append(
            f"the {ARXIV_FEATURES} features of {name} are missing: they would be in {path.name}"
        )
    return assemble([nodes], edges.T, undirected=True, x=x, y=labels, guesses=guesses)


def _column(path: Path, rows: int | None = None) -> NDArray[np.int64]:
    return _rows(path, 1, rows, np.int64)[:, 0]


def _rows(path: Path, columns: int | None, rows: int | None, dtype: Any) -> NDArray[Any]:
    values = read_numbers(path, columns, dtype)
    if rows is not None and len(values) != rows:
        raise_read_error(
            path, "the number of lines is wrong", f"{len(values):,} for {rows:,}", _FIX
        )
    return values
