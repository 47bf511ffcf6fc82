"""Attention and sums over neighbours in PyTorch, on any device and with any dtype.

A symmetric adjacency A is given in CSR form by row_ptr int64 [N + 1] and col int32 [E]; the columns
of a row ascend. Sums are embedding bags, which write no tensor of [E, c].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, leaky_relu


def additive_attention(
    values: Tensor, sent: Tensor, met: Tensor, row_ptr: Tensor, col: Tensor, slope: float
) -> Tensor:
    entries = _Entries(row_ptr, col)
    scores = leaky_relu(_AtCol.apply(sent, entries) + _AtRow.apply(met, entries), slope)
    return _Means.apply(values, scores, leaky_relu(sent + met, slope), entries)


def normalised_sums(
    values: Tensor, bias: Tensor | None, scale: Tensor, row_ptr: Tensor, col: Tensor
) -> Tensor:
    scaled = scale[:, None] * values
    sums = scale[:, None] * (neighbour_sums(scaled, row_ptr, col) + scaled)
    return sums if bias is None else sums + bias


def self_sums(values: Tensor, eps: Tensor, bias: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
    return neighbour_sums(values, row_ptr, col) + (1 + eps) * values + bias


def product_attention(
    query: Tensor, key: Tensor, value: Tensor, row_ptr: Tensor, col: Tensor
) -> Tensor:
    entries = _Entries(row_ptr, col)
    scores = (_AtRow.apply(query, entries) * _AtCol.apply(key, entries)).sum(1, keepdim=True)
    return _Means.apply(value, scores, None, entries)


def neighbour_sums(values: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
    """A V for values V [N, c]."""
    return _NeighbourSums.apply(values, row_ptr, col)


@dataclass(frozen=True, eq=False)
class _Entries:
    """The entries (i, j) of an adjacency, in the order of rows."""

    row_ptr: Tensor
    col: Tensor

    @cached_property
    def row(self) -> Tensor:
        """i of every entry."""
        return torch.repeat_interleave(self.row_ptr.diff())

    @cached_property
    def reverse(self) -> Tensor:
        """The position of (j, i)."""
        return torch.sort(self.col, stable=True).indices

    def sums(self, values: Tensor, order: Tensor, weights: Tensor | None = None) -> Tensor:
        """Sums over each row's entries of values at ``order``, times weights [E]."""
        if len(order) == 0:
            return values.new_zeros(len(self.row_ptr) - 1, values.shape[1])
        begin, values = self.row_ptr[:-1].to(order.dtype), values.contiguous()
        return embedding_bag(order, values, begin, mode="sum", per_sample_weights=weights)


class _NeighbourSums(torch.autograd.Function):
    """A V; A is symmetric, so the gradient is the same product."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
        ctx.adjacency = row_ptr, col
        return _Entries(row_ptr, col).sums(values, col)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _NeighbourSums.apply(grads[0], *ctx.adjacency), None, None


class _AtCol(torch.autograd.Function):
    """x_j of every entry (i, j), of rows x [N, c]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, entries: _Entries) -> Tensor:
        ctx.entries = entries
        return x.index_select(0, entries.col)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.entries.sums(grads[0], ctx.entries.reverse), None


class _AtRow(torch.autograd.Function):
    """x_i of every entry (i, j), of rows x [N, c]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, entries: _Entries) -> Tensor:
        ctx.entries = entries
        return x.index_select(0, entries.row)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        order = torch.arange(len(grads[0]), device=grads[0].device)
        return ctx.entries.sums(grads[0], order), None


class _Means(torch.autograd.Function):
    """Means over neighbours of values [N, H c] by softmaxes of scores [E, H].

    ``own`` [N, H] are the scores of nodes themselves. If it is None, nodes do not count themselves,
    and the mean of a node without neighbours is 0.
    """

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, scores: Tensor, own: Tensor | None, entries: _Entries
    ) -> Tensor:
        index = entries.row[:, None].expand_as(scores)
        least = scores.new_full((len(values), scores.shape[1]), -torch.inf) if own is None else own
        shift = least.scatter_reduce(0, index, scores, "amax")
        weights = (scores - shift.index_select(0, entries.row)).exp_()
        alone = torch.zeros_like(shift) if own is None else (own - shift).exp_()
        total = entries.sums(weights, torch.arange(len(weights), device=weights.device)) + alone
        inverse = 1 / total.clamp(min=torch.finfo(total.dtype).tiny)
        weights *= inverse.index_select(0, entries.row)
        alone *= inverse
        out = _heads(values, weights, entries.col, entries)
        if own is not None:
            out += _times(values, alone)
        ctx.save_for_backward(values, weights, alone, out)
        ctx.entries, ctx.with_own = entries, own is not None
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        values, weights, alone, out = ctx.saved_tensors
        entries, heads, grad = ctx.entries, weights.shape[1], grads[0].contiguous()
        row = entries.row
        d_values = _heads(grad, weights.index_select(0, entries.reverse), entries.col, entries)
        along = (grad * out).unflatten(1, (heads, -1)).sum(2)
        pairs = grad.index_select(0, row).mul_(values.index_select(0, entries.col))
        d_scores = pairs.unflatten(1, (heads, -1)).sum(2).sub_(along.index_select(0, row))
        d_scores *= weights
        d_own = None
        if ctx.with_own:
            d_values += _times(grad, alone)
            d_own = alone * ((grad * values).unflatten(1, (heads, -1)).sum(2) - along)
        return d_values, d_scores, d_own, None


def _heads(values: Tensor, weights: Tensor, order: Tensor, entries: _Entries) -> Tensor:
    """Weighted sums of values [N, H c] over neighbours, every head by its own weights [E, H]."""
    parts = zip(values.chunk(weights.shape[1], 1), weights.unbind(1), strict=True)
    return torch.cat([entries.sums(own, order, by.contiguous()) for own, by in parts], 1)


def _times(values: Tensor, weights: Tensor) -> Tensor:
    """Values [N, H c], every head times its weights [N, H]."""
    return (values.unflatten(1, (weights.shape[1], -1)) * weights[:, :, None]).flatten(1)
