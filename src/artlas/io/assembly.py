"""What every reader returns: graphs, and what had to be guessed to get them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from artlas.errors import raise_read_error
from artlas.graphs.canonical import canonical
from artlas.graphs.collection import Graphs
from artlas.graphs.validation import check_features, check_labels

NODES_ALWAYS = 1_000_000  # isolated nodes a file may announce whatever its size
NODES_PER_BYTE = 64


@dataclass(frozen=True)
class Reading:
    """Graphs from a file; ``guesses``, a phrase each; ``changes``, what cleaning counted."""

    graphs: Graphs
    guesses: list[str] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)


def assemble(
    sizes: Sequence[int],
    edges: Sequence[Any],
    *,
    undirected: bool,
    x: Any = None,
    y: Any = None,
    ids: Any = None,
    guesses: Sequence[str] = (),
    changes: Counter[str] | None = None,
) -> Reading:
    """Make a reading of edges [2, E_g] that lie in range, with features [N, d] and labels."""
    changes = Counter() if changes is None else changes
    features, labels = check_features(x, sizes), check_labels(y, sizes)
    made = canonical(sizes, edges, changes, undirected)
    names = None if ids is None else np.asarray(ids)
    return Reading(Graphs(*made, features, labels, names), list(guesses), changes)


def check_announced(path: Path, nodes: int, size: int, line: int | None = None) -> None:
    """Refuse a node count that a file of ``size`` bytes merely states: it costs memory."""
    if nodes < 1:
        raise_read_error(
            path, "there are no nodes", f"{nodes}", "leave out files without a graph", line
        )
    if nodes > NODES_ALWAYS + NODES_PER_BYTE * size:
        got = f"{nodes:,} in a file of {size:,} bytes"
        fix = "correct the node count, or drop the isolated nodes"
        raise_read_error(path, "the file announces more nodes than it can describe", got, fix, line)
