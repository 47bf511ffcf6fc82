"""Structural features of nodes, for networks that come without features."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from artlas.graphs.collection import Graphs

NAMES = ("degree", "mean degree of neighbours", "sum of their degrees", "PageRank", "core number")


def structural_features(network: Graphs) -> Graphs:
    """Return the network with the five features NAMES, as standardised logarithms."""
    row_ptr, col = network.row_ptr.numpy(), network.col.numpy()
    size = network.num_nodes
    matrix = csr_array((np.ones(len(col)), col, row_ptr), shape=(size, size))
    degree = np.diff(row_ptr).astype(np.float64)
    second = matrix @ degree
    values = [
        degree,
        second / np.maximum(degree, 1),
        second,
        size * page_rank(matrix, degree),
        core_numbers(row_ptr, col).astype(np.float64),
    ]
    logs = np.log1p(np.stack(values, 1))
    spread = logs.std(0)
    logs = (logs - logs.mean(0)) / np.where(spread > 1e-9, spread, 1)
    return network.with_features(torch.from_numpy(logs).float())


def page_rank(
    matrix: csr_array, degree: NDArray[np.float64], damping: float = 0.85, rounds: int = 50
) -> NDArray[np.float64]:
    """Compute PageRank by power iteration, [N]; isolated nodes give their mass to all alike."""
    size = len(degree)
    rank = np.full(size, 1 / size)
    for _ in range(rounds):
        outflow = np.where(degree > 0, rank / np.maximum(degree, 1), 0)
        rank = damping * (matrix @ outflow + rank[degree == 0].sum() / size) + (1 - damping) / size
    return rank


def core_numbers(row_ptr: NDArray[np.int64], col: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the largest k for which a node is in a subgraph of minimum degree k, [N]."""
    degree, core = np.diff(row_ptr), np.zeros(len(row_ptr) - 1, dtype=np.int64)
    alive = np.ones(len(degree), dtype=bool)
    k = 0
    while alive.any():
        k = max(k, int(degree[alive].min()))
        while (peeled := np.flatnonzero(alive & (degree <= k))).size:
            core[peeled], alive[peeled] = k, False
            parts = [col[row_ptr[i] : row_ptr[i + 1]] for i in peeled]
            degree = degree - np.bincount(np.concatenate(parts), minlength=len(degree))
    return core
