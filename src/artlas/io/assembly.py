"""What every reader returns, a :class:`Reading`, and how it is made of sizes and edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from artlas.errors import raise_read_error
from artlas.graphs.canonical import canonical
from artlas.graphs.collection import Graphs
from artlas.graphs.ragged import pointer
from artlas.graphs.validation import check_features, check_labels

NODES_ALWAYS = 1_000_000  # isolated nodes that a file may announce whatever its size
NODES_PER_BYTE = 64


@dataclass(frozen=True)
class Reading:
    """Graphs from a file; ``guesses``, a phrase each; ``changes``, counted while cleaning."""

    graphs: Graphs
    guesses: list[str] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)


def assemble(
    sizes: Sequence[int],
    edges: Any,
    *,
    undirected: bool,
    x: Any = None,
    y: Any = None,
    ids: Any = None,
    guesses: Sequence[str] = (),
    changes: Counter[str] | None = None,
) -> Reading:
    """Make a reading of edges that lie in range, with features [N, d], labels and ids.

    ``edges`` is [2, E], with nodes that are numbered through all graphs.
    """
    changes = Counter() if changes is None else changes
    features, labels = check_features(x, sizes), check_labels(y, sizes)
    row_ptr, col = canonical([sum(sizes)], [edges], changes, undirected)
    node_ptr = torch.from_numpy(pointer(sizes))
    names = None if ids is None else np.asarray(ids)
    return Reading(Graphs(node_ptr, row_ptr, col, features, labels, names), list(guesses), changes)


def check_announced(path: Path, nodes: int, size: int, line: int | None = None) -> None:
    """Refuse a node count that a file of ``size`` bytes merely states, for it costs memory."""
    if nodes < 1:
        raise_read_error(path, "there are no nodes", f"{nodes}", "leave the file out", line)
    if nodes > NODES_ALWAYS + NODES_PER_BYTE * size:
        got = f"{nodes:,} in a file of {size:,} bytes"
        fix = "correct the node count, or drop the isolated nodes"
        raise_read_error(path, "the file announces more nodes than it can describe", got, fix, line)
