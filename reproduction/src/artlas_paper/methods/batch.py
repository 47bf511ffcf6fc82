"""A batch of graphs with features in CSR form: neighbour sums, pooling, selection, splitting.

Shapes: N nodes, G graphs, E entries of the adjacency (both directions of every edge).
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas.training.sources import Member
from artlas_paper.kernels import normalised_sums
from artlas_paper.methods.shared_features import Features, SharedFeatures
from artlas_paper.methods.sparse_matmul import pointer, segment_ids, sum_segments

CACHED_NUMBERS = 1 << 20  # floats of a state that stays in cache from one layer to the next


@dataclass(frozen=True, eq=False)
class Batch:
    """Undirected graphs as the CSR of their adjacency, without self-loops.

    node_ptr int64 [G + 1], row_ptr int64 [N + 1], col int32 [E], features float [N, d] or shared;
    domain int64 [G]: the index of each graph's domain; y: the labels of the graphs [G] or None;
    members: in training, the name of each graph's domain and its index there. The first node of an
    ego-graph is its centre.
    """

    node_ptr: Tensor
    row_ptr: Tensor
    col: Tensor
    features: Features
    domain: Tensor
    y: Tensor | None = None
    members: tuple[Member, ...] = ()

    @classmethod
    def of(cls, graphs: Graphs, domain: Tensor | None = None, **more: Any) -> Batch:
        """Make a batch of these graphs; without features they get a constant one."""
        domain = torch.zeros(len(graphs), dtype=torch.int64) if domain is None else domain
        x = features_or_ones(graphs)
        return cls(graphs.node_ptr, graphs.row_ptr, graphs.col, x, domain, **more)

    def to_graphs(self) -> Graphs:
        """Return the structure of the graphs, without features."""
        return Graphs(self.node_ptr, self.row_ptr, self.col)

    @property
    def num_nodes(self) -> int:
        return len(self.row_ptr) - 1

    @property
    def num_graphs(self) -> int:
        return len(self.node_ptr) - 1

    @cached_property
    def x(self) -> Tensor:
        """The features of every node, [N, d]."""
        features = self.features
        return features.expand() if isinstance(features, SharedFeatures) else features

    def features_of(self, nodes: Tensor) -> Tensor:
        """Return the features of some nodes: [..., d] for nodes [...]."""
        if isinstance(self.features, SharedFeatures):
            return self.features.table[self.features.rows[nodes]]
        return self.features[nodes]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the features."""
        features = self.features
        return (features.table if isinstance(features, SharedFeatures) else features).dtype

    @cached_property
    def sizes(self) -> Tensor:
        """The number of nodes of every graph, int64 [G]."""
        return self.node_ptr.diff()

    @cached_property
    def degree(self) -> Tensor:
        """The number of neighbours of every node, int64 [N]."""
        return self.row_ptr.diff()

    @cached_property
    def graph_of(self) -> Tensor:
        """The graph of every node, int64 [N]."""
        return segment_ids(self.node_ptr)

    @cached_property
    def row(self) -> Tensor:
        """The row (source node) of every entry of the adjacency, int64 [E]."""
        return segment_ids(self.row_ptr)

    @property
    def edge_index(self) -> Tensor:
        """Every edge in both directions, int64 [2, E], as in PyTorch Geometric."""
        return torch.stack([self.row, self.col.long()])

    @cached_property
    def scale(self) -> Tensor:
        """(degree + 1)^(-1/2), [N]: a GCN's normalisation with self-loops."""
        return (self.degree + 1).to(self.dtype).rsqrt()

    def with_features(self, features: Features) -> Batch:
        """Return the same graphs with other features of the N nodes."""
        batch = dataclasses.replace(self, features=features)
        for name in ("sizes", "degree", "graph_of", "row", "scale"):
            if name in self.__dict__:  # cached, and a function of the structure alone
                batch.__dict__[name] = self.__dict__[name]
        return batch

    def neighbour_sums(self, values: Tensor) -> Tensor:
        """Compute A V for values V [N, c]."""
        return _NeighbourSums.apply(values, self.row_ptr, self.col)

    def propagate(self, values: Tensor, bias: Tensor | None = None) -> Tensor:
        """Multiply a GCN's normalised adjacency by values [N, c], and add a bias [c]."""
        return normalised_sums(values, bias, self.scale, self.row_ptr, self.col)

    def sum_pool(self, values: Tensor) -> Tensor:
        """Sum values [N, c] over the nodes of every graph, [G, c]."""
        return _GraphSums.apply(values, self.node_ptr, self.graph_of)

    def mean_pool(self, values: Tensor) -> Tensor:
        """Average values [N, c] over the nodes of every graph, [G, c]."""
        return self.sum_pool(values) / self.sizes[:, None]

    def mean_features(self) -> Tensor:
        """Average the features over the nodes of every graph, [G, d]."""
        shared = self.features
        if isinstance(shared, SharedFeatures) and not shared.table.requires_grad:
            return sum_segments(shared.table, self.node_ptr, shared.rows) / self.sizes[:, None]
        return self.mean_pool(self.x)

    def keep_entries(self, kept: Tensor) -> Batch:
        """Remove entries; kept bool [E] must be the same for both directions of an edge."""
        row_ptr = pointer(torch.cat([kept.new_zeros(1), kept]).cumsum(0)[self.row_ptr].diff())
        return dataclasses.replace(self, row_ptr=row_ptr, col=self.col[kept])

    def keep_nodes(self, kept: Tensor) -> Batch:
        """Return the subgraphs induced by some nodes, bool [N]; every graph must keep one."""
        return self._keep(kept, kept[self.row] & kept[self.col])

    def with_neighbours(self, nodes: Tensor) -> Tensor:
        """Return a mask bool [N] of nodes, bool [N], and all their neighbours."""
        mask = nodes.clone()
        mask[self.col[nodes[self.row]]] = True
        return mask

    def edges_touching(self, nodes: Tensor, kept: Tensor) -> Batch:
        """Keep the nodes ``kept``, bool [N], and the edges with an end in ``nodes``, bool [N].

        ``kept`` must contain the nodes and their neighbours.
        """
        return self._keep(kept, nodes[self.row] | nodes[self.col])

    def _keep(self, kept: Tensor, entries: Tensor) -> Batch:
        number = (kept.cumsum(0) - 1).to(torch.int32)
        left = self.keep_entries(entries)
        features = self.features
        return dataclasses.replace(
            self,
            node_ptr=torch.cat([kept.new_zeros(1), kept]).cumsum(0)[self.node_ptr],
            row_ptr=pointer(left.degree[kept]),
            col=number[left.col],
            features=SharedFeatures(features.table, features.rows[kept])
            if isinstance(features, SharedFeatures)
            else features[kept],
        )

    def split(self, width: int) -> list[Batch]:
        """Split into consecutive graphs whose states of this width stay in cache.

        A part has at most CACHED_NUMBERS / width nodes, or a single graph.
        """
        ptr, ends, nodes = self.node_ptr.tolist(), [0], CACHED_NUMBERS // width
        while ends[-1] < self.num_graphs:
            within = bisect.bisect_right(ptr, ptr[ends[-1]] + nodes) - 1
            ends.append(max(ends[-1] + 1, within))
        cuts = [ptr[end] for end in ends]
        features = self.features.split([b - a for a, b in itertools.pairwise(cuts)])
        return [
            self._slice(*graphs, *nodes, own)
            for graphs, nodes, own in zip(
                itertools.pairwise(ends), itertools.pairwise(cuts), features, strict=True
            )
        ]

    def _slice(self, first: int, last: int, begin: int, end: int, features: Features) -> Batch:
        """Return graphs first to last - 1, which have nodes begin to end - 1."""
        row_ptr = self.row_ptr[begin : end + 1]
        return Batch(
            self.node_ptr[first : last + 1] - begin,
            row_ptr - row_ptr[0],
            self.col[int(row_ptr[0]) : int(row_ptr[-1])] - begin,
            features,
            self.domain[first:last],
            None if self.y is None else self.y[first:last],
            self.members[first:last],
        )

    def edge_uniforms(self, seed: int) -> Tensor:
        """Hash every edge and a seed to [0, 1): [E], equal for both directions of an edge."""
        col = self.col.long()
        low, high = torch.minimum(self.row, col), torch.maximum(self.row, col)
        mixed = low * self.num_nodes + high + seed * 0x5851F42D
        for factor in (0x2545F4914F6CDD1D, 0x27D4EB2F165667C5):
            mixed = (mixed ^ (mixed >> 29)) * factor
        return ((mixed ^ (mixed >> 32)) & 0xFFFFFF).to(torch.float32) / 0x1000000


def features_or_ones(graphs: Graphs) -> Tensor:
    """Return the features of all nodes, or a constant one where there are none, [N, d]."""
    return torch.ones(graphs.num_nodes, 1) if graphs.x is None else graphs.x


class _NeighbourSums(torch.autograd.Function):
    """A V for a symmetric binary A, which is its own gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
        ctx.saved = row_ptr, col
        return sum_segments(values, row_ptr, col)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return sum_segments(grads[0], *ctx.saved), None, None


class _GraphSums(torch.autograd.Function):
    """Sums over the consecutive rows of every graph."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, node_ptr: Tensor, graph_of: Tensor) -> Tensor:
        ctx.saved = graph_of
        return sum_segments(values, node_ptr, torch.arange(len(values), dtype=torch.int32))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0].index_select(0, ctx.saved), None, None
