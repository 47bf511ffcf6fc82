"""The domains that a module is trained on, graphs or ego-graphs by name, and their batches."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from artlas.graphs.collection import Graphs
from artlas.nodes.ego import EgoGraphs

Sources = Mapping[str, Graphs | EgoGraphs]
Member = tuple[str, int]  # a domain, and the number of a graph in it


@dataclass(frozen=True)
class BalancedSampler:
    """Batches with equally many graphs of every domain; an epoch has as many graphs as all domains.

    In every round the domains take turns in a new order and give one graph each. A domain without
    graphs left is shuffled and starts again. So small domains repeat, large ones are cut short,
    and no graph comes twice within one pass through its domain.
    """

    sizes: Mapping[str, int]
    batch: int = 64
    seed: int = 42

    @property
    def batches(self) -> int:
        """The number of batches in an epoch; the last may be smaller."""
        return -(-sum(self.sizes.values()) // self.batch)

    def epoch(self, number: int) -> Iterator[list[Member]]:
        """Yield the batches of an epoch, counted from 1."""
        rng, total = random.Random(self.seed + number), sum(self.sizes.values())
        names, pools = list(self.sizes), {name: list(range(n)) for name, n in self.sizes.items()}
        for name in names:
            rng.shuffle(pools[name])
        left, drawn = {name: list(pools[name]) for name in names}, list[Member]()
        while len(drawn) < total:
            rng.shuffle(names)
            for name in names[: total - len(drawn)]:
                if not left[name]:
                    rng.shuffle(pools[name])
                    left[name] = list(pools[name])
                drawn.append((name, left[name].pop()))
        return (drawn[i : i + self.batch] for i in range(0, total, self.batch))


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
