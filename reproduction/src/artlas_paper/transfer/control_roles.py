"""Roles that no atlas has learnt, as controls: independent, random and balanced."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas.graphs.collection import Graphs

Pool = Callable[[Graphs, Tensor], Tensor]  # M R' V of every graph, [G, M, d], for V [N, d]


def pool_by(roles: Tensor) -> Pool:
    r"""Sum values by roles R [N, M] of the nodes of all graphs: :math:`M R^\top V`, [G, M, d]."""

    def pool(graphs: Graphs, values: Tensor) -> Tensor:
        sizes = graphs.sizes.tolist()
        parts = zip(roles.split(sizes), values.split(sizes), strict=True)
        return roles.shape[1] * torch.stack([r.T @ v for r, v in parts])

    return pool


def independent(graphs: Graphs, count: int) -> Tensor:
    """Every node in every role alike, [N, M]: the independent coupling."""
    return torch.full((graphs.num_nodes, count), 1 / count)


def random_balanced(graphs: Graphs, count: int, seed: int = 42) -> Tensor:
    """The nodes of a graph in random order, cut into roles of equal mass, [N, M]."""
    rng = np.random.default_rng(seed)
    parts = []
    for size in graphs.sizes.tolist():
        parts.append(equal_mass(size, count)[np.argsort(rng.permutation(size))])
    return torch.from_numpy(np.concatenate(parts)).float()


def equal_mass(size: int, count: int) -> NDArray[np.float64]:
    """The share of the i-th of ``size`` nodes in each of ``count`` roles of equal mass, [n, M]."""
    node, role = np.arange(size)[:, None] / size, np.arange(count) / count
    low, high = np.maximum(node, role), np.minimum(node + 1 / size, role + 1 / count)
    shares: NDArray[np.float64] = size * np.clip(high - low, 0, None)
    return shares
