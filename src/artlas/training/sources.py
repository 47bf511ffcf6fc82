"""The domains that a module is trained on: graphs or ego-graphs by name."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from artlas.graphs.collection import Graphs
from artlas.nodes.ego import EgoGraphs
from artlas.training.sampler import Member

Sources = Mapping[str, Graphs | EgoGraphs]


def gather(sources: Sources, members: list[Member]) -> Graphs:
    """Collect the graphs of a batch, source by source."""
    chosen: dict[str, list[int]] = {}
    for name, number in members:
        chosen.setdefault(name, []).append(number)
    return Graphs.concat([sources[name][chosen[name]] for name in sources if name in chosen])


def structure_only(graphs: Graphs | EgoGraphs) -> Graphs | EgoGraphs:
    """Drop features, labels and names: pretraining sees nothing but structure."""
    if isinstance(graphs, EgoGraphs):
        network = graphs.graph
        bare = Graphs(network.node_ptr, network.row_ptr, network.col)
        return dataclasses.replace(graphs, graph=bare)
    return Graphs(graphs.node_ptr, graphs.row_ptr, graphs.col)


def fingerprint(graphs: Graphs | EgoGraphs) -> str:
    """Hash the structure of graphs; features and labels do not matter."""
    digest = hashlib.sha256()
    if isinstance(graphs, EgoGraphs):
        digest.update(graphs.node_ptr.tobytes() + graphs.nodes.tobytes())
        graphs = graphs.graph
    for part in (graphs.node_ptr, graphs.row_ptr, graphs.col):
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()


def source_hashes(sources: Sources) -> dict[str, dict[str, Any]]:
    """The number of graphs and the fingerprint of every source, for the record of a run."""
    return {
        name: {"graphs": len(graphs), "sha256": fingerprint(graphs)}
        for name, graphs in sources.items()
    }
