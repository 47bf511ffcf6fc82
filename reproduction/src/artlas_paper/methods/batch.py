"""What baselines compute on: a batch of graphs with features, and sums over neighbours and graphs.

Shapes: N nodes, G graphs, E entries of the adjacency (both directions of every edge).
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from artlas.graphs.collection import Graphs
from artlas.training.sampler import Member
from artlas_paper.kernels import normalised_sums

PART = 1 << 20  # numbers of a state that stays in cache from one operation to the next


@dataclass(frozen=True, eq=False)
class Shared:
    """Features of nodes many of which are the same: the rows [N] of a table [T, d].

    Ego-graphs of one network meet in its nodes, so that a batch has several times fewer features
    than nodes, and a linear map of them less to do.
    """

    table: Tensor
    rows: Tensor
    sums: Sums | None = None

    @classmethod
    def of(cls, x: Tensor) -> Shared:
        """Features that no two nodes share, [N, d]."""
        return cls(x, torch.arange(len(x)))

    def whole(self) -> Tensor:
        """The features of every node, [N, d]; of a table with gradients too."""
        sums = Sums(self.table) if self.sums is None else self.sums
        return _Rows.apply(sums.begin, self.table.detach(), self.rows, sums)

    def split(self, sizes: list[int]) -> list[Shared]:
        """Those of consecutive nodes, with one place for the gradients of the table."""
        sums = Sums(self.table)
        return [Shared(self.table, rows, sums) for rows in self.rows.split(sizes)]


class Sums:
    """Where the gradients of a table's rows are added up, whoever took them."""

    def __init__(self, table: Tensor) -> None:
        self.grad: Tensor | None = None
        self.begin = _Whole.apply(table, self)  # of no value: its gradient is asked for last


def entering(linear: Callable[[Tensor], Tensor], features: Tensor | Shared) -> Tensor | Shared:
    """A map of features by rows, shared if they are."""
    if isinstance(features, Shared):
        return Shared(linear(features.table), features.rows)
    return linear(features)


def through(linear: Callable[[Tensor], Tensor], features: Tensor | Shared) -> Tensor:
    """The same for every node, [N, c]."""
    made = entering(linear, features)
    return made.whole() if isinstance(made, Shared) else made


