"""Roles that no atlas has learnt, as controls: independent, random and of equal mass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas_paper.protocol import SEED

Pool = Callable[[Graphs, Tensor], Tensor]  # M R' V of every graph, [G, M, d], for V [N, d]


def pool_by(roles: Tensor) -> Pool:
    r"""Return a pool by the roles R [N, M] of all nodes: :math:`M R^\top V` a graph, [G, M, d]."""

    def pool(graphs: Graphs, values: Tensor) -> Tensor:
        sizes = graphs.sizes.tolist()
        parts = zip(roles.split(sizes), values.split(sizes), strict=True)
        return roles.shape[1] * torch.stack([r.T @ v for r, v in parts])

    return pool


def independent(graphs: Graphs, count: int) -> Tensor:
    """Return the independent coupling: every node is in every role alike, [N, M]."""
    return torch.full((graphs.num_nodes, count), 1 / count)


def random_balanced(graphs: Graphs, count: int, seed: int = SEED) -> Tensor:
    """Cut the nodes of every graph, in random order, into roles of equal mass, [N, M]."""
    rng = np.random.default_rng(seed)
    parts = []
    for size in graphs.sizes.tolist():
        parts.append(equal_mass(size, count)[np.argsort(rng.permutation(size))])
    return torch.from_numpy(np.concatenate(parts)).float()


def equal_mass(size: int, count: int) -> NDArray[np.float64]:
    """Return the shares of ``size`` ordered nodes in ``count`` roles of equal mass, [n, M]."""
    node, role = np.arange(size)[:, None] / size, np.arange(count) / count
    low, high = np.maximum(node, role), np.minimum(node + 1 / size, role + 1 / count)
    shares: NDArray[np.float64] = size * np.clip(high - low, 0, None)
    return shares
