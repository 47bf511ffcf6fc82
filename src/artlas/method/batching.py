"""Cut graphs into batches that fit into a memory budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas.io.reading import as_graphs
from artlas.method.config import ArtConfig
from artlas.nodes.ego import EgoGraphs

BUDGET = 1 << 27  # bytes that a batch may take while it is embedded


class GraphBatch(NamedTuple):
    """Graphs that are embedded together; of ego-graphs also the ``scores`` of their nodes, [N]."""

    graphs: Graphs
    scores: Tensor | None = None


def as_data(graphs: Any) -> Graphs | EgoGraphs:
    """Return ego-graphs unchanged, and convert anything else to :class:`Graphs`."""
    return graphs if isinstance(graphs, EgoGraphs) else as_graphs(graphs)


def nodes_within_budget(config: ArtConfig, width: int, budget: int = BUDGET) -> int:
    """How many nodes with ``width`` features a batch of ``budget`` bytes may have."""
    return max(1, budget // (4 * (6 * config.hidden + 12 * max(width, 1))))


def split_by_budget(config: ArtConfig, data: Any, budget: int = BUDGET) -> Iterator[GraphBatch]:
    """Split graphs, in order, into batches whose working memory stays near ``budget`` bytes.

    Ego-graphs are cut out of their network a batch at a time.
    """
    if isinstance(data, EgoGraphs):
        nodes = nodes_within_budget(config, data.graph.num_features, budget)
        return (GraphBatch(part[:], torch.from_numpy(part.scores)) for part in data.split(nodes))
    graphs = as_graphs(data)
    nodes = nodes_within_budget(config, graphs.num_features, budget)
    # Splitting copies the edges, which one large graph cannot afford.
    return map(GraphBatch, [graphs] if graphs.num_nodes <= nodes else graphs.batches(nodes))
