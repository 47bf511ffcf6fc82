"""Compute what the page about one graph shows, and where its nodes are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs
from artlas.method.model import ART
from artlas.nodes.ego import PprConfig, ego_graphs
from artlas.training.pretraining_coverage import PretrainingCoverage

MOST_DRAWN = 400  # nodes of the largest drawing
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Explanation:
    """One graph as the model aligns it.

    drawing: the graph, or the part of it that is drawn, of n nodes; drawn [n]: the numbers of
    those nodes; positions [n, 2]; roles [n, M]: each node's distribution over roles; energies,
    responsibilities, gain [K]; residual: the largest marginal error of a coupling; relations
    [K, M, M]: the bases; reference: the pretraining graphs, if they were recorded.
    """

    title: str
    graph: Graphs
    drawing: Graphs
    drawn: NDArray[np.int64]
    positions: Array
    roles: Array
    energies: Array
    responsibilities: Array
    gain: Array
    coverage: float
    residual: float
    relations: Array
    reference: PretrainingCoverage | None

    @property
    def coordinates(self) -> Array:
        """q, [K]."""
        return np.sqrt(np.maximum(self.energies, 0))


def explain(
    model: ART, graph: Graphs, title: str, reference: PretrainingCoverage | None = None
) -> Explanation:
    """Align one graph, and lay out its nodes: all, or those around the node of largest degree."""
    alignment = model.align(graph)
    drawing, drawn = graph, np.arange(graph.num_nodes, dtype=np.int64)
    if graph.num_nodes > MOST_DRAWN:
        ego = ego_graphs(graph, [int(graph.degree.argmax())], PprConfig(most_nodes=MOST_DRAWN))
        drawing, drawn = ego[:], ego.nodes.astype(np.int64)
    return Explanation(
        title=title,
        graph=graph,
        drawing=drawing,
        drawn=drawn,
        positions=spring_layout(drawing),
        roles=alignment.roles(0).double().numpy()[drawn],
        energies=alignment.energies[0].double().numpy(),
        responsibilities=alignment.responsibilities[0].double().numpy(),
        gain=alignment.gain[0].double().numpy(),
        coverage=float(alignment.coverage[0]),
        residual=float(alignment.residuals.max()),
        relations=model.atlas.relations().detach().double().numpy(),
        reference=reference,
    )


def spring_layout(graph: Graphs, iterations: int = 200) -> Array:
    """Compute positions in the unit square, [n, 2]; deterministic, O(n^2) per iteration.

    Edges pull like springs, and all nodes repel each other.
    """
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
