"""Compiled input: numbers from text, canonical rows, ego-graphs of networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.kernels.compiled import ingest as _ingest

Walker: Any = getattr(_ingest, "Walker", None)  # see ego_twin.Walker


def text_table(data: NDArray[np.uint8], columns: int | None, skip: int) -> Any:
    """Measure a table in text without parsing it; its ``parse(out)`` writes [rows, columns]."""
    return _ingest.TextTable(data, columns or 0, skip, threads=torch.get_num_threads())


def canonical(ends: NDArray[np.int32], nodes: int, first: int = 0) -> Any:
    """Make entries [2, E] of nodes that count from ``first`` undirected, loop-free, sorted rows.

    The result has row_ptr [nodes + 1] and col, and how many loops were dropped, duplicates merged
    and one_way entries completed. It is None if a node is out of range.
    """
    return _ingest.canonical(ends, nodes, first, threads=torch.get_num_threads())


def canonical_text(data: NDArray[np.uint8], nodes: int, first: int) -> Any:
    """Make canonical rows of the edges in text, two numbers a line; see :func:`canonical`.

    None if they are not in ascending order, or if the text holds anything else.
    """
    table = text_table(data, 2, 0)
    return _ingest.canonical_text(table, nodes, first, threads=torch.get_num_threads())


def induce(
    row_ptr: NDArray[np.int64],
    col: NDArray[np.int32],
    node_ptr: NDArray[np.int64],
    nodes: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return row_ptr and col of the subgraphs that the nodes of every ego-graph induce."""
    induced = _ingest.induce(row_ptr, col, node_ptr, nodes, threads=torch.get_num_threads())
    return induced.row_ptr, induced.col
