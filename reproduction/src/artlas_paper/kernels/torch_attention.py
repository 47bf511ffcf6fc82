"""Attention and sums over neighbours in PyTorch, on any device and with any dtype.

A symmetric adjacency A is given in CSR form by row_ptr int64 [N + 1] and col int32 [E]; rows are
sorted. Sums over neighbours are embedding bags, which need no tensor of [E, c] in the forward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, leaky_relu


def additive_attention(
    values: Tensor, sent: Tensor, met: Tensor, row_ptr: Tensor, col: Tensor, slope: float
) -> Tensor:
    row = torch.repeat_interleave(row_ptr.diff())
    scores = leaky_relu(_rows(sent, col) + _rows(met, row), slope)
    return _means(values, scores, leaky_relu(sent + met, slope), row_ptr, col, row)


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
    row = torch.repeat_interleave(row_ptr.diff())
    scores = (_rows(query, row) * _rows(key, col)).sum(1, keepdim=True)
    return _means(value, scores, None, row_ptr, col, row)


def neighbour_sums(values: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
    """A V for values V [N, c]."""
    return _NeighbourSums.apply(values, row_ptr, col)


class _NeighbourSums(torch.autograd.Function):
    """A V; A is symmetric, so the gradient is the same product."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
        ctx.adjacency = row_ptr, col
        return _bags(values, None, row_ptr, col)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _NeighbourSums.apply(grads[0], *ctx.adjacency), None, None


class _WeightedSums(torch.autograd.Function):
    """Sums over neighbours of values [N, H c], head by head times the weights [E, H]."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, weights: Tensor, row_ptr: Tensor, col: Tensor, row: Tensor
    ) -> Tensor:
        ctx.save_for_backward(values, weights, row_ptr, col, row)
        return _bags(values, weights, row_ptr, col)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        values, weights, row_ptr, col, row = ctx.saved_tensors
        grad = grads[0].contiguous()
        reverse = torch.sort(col, stable=True).indices  # of (i, j), the position of (j, i)
        d_values = _bags(grad, weights[reverse], row_ptr, col)
        width = values.shape[1] // weights.shape[1]
        d_weights = [
            (_rows(g, row) * _rows(v, col)).sum(1)
            for g, v in zip(grad.split(width, 1), values.split(width, 1), strict=True)
        ]
        return d_values, torch.stack(d_weights, 1), None, None, None


def _bags(values: Tensor, weights: Tensor | None, row_ptr: Tensor, col: Tensor) -> Tensor:
    """Sums over neighbours; with weights [E, H], of every head by its own."""
    if len(col) == 0:
        return torch.zeros_like(values)
    begin = row_ptr[:-1].to(col.dtype)
    if weights is None:
        return embedding_bag(col, values.contiguous(), begin, mode="sum")
    heads = zip(values.chunk(weights.shape[1], 1), weights.unbind(1), strict=True)
    return torch.cat(
        [
            embedding_bag(
                col, own.contiguous(), begin, mode="sum", per_sample_weights=by.contiguous()
            )
            for own, by in heads
        ],
        1,
    )


def _means(
    values: Tensor, scores: Tensor, own: Tensor | None, row_ptr: Tensor, col: Tensor, row: Tensor
) -> Tensor:
    """Means of neighbours' values by softmaxes of scores [E, H] and, of a node itself, own [N, H].

    0 where a node has no neighbours, if nodes do not count themselves (own is None).
    """
    nodes, heads = len(values), scores.shape[1]
    with torch.no_grad():  # any shift will do; by the largest score, no weight overflows
        least = scores.new_full((nodes, heads), -torch.inf) if own is None else own
        shift = least.scatter_reduce(0, row[:, None].expand_as(scores), scores, "amax")
    weights = (scores - _rows(shift, row)).exp()
    total = scores.new_zeros(nodes, heads) if own is None else (own - shift).exp()
    sums = _WeightedSums.apply(values, weights, row_ptr, col, row).unflatten(1, (heads, -1))
    if own is not None:
        sums = sums + total[:, :, None] * values.unflatten(1, (heads, -1))
    total = total.scatter_add(0, row[:, None].expand_as(weights), weights)
    return (sums / total.clamp(min=torch.finfo(total.dtype).tiny)[:, :, None]).flatten(1)


def _rows(x: Tensor, index: Tensor) -> Tensor:
    """x [n, c] at index [E]; the gradient of gather is faster than that of indexing."""
    return x.gather(0, index.long()[:, None].expand(-1, x.shape[1]))
