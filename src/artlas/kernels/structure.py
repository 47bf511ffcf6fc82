"""What kernels take: the structure of a batch of graphs, and the options of an alignment."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypedDict

import torch
from torch import Tensor

CSR_DEVICES = ("cpu", "cuda")  # where torch multiplies sparse_csr matrices
_WASTE = 1.25  # padded rows per real row that a chunk may have
_SMALL = 256  # padded rows below which a chunk is too small for its padding to matter


class Sinkhorn(TypedDict):
    """Options of Sinkhorn's iterations.

    scale: factor of the logits; clamp: bound on their magnitude, or None; steps: iterations.
    """

    scale: float
    clamp: float | None
    steps: int


class Mixing(Sinkhorn):
    """Options of mixtures: temperature of the responsibilities; top_k bases to keep, or None."""

    temperature: float
    top_k: int | None


@dataclass(frozen=True, eq=False)
class Adjacency:
    r"""A square binary matrix in CSR form; its products sum rows of x over the neighbours.

    row_ptr int64 [n + 1], col int32 [nnz]; x [n, d] in ``dtype``.
    """

    row_ptr: Tensor
    col: Tensor
    dtype: torch.dtype

    @cached_property
    def source(self) -> Tensor:
        """Row of every stored entry, int64 [nnz]."""
        rows = torch.arange(len(self.row_ptr) - 1, device=self.col.device)
        return torch.repeat_interleave(rows, self.row_ptr.diff(), output_size=len(self.col))

    @cached_property
    def matrix(self) -> Tensor:
        """The matrix as a torch.sparse_csr tensor with entries 1."""
        size = len(self.row_ptr) - 1
        ones = torch.ones(len(self.col), dtype=self.dtype, device=self.col.device)
        index = torch.int32 if len(self.col) < 2**31 else torch.int64
        with warnings.catch_warnings():  # "Sparse CSR tensor support is in beta state"
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(
                self.row_ptr.to(index), self.col.to(index), ones, size=(size, size)
            )

    def multiply(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """Write A x to out, if it is given, which must not share memory with x; return A x."""
        if out is None:
            out = torch.empty_like(x, memory_format=torch.contiguous_format)
        if x.device.type in CSR_DEVICES:
            return torch.addmm(out, self.matrix, x, beta=0, out=out)
        return out.zero_().index_add_(0, self.source, x.index_select(0, self.col.long()))


class SymmetricProduct(torch.autograd.Function):
    """``multiply(h)``, the product with a symmetric matrix, which is its own gradient."""

    @staticmethod
    def forward(ctx: Any, multiply: Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
        ctx.multiply = multiply
        return multiply(h.detach().contiguous())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, SymmetricProduct.apply(ctx.multiply, grad)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Graphs of similar size, padded to ``size`` rows each: row i of the j-th is slot j * size + i.

    graphs int64 [b]: which graphs; nodes, slots int64: where each real node comes from and goes to;
    measure [b, size], zero on padding; adjacency over the b * size slots.
    """

    size: int
    graphs: Tensor
    nodes: Tensor
    slots: Tensor
    measure: Tensor
    adjacency: Adjacency

    @property
    def rows(self) -> int:
        """Number of slots, padding included."""
        return self.measure.numel()

    def pad(self, x: Tensor) -> Tensor:
        """Put rows of x [N, d] in their slots [b * size, d]; padding is zero."""
        return x.new_zeros(self.rows, x.shape[1]).index_copy_(0, self.slots, x[self.nodes])


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of alike nodes, which are the nodes of a structure after merging.

    weight [nnz]: edges between two classes over the product of their counts, loops included;
    count [N]: nodes of a class; degree [N]: of each of them; class_of int64 [nodes]: the class of
    every node of the graphs themselves; sizes int64 [G]: their numbers of nodes.
    """

    weight: Tensor
    count: Tensor
    degree: Tensor
    class_of: Tensor
    sizes: Tensor

    def split_rows(self, coupling: Tensor) -> Tensor:
        """Divide rows of couplings [..., N, M] among the nodes of every class."""
        return (coupling / self.count[:, None]).index_select(-2, self.class_of)


@dataclass(frozen=True, eq=False)
class Structure:
    """G graphs with N nodes in one block diagonal, symmetric, binary, loop-free CSR matrix.

    node_ptr int64 [G + 1]; row_ptr int64 [N + 1]; col int32 [nnz], node ids of the whole batch;
    measure [N], positive, summing to 1 over each graph. Its dtype is the one to compute in.
    With ``classes`` the nodes are classes of alike nodes, and the entries have weights.
    """

    node_ptr: Tensor
    row_ptr: Tensor
    col: Tensor
    measure: Tensor
    classes: Classes | None = None
    _chunks: dict[int, list[Chunk]] = field(default_factory=dict, init=False, repr=False)

    @property
    def num_graphs(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def num_nodes(self) -> int:
        return len(self.row_ptr) - 1

    @property
    def device(self) -> torch.device:
        return self.measure.device

    @property
    def dtype(self) -> torch.dtype:
        return self.measure.dtype

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Structure:
        """Copy the graphs to another device, with the measure in another dtype."""
        measure = self.measure.to(device, dtype)
        if measure is self.measure:
            return self
        if self.classes is not None:
            where = f"{measure.dtype} on {measure.device}"
            raise ValueError(f"alike nodes are joined for float32 on the CPU: make it in {where}")
        ragged = self.node_ptr, self.row_ptr, self.col
        node_ptr, row_ptr, col = (array.to(measure.device) for array in ragged)
        return Structure(node_ptr, row_ptr, col, measure)

    @cached_property
    def sizes(self) -> list[int]:
        """Number of nodes of each graph, on the host."""
        return self.node_ptr.diff().tolist()

    @property
    def degree(self) -> Tensor:
        """Number of neighbours of every node, [N]."""
        return self.row_ptr.diff() if self.classes is None else self.classes.degree

    @cached_property
    def adjacency(self) -> Adjacency:
        """A over all nodes of the batch."""
        return Adjacency(self.row_ptr, self.col, self.dtype)

    @cached_property
    def self_energy(self) -> Tensor:
        r""":math:`\chi_A = \sum_{ij} A_{ij} \mu_i \mu_j` of each graph, [G], in the wide dtype."""
        mu = self.measure.to(wide(self.device))
        source = self.adjacency.source
        graphs = torch.arange(self.num_graphs, device=self.device)
        owner = torch.repeat_interleave(graphs, self.node_ptr.diff(), output_size=self.num_nodes)
        terms = mu[source] * mu[self.col.long()]
        if self.classes is not None:
            terms *= self.classes.weight
        return mu.new_zeros(self.num_graphs).index_add_(0, owner[source], terms)

    def chunks(self, limit: int) -> list[Chunk]:
        """Group the graphs in chunks of similar size with at most ``limit`` rows, or one graph."""
        if limit not in self._chunks:
            groups, real = list[list[int]](), 0
            for g in sorted(range(self.num_graphs), key=self.sizes.__getitem__):
                size = self.sizes[g]
                padded = (len(groups[-1]) + 1) * size if groups else 0
                if not groups or padded > min(limit, max(_WASTE * (real + size), _SMALL)):
                    groups.append([])
                    real = 0
                groups[-1].append(g)
                real += size
            self._chunks[limit] = [self._chunk(group) for group in groups]
        return self._chunks[limit]

    def _chunk(self, group: list[int]) -> Chunk:
        size = self.sizes[group[-1]]
        graphs = torch.tensor(group, device=self.device)
        first, count = self.node_ptr[graphs], self.node_ptr.diff()[graphs]
        shift = torch.arange(len(group), device=self.device) * size - first  # node id -> slot
        nodes = _ranges(first, count)
        slots = nodes + torch.repeat_interleave(shift, count)
        measure = self.measure.new_zeros(len(group) * size)
        measure[slots] = self.measure[nodes]
        degree = self.row_ptr.diff()[nodes]
        row_ptr = self.row_ptr.new_zeros(len(group) * size + 1)
        row_ptr[slots + 1] = degree
        entries = _ranges(self.row_ptr[nodes], degree)
        col = self.col[entries] + torch.repeat_interleave(slots - nodes, degree)
        adjacency = Adjacency(row_ptr.cumsum_(0), col.to(self.col.dtype), self.dtype)
        return Chunk(size, graphs, nodes, slots, measure.view(len(group), size), adjacency)


def wide(device: torch.device) -> torch.dtype:
    """Return the dtype to sum scalars in: float64 where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def _ranges(start: Tensor, count: Tensor) -> Tensor:
    """Concatenate the ranges start[i], start[i] + 1, ..., each of count[i] numbers."""
    end = count.cumsum(0)
    step = torch.repeat_interleave(start - (end - count), count)
    return step + torch.arange(len(step), device=start.device)
