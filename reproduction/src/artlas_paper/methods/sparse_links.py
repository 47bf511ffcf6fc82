"""Sums by a sparse matrix whose entries have gradients too, and products of rows at its entries.

A matrix of R rows and C columns is given as a CSR: row_ptr int64 [R + 1], col int [L].
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
class Pattern:
    """Where a matrix has entries, by rows and, when it is asked for, by columns."""

    row_ptr: Tensor
    col: Tensor
    columns: int

    @cached_property
    def row(self) -> Tensor:
        """The row of every entry, int64 [L]."""
        counts = self.row_ptr.diff()
        return torch.repeat_interleave(torch.arange(len(counts)), counts)

    @cached_property
    def _by_column(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where columns begin, the rows of their entries, and the numbers of these entries."""
        order = self.col.argsort(stable=True)
        counts = torch.bincount(self.col, minlength=self.columns)
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), self.row[order], order

    def times(self, weights: Tensor, values: Tensor) -> Tensor:
        """The matrix of these weights [L] times values [C, c]: [R, c]; gradients of both."""
        return _Times.apply(weights, values, self, False)

    def transposed_times(self, weights: Tensor, values: Tensor) -> Tensor:
        """Its transpose times values [R, c]: [C, c]; gradients of both."""
        return _Times.apply(weights, values, self, True)

    def sums(self, weights: Tensor, values: Tensor, transposed: bool) -> Tensor:
        """One of the two without a gradient."""
        if not transposed:
            return weighted_bags(values, self.row_ptr, self.col, weights)
        pointer, row, order = self._by_column
        return weighted_bags(values, pointer, row, weights[order])


class _Times(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, values: Tensor, pattern: Pattern, transposed: bool
    ) -> Tensor:
        ctx.save_for_backward(weights, values)
        ctx.pattern, ctx.transposed = pattern, transposed
        return pattern.sums(weights, values, transposed)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (weights, values), pattern = ctx.saved_tensors, ctx.pattern
        of_weights, of_values, *_ = ctx.needs_input_grad
        rows, columns = (values, grads[0]) if ctx.transposed else (grads[0], values)
        return (
            products(rows, columns, pattern.row_ptr, pattern.col) if of_weights else None,
            pattern.sums(weights, grads[0], not ctx.transposed) if of_values else None,
            None,
            None,
        )


def weighted_bags(values: Tensor, pointer: Tensor, members: Tensor, weights: Tensor) -> Tensor:
    """Sums of rows of values [C, c], by weights [L] and segments of members [L]; no gradient."""
    if len(members) == 0:
        return values.new_zeros(len(pointer) - 1, values.shape[1])
    offsets = pointer[:-1].to(members.dtype)
    return embedding_bag(
        members, values.contiguous(), offsets, mode="sum", per_sample_weights=weights.contiguous()
    )


def products(q: Tensor, u: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
    """q_i . u_j for rows of q [R, c] and u [C, c] at every entry (i, j), [L]; no gradient."""
    offsets = row_ptr.to(col.dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        entries = torch.sparse_csr_tensor(
            offsets, col, q.new_zeros(len(col)), (len(q), len(u)), check_invariants=False
        )
    return torch.sparse.sampled_addmm(entries, q.contiguous(), u.T, beta=0.0).values()
