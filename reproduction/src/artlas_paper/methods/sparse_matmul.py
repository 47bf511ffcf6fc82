"""Products of sparse matrices, differentiable also in their entries, and sums of row segments.

The pattern of a matrix of R rows and C columns is a CSR: row_ptr int64 [R + 1], col int [L].
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


@dataclass(frozen=True, eq=False)
class SparsePattern:
    """The positions of a sparse matrix's entries; ``columns`` is the number of its columns."""

    row_ptr: Tensor
    col: Tensor
    columns: int

    @cached_property
    def row(self) -> Tensor:
        """The row of every entry, int64 [L]."""
        return segment_ids(self.row_ptr)

    @cached_property
    def _transposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """The transpose's row pointer and columns, and the order of the entries in it."""
        order = self.col.argsort(stable=True)
        counts = torch.bincount(self.col, minlength=self.columns)
        return pointer(counts), self.row[order], order

    def matmul(self, weights: Tensor, values: Tensor) -> Tensor:
        """Multiply the matrix with entries ``weights`` [L] by values [C, c]: [R, c]."""
        return _MatMul.apply(weights, values, self, False)

    def transposed_matmul(self, weights: Tensor, values: Tensor) -> Tensor:
        """Multiply the transpose by values [R, c]: [C, c]."""
        return _MatMul.apply(weights, values, self, True)

    def product(self, weights: Tensor, values: Tensor, transposed: bool) -> Tensor:
        """Compute either product without recording gradients."""
        if not transposed:
            return sum_segments(values, self.row_ptr, self.col, weights)
        row_ptr, row, order = self._transposed
        return sum_segments(values, row_ptr, row, weights[order])


class _MatMul(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, values: Tensor, pattern: SparsePattern, transposed: bool
    ) -> Tensor:
        ctx.save_for_backward(weights, values)
        ctx.pattern, ctx.transposed = pattern, transposed
        return pattern.product(weights, values, transposed)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (weights, values), pattern = ctx.saved_tensors, ctx.pattern
        of_weights, of_values, *_ = ctx.needs_input_grad
        rows, columns = (values, grads[0]) if ctx.transposed else (grads[0], values)
        return (
            sampled_products(rows, columns, pattern.row_ptr, pattern.col) if of_weights else None,
            pattern.product(weights, grads[0], not ctx.transposed) if of_values else None,
            None,
            None,
        )


def sum_segments(
    values: Tensor, row_ptr: Tensor, members: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Sum rows of values [C, c], by weights [L], over segments of members [L]; no gradient.

    FBGEMM's embedding bags are several times faster than PyTorch's sparse products.
    """
    if len(members) == 0:
        return values.new_zeros(len(row_ptr) - 1, values.shape[1])
    offsets = row_ptr[:-1].to(members.dtype)
    weights = None if weights is None else weights.contiguous()
    return embedding_bag(
        members, values.contiguous(), offsets, mode="sum", per_sample_weights=weights
    )


def sampled_products(q: Tensor, u: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
    """Compute q_i . u_j for rows of q [R, c], u [C, c] at every entry (i, j), [L]; no gradient."""
    offsets = row_ptr.to(col.dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        entries = torch.sparse_csr_tensor(
            offsets, col, q.new_zeros(len(col)), (len(q), len(u)), check_invariants=False
        )
    return torch.sparse.sampled_addmm(entries, q.contiguous(), u.T, beta=0.0).values()


def pointer(counts: Tensor) -> Tensor:
    """Return where segments of these sizes [S] begin and end, int64 [S + 1]."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def segment_ids(row_ptr: Tensor) -> Tensor:
    """Return the segment of every element, int64 [L], from the segments' bounds [S + 1]."""
    return torch.repeat_interleave(torch.arange(len(row_ptr) - 1), row_ptr.diff())
