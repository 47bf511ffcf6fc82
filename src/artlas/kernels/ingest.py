"""The compiled part of getting graphs in: numbers from text, ego-graphs from networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import artlas.kernels._data as _data

Fault = _data.Fault
Walker = _data.Walker


def text_table(data: NDArray[np.uint8], columns: int | None, skip: int) -> Any:
    """The table in text, measured but not yet parsed; ``parse(out)`` writes [rows, columns]."""
    return _data.Text(data, columns or 0, skip, torch.get_num_threads())


def canonical(ends: NDArray[np.int32], nodes: int, first: int = 0) -> Any:
    """Entries [2, E] of nodes that count from ``first`` as undirected, loop-free, sorted rows.

    row_ptr [nodes + 1] and col, and how many loops were dropped, duplicates merged and one_way
    entries completed; None where a node is out of range.
    """
    return _data.canonical(ends, nodes, first, torch.get_num_threads())


def canonical_text(data: NDArray[np.uint8], nodes: int, first: int) -> Any:
    """What :func:`canonical` makes of the edges in text, two numbers a line.

    None where they are not in ascending order, or where there is anything else to look into.
    """
    return _data.canonical_text(text_table(data, 2, 0), nodes, first, torch.get_num_threads())


def induce(
    row_ptr: NDArray[np.int64],
    col: NDArray[np.int32],
    node_ptr: NDArray[np.int64],
    nodes: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """row_ptr and col of the subgraphs that the nodes of every ego induce, one after another."""
    found = _data.induce(row_ptr, col, node_ptr, nodes, torch.get_num_threads())
    return found.row_ptr, found.col
