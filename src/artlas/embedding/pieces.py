"""Inputs of a run, the pieces they are cut into, and the work that makes rows of them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from artlas.embedding.table import UNLABELLED, Rows, Vectors
from artlas.graphs.collection import Graphs
from artlas.io.reading import read
from artlas.method import checkpoint
from artlas.method.energy import coverage
from artlas.method.model import ART
from artlas.method.representations import feature_names


class Work(Protocol):
    """What a run computes: rows of a table, one for each graph, by that graph alone."""

    @property
    def bases(self) -> int:
        """How many bases a node is aligned with, for the share of the work that is done."""

    @property
    def reference(self) -> tuple[str, int] | None:
        """Whose nodes have as many features as are needed, and how many; None if it is open."""

    @property
    def remedy(self) -> str:
        """What to do with an input whose nodes have another number of features."""

    def settings(self) -> dict[str, Any]:
        """Return what must be the same when an interrupted run resumes, as for a JSON file."""

    def nodes_within(self, budget: int, width: int) -> int:
        """How many nodes with ``width`` features a batch of ``budget`` bytes may have."""

    def rows(self, graphs: Graphs, name: str, first: int) -> Rows:
        """Compute the rows of graphs of the input ``name``, numbered from ``first``."""

    def labels(self, graphs: Graphs) -> NDArray[Any]:
        """Return what is written as the labels of graphs, [G]."""

    def count(self, rows: Rows) -> tuple[float, ...]:
        """Count in rows what the summary of the run sums up."""

    def describe(self, totals: tuple[float, ...]) -> list[str]:
        """Say in sentences what the sums show."""


@dataclass(frozen=True)
class Input:
    """A file, or a folder in TU layout, with its name in the table and its format if given.

    digest: hash of the bytes, for a temporary copy whose modification time means nothing.
    """

    path: Path
    name: str
    format: str | None = None
    digest: str | None = None

    def fingerprint(self) -> list[object]:
        """Return values that change when the input changes."""
        if self.digest is not None:
            return [self.name, self.format, self.digest]
        stats = [[stat.st_size, stat.st_mtime_ns] for stat in self._stats()]
        return [self.name, self.format, stats]

    def size(self) -> int:
        """Return the bytes on disk."""
        return sum(stat.st_size for stat in self._stats())

    def _stats(self) -> list[os.stat_result]:
        files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        return [file.stat() for file in files if file.exists()]


@dataclass(frozen=True)
class Piece:
    """Consecutive graphs of one input, whose rows make up one part of the table.

    number, name: of the input; first, count: number of the first graph, and how many there are;
    total, width: graphs in the whole input, and features of a node; graphs: until their
    rows are computed; rows: once they are; saved: whether the rows were on disk when the run began;
    oversized: whether the piece, a single graph, exceeds the budget of a batch.
    """

    number: int
    name: str
    first: int
    count: int
    total: int
    width: int
    graphs: Graphs | None = None
    rows: Rows | None = None
    saved: bool = False
    oversized: bool = False


@dataclass(frozen=True)
class LoadedInput:
    """An input that was read: its number of graphs, features of a node, and its pieces."""

    graphs: int
    width: int
    pieces: Iterator[Piece]


def load(entry: Input, number: int, work: Work, budget: int, saved: Container[int]) -> LoadedInput:
    """Read an input, to be cut into pieces within the budget.

    saved: first graphs of the pieces that are on disk already.
    """
    graphs = read(entry.path, entry.format, verbose=False)
    graphs = dataclasses.replace(graphs, ids=None)  # the names of nodes are of no use here
    total, width = len(graphs), graphs.num_features
    room = work.nodes_within(budget, width)

    def pieces() -> Iterator[Piece]:
        first = 0
        # Splitting copies the edges, which one large graph cannot afford.
        for part in [graphs] if graphs.num_nodes <= room else graphs.batches(room):
            piece = Piece(number, entry.name, first, len(part), total, width, saved=first in saved)
            oversized = part.num_nodes > room
            yield (
                piece
                if piece.saved
                else dataclasses.replace(piece, graphs=part, oversized=oversized)
            )
            first += len(part)

    return LoadedInput(total, width, pieces())


def embed_piece(
    model: ART, graphs: Graphs, representation: str, name: str, first: int = 0
) -> Vectors:
    """Embed graphs of the input ``name`` into rows numbered from ``first``."""
    z, energies, residuals = model.embed_with_energies(graphs, representation)
    columns = {
        "source": np.full(len(graphs), name),
        "index": np.arange(first, first + len(graphs)),
        "label": graph_labels(graphs),
        "coverage": coverage(energies, model.config.coverage_temperature).cpu().numpy(),
        "residual": residuals.amax(1).cpu().numpy(),
        "energies": energies.cpu().numpy(),
        "z": z.cpu().numpy(),
    }
    facts = {
        "representation": representation,
        "model": dataclasses.asdict(model.config),
        "weights": checkpoint.weights_hash(model),
        "names": feature_names(model.config, representation, graphs.num_features),
    }
    return Vectors(columns, facts)


def graph_labels(graphs: Graphs) -> NDArray[np.int64]:
    """Return the class of every graph, or UNLABELLED where graphs have no integer class."""
    y = graphs.y
    if y is None or y.shape != (len(graphs),) or y.is_floating_point():
        return np.full(len(graphs), UNLABELLED)
    return y.numpy().astype(np.int64)