@dataclass(frozen=True, eq=False)
class Batch:
    """Undirected graphs as the CSR of their adjacency, without loops.

    node_ptr int64 [G + 1], row_ptr int64 [N + 1], col int32 [E], features float [N, d], or shared;
    domain int64 [G]: the number of each graph's domain; y: the labels of the graphs [G] or None.
    members: the name of its domain and the number there of every graph, in training. The first node
    of an ego-graph is its centre.
    """

    node_ptr: Tensor
    row_ptr: Tensor
    col: Tensor
    features: Tensor | Shared
    domain: Tensor
    y: Tensor | None = None
    members: tuple[Member, ...] = ()

    @classmethod
    def of(cls, graphs: Graphs, domain: Tensor | None = None, **more: Any) -> Batch:
        """A batch of these graphs; without features they have a constant one."""
        x = torch.ones(graphs.num_nodes, 1) if graphs.x is None else graphs.x
        domain = torch.zeros(len(graphs), dtype=torch.int64) if domain is None else domain
        return cls(graphs.node_ptr, graphs.row_ptr, graphs.col, x, domain, **more)

    @property
    def num_nodes(self) -> int:
        return len(self.row_ptr) - 1

    @property
    def num_graphs(self) -> int:
        return len(self.node_ptr) - 1

    @cached_property
    def x(self) -> Tensor:
        """The features of every node, [N, d]."""
        return self.features.whole() if isinstance(self.features, Shared) else self.features

    def x_of(self, nodes: Tensor) -> Tensor:
        """The features of some nodes, [..., d] of nodes [...]."""
        if isinstance(self.features, Shared):
            return self.features.table[self.features.rows[nodes]]
        return self.features[nodes]

    @property
    def dtype(self) -> torch.dtype:
        """Of the features."""
        table = self.features.table if isinstance(self.features, Shared) else self.features
        return table.dtype

    @cached_property
    def sizes(self) -> Tensor:
        """Nodes of every graph, int64 [G]."""
        return self.node_ptr.diff()

    @cached_property
    def degree(self) -> Tensor:
        """Neighbours of every node, int64 [N]."""
        return self.row_ptr.diff()

    @cached_property
    def graph_of(self) -> Tensor:
        """The graph of every node, int64 [N]."""
        return _repeated(self.node_ptr)

    @cached_property
    def row(self) -> Tensor:
        """The node that every entry belongs to, int64 [E]."""
        return _repeated(self.row_ptr)

    @property
    def edge_index(self) -> Tensor:
        """Every edge in both directions, int64 [2, E], as PyTorch Geometric has it."""
        return torch.stack([self.row, self.col.long()])

    @cached_property
    def scale(self) -> Tensor:
        """(degree + 1)^(-1/2), [N]: a GCN's normalisation with loops."""
        return (self.degree + 1).to(self.dtype).rsqrt()

    def with_x(self, features: Tensor | Shared) -> Batch:
        """The same graphs with other features, of N nodes."""
        made = dataclasses.replace(self, features=features)
        for name in ("sizes", "degree", "graph_of", "row", "scale"):
            if name in self.__dict__:  # what follows from the structure alone
                made.__dict__[name] = self.__dict__[name]
        return made

    def neighbour_sums(self, values: Tensor) -> Tensor:
        """A V for values [N, c]."""
        return _Neighbours.apply(values, self.row_ptr, self.col)

    def propagate(self, values: Tensor, bias: Tensor | None = None) -> Tensor:
        """A GCN's normalised adjacency with loops times values [N, c], and a bias [c]."""
        return normalised_sums(values, bias, self.scale, self.row_ptr, self.col)

    def sum_pool(self, values: Tensor) -> Tensor:
        """Sums over the nodes of every graph, [G, c]."""
        return _Segments.apply(values, self.node_ptr, self.graph_of)

    def mean_pool(self, values: Tensor) -> Tensor:
        """Means over the nodes of every graph, [G, c]."""
        return self.sum_pool(values) / self.sizes[:, None]

    def mean_features(self) -> Tensor:
        """Means of the features over the nodes of every graph, [G, d]."""
        shared = self.features
        if isinstance(shared, Shared) and not shared.table.requires_grad:
            return _bags(shared.table, self.node_ptr, shared.rows) / self.sizes[:, None]
        return self.mean_pool(self.x)

    def keep_entries(self, kept: Tensor) -> Batch:
        """Without some entries; kept bool [E] must be the same for both directions of an edge."""
        row_ptr = _pointer(torch.cat([kept.new_zeros(1), kept]).cumsum(0)[self.row_ptr].diff())
        return dataclasses.replace(self, row_ptr=row_ptr, col=self.col[kept])

    def keep_nodes(self, kept: Tensor) -> Batch:
        """The subgraphs that some nodes induce, bool [N]; every graph must keep one at least."""
        return self._keep(kept, kept[self.row] & kept[self.col])

    def around(self, nodes: Tensor) -> Tensor:
        """Nodes, bool [N], and all their neighbours, bool [N]."""
        found = nodes.clone()
        found[self.col[nodes[self.row]]] = True
        return found

    def towards(self, nodes: Tensor, kept: Tensor) -> Batch:
        """The edges of nodes, bool [N], among those that are kept, bool [N]: these and around."""
        return self._keep(kept, nodes[self.row] | nodes[self.col])

    def _keep(self, kept: Tensor, entries: Tensor) -> Batch:
        number = (kept.cumsum(0) - 1).to(torch.int32)
        left = self.keep_entries(entries)
        return dataclasses.replace(
            self,
            node_ptr=torch.cat([kept.new_zeros(1), kept]).cumsum(0)[self.node_ptr],
            row_ptr=_pointer(left.degree[kept]),
            col=number[left.col],
            features=_only(self.features, kept),
        )

    def parts(self, width: int) -> list[Batch]:
        """The same graphs, few at a time: as many as have PART numbers in vectors of that width, or
        one that has more."""
        ptr, ends, nodes = self.node_ptr.tolist(), [0], PART // width
        while ends[-1] < self.num_graphs:
            within = bisect.bisect_right(ptr, ptr[ends[-1]] + nodes) - 1
            ends.append(max(ends[-1] + 1, within))
        cuts = [ptr[end] for end in ends]
        features = self.features.split([b - a for a, b in itertools.pairwise(cuts)])
        return [
            self._between(*graphs, *rows, own)
            for graphs, rows, own in zip(
                itertools.pairwise(ends), itertools.pairwise(cuts), features, strict=True
            )
        ]

    def _between(
        self, first: int, last: int, begin: int, end: int, features: Tensor | Shared
    ) -> Batch:
        """The graphs from first to before last, with nodes from begin to before end."""
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

    def chance(self, seed: int) -> Tensor:
        """A number in [0, 1) for every entry, the same for both directions of an edge, [E]."""
        col = self.col.long()
        low, high = torch.minimum(self.row, col), torch.maximum(self.row, col)
        mixed = low * self.num_nodes + high + seed * 0x5851F42D
        for factor in (0x2545F4914F6CDD1D, 0x27D4EB2F165667C5):
            mixed = (mixed ^ (mixed >> 29)) * factor
        return ((mixed ^ (mixed >> 32)) & 0xFFFFFF).to(torch.float32) / 0x1000000


