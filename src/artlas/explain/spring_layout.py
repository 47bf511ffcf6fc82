"""Place the nodes of a small graph: edges pull like springs, and all nodes repel each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs


def spring_layout(graph: Graphs, iterations: int = 200) -> NDArray[np.float64]:
    """Compute positions in the unit square, [n, 2]; deterministic, O(n^2) per iteration."""
    size = graph.num_nodes
    row = np.repeat(np.arange(size), graph.row_ptr.diff().numpy())
    col = graph.col.numpy()
    position = np.random.default_rng(0).uniform(-1, 1, (size, 2))
    ideal = 1.6 / np.sqrt(size)
    for step in range(iterations):
        offset = position[:, None] - position
        squared = np.maximum((offset**2).sum(2), 1e-6)
        force = (offset * (ideal**2 / squared)[:, :, None]).sum(1)
        along = position[col] - position[row]
        pull = along * (np.linalg.norm(along, axis=1) / ideal)[:, None]
        np.add.at(force, row, pull)
        force -= 0.3 * position  # keeps loosely connected parts in view
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        position += force / length * np.minimum(length, 0.15 * (1 - step / iterations) ** 1.5)
    low, high = position.min(0), position.max(0)
    return (position - low) / np.maximum(high - low, 1e-9)
