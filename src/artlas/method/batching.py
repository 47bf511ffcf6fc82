"""Cut graphs into batches that fit into a memory budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas.io.reading import as_graphs
from artlas.method.config import ArtConfig
from artlas.nodes.ego import EgoGraphs

Data = TypeVar("Data", Graphs, EgoGraphs)
BUDGET = 1 << 27  # bytes that a batch may take while it is embedded


class GraphBatch(NamedTuple):
    """Graphs that are embedded together; of ego-graphs also the ``scores`` of their nodes, [N]."""

    graphs: Graphs
    scores: Tensor | None = None

    @classmethod
    def of(cls, data: Graphs | EgoGraphs) -> GraphBatch:
        """Cut ego-graphs out of their network; take graphs as they are."""
        if isinstance(data, EgoGraphs):
            return cls(data[:], torch.from_numpy(data.scores))
        return cls(data)


def as_data(graphs: Any) -> Graphs | EgoGraphs:
    """Return ego-graphs unchanged, and convert anything else to :class:`Graphs`."""
    return graphs if isinstance(graphs, EgoGraphs) else as_graphs(graphs)


def nodes_within_budget(config: ArtConfig, width: int, budget: int = BUDGET) -> int:
    """How many nodes with ``width`` features a batch of ``budget`` bytes may have."""
    return max(1, budget // (4 * (6 * config.hidden + 12 * max(width, 1))))


def split_by_budget(config: ArtConfig, data: Data, budget: int = BUDGET) -> Iterator[Data]:
    """Split graphs, in order, into batches whose working memory stays near ``budget`` bytes."""
    if isinstance(data, EgoGraphs):
        return data.split(nodes_within_budget(config, data.graph.num_features, budget))
    nodes = nodes_within_budget(config, data.num_features, budget)
    # Splitting copies the edges, which one large graph cannot afford.
    return iter([data]) if data.num_nodes <= nodes else data.batches(nodes)