class _Whole(torch.autograd.Function):
    """A table whose gradient is all that was added up of its rows' gradients."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, sums: Sums) -> Tensor:
        ctx.sums = sums
        return table.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        found, ctx.sums.grad = ctx.sums.grad, None
        return found, None


class _Rows(torch.autograd.Function):
    """Rows of a table; their gradients are added up in the order of the rows."""

    @staticmethod
    def forward(ctx: Any, begin: Tensor, table: Tensor, rows: Tensor, sums: Sums) -> Tensor:
        ctx.saved = len(table), rows, sums
        return table.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        count, rows, sums = ctx.saved
        if sums.grad is None:
            sums.grad = grads[0].new_zeros(count, grads[0].shape[1])
        sums.grad.index_add_(0, rows, grads[0])
        return grads[0].new_zeros(()), None, None, None


class _Neighbours(torch.autograd.Function):
    """A V with a symmetric binary A: FBGEMM's bags are several times faster than sparse products"""

    @staticmethod
    def forward(ctx: Any, values: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
        ctx.saved = row_ptr, col
        return _bags(values, row_ptr, col)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _bags(grads[0], *ctx.saved), None, None


class _Segments(torch.autograd.Function):
    """Sums over consecutive rows."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, pointer: Tensor, segment_of: Tensor) -> Tensor:
        ctx.saved = segment_of
        return _bags(values, pointer, torch.arange(len(values), dtype=torch.int32))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0].index_select(0, ctx.saved), None, None


def _bags(values: Tensor, pointer: Tensor, members: Tensor) -> Tensor:
    if len(members) == 0:
        return values.new_zeros(len(pointer) - 1, values.shape[1])
    offsets = pointer[:-1].to(members.dtype)
    return embedding_bag(members, values.contiguous(), offsets, mode="sum")


def _only(features: Tensor | Shared, kept: Tensor) -> Tensor | Shared:
    if isinstance(features, Shared):
        return Shared(features.table, features.rows[kept])
    return features[kept]


def _repeated(pointer: Tensor) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(pointer) - 1), pointer.diff())


def _pointer(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
