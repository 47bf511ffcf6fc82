"""Compute what the page about one graph shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artlas.explain.spring_layout import spring_layout
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
