"""Build training batches from the graphs and ego-graphs of several domains."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas.nodes.ego import EgoGraphs
from artlas.training.sources import Member
from artlas_paper.methods.batch import Batch, features_or_ones
from artlas_paper.methods.shared_features import SharedFeatures

Domains = Mapping[str, Graphs | EgoGraphs]
KEPT_NODES = 1 << 24  # ego-graphs with more nodes in all are cut out anew for every batch


class BatchBuilder:
    """Builds batches of the graphs of several domains, with features, labels and domains."""

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.index = {name: i for i, name in enumerate(domains)}
        self.structures = {name: _structures(graphs) for name, graphs in domains.items()}
        self.features = {n: features_or_ones(whole_graphs(g)) for n, g in domains.items()}
        self.labels = {name: labels_of(graphs) for name, graphs in domains.items()}

    def build(self, members: list[Member]) -> Batch:
        """Build a batch of these graphs, sorted by domain; ego-graphs share their features."""
        ordered = tuple(sorted(members, key=lambda member: self.index[member[0]]))
        parts, tables, rows, count = [], [], [], 0
        for name, group in itertools.groupby(ordered, key=lambda member: member[0]):
            part = self.structures[name][[number for _, number in group]]
            used = torch.from_numpy(part.ids)
            own = torch.arange(len(used))
            if isinstance(self.domains[name], EgoGraphs):
                used, own = used.unique(return_inverse=True)
            tables.append(self.features[name].index_select(0, used))
            rows.append(own + count)
            count += len(used)
            parts.append(dataclasses.replace(part, ids=None))
        graphs, features = Graphs.concat(parts), torch.cat(tables)
        shared = any(isinstance(self.domains[name], EgoGraphs) for name, _ in ordered)
        return Batch(
            graphs.node_ptr,
            graphs.row_ptr,
            graphs.col,
            SharedFeatures(features, torch.cat(rows)) if shared else features,
            torch.tensor([self.index[name] for name, _ in ordered]),
            torch.stack([self.labels[name][number] for name, number in ordered]),
            ordered,
        )


def whole_graphs(graphs: Graphs | EgoGraphs) -> Graphs:
    """Return the graphs themselves, or the network that ego-graphs are cut from."""
    return graphs.graph if isinstance(graphs, EgoGraphs) else graphs


def feature_width(graphs: Graphs | EgoGraphs) -> int:
    """Return the number of feature columns; graphs without features get one."""
    return whole_graphs(graphs).num_features or 1


def labels_of(graphs: Graphs | EgoGraphs) -> Tensor:
    """Return the label of every graph, int64 [G]; -1 where there is none."""
    y = graphs.y
    if y is None or len(y) != len(graphs) or y.is_floating_point():
        return torch.full((len(graphs),), -1)
    return y


def count_classes(graphs: Graphs | EgoGraphs) -> int:
    """Return the number of classes, 0 without labels."""
    return max(int(labels_of(graphs).max()) + 1, 0)


def features_hash(graphs: Graphs | EgoGraphs) -> str:
    """Return the SHA-256 of the features, or ``none``."""
    x = whole_graphs(graphs).x
    return "none" if x is None else hashlib.sha256(x.contiguous().numpy().tobytes()).hexdigest()


def _structures(graphs: Graphs | EgoGraphs) -> Graphs | EgoGraphs:
    """Drop features and labels; ``ids`` are then the rows of the nodes in the features.

    Ego-graphs are cut out once, unless they have too many nodes for that.
    """
    whole = whole_graphs(graphs)
    bare = Graphs(whole.node_ptr, whole.row_ptr, whole.col, ids=np.arange(whole.num_nodes))
    if isinstance(graphs, EgoGraphs):
        egos = dataclasses.replace(graphs, graph=bare)
        return egos[:] if len(graphs.nodes) <= KEPT_NODES else egos
    return bare
