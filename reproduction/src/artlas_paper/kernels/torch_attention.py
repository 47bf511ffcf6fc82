"""Attention over neighbours in PyTorch: on any device and with any dtype, and gradients of its own.

A symmetric adjacency is given by row_ptr int64 [N + 1] and col int32 [E].
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu


def additive_attention(
    values: Tensor, sent: Tensor, met: Tensor, row_ptr: Tensor, col: Tensor, slope: float
) -> Tensor:
    loops = torch.arange(len(values), device=values.device)
    row = torch.cat([torch.repeat_interleave(loops, row_ptr.diff()), loops])
    col = torch.cat([col.long(), loops])
    scores = leaky_relu(sent[col] + met[row], slope)
    return _means(scores, values.unflatten(1, (sent.shape[1], -1)), row, col).flatten(1)


def normalised_sums(
    values: Tensor, bias: Tensor | None, scale: Tensor, row_ptr: Tensor, col: Tensor
) -> Tensor:
    scaled = scale[:, None] * values
    row = torch.repeat_interleave(row_ptr.diff())
    sums = scale[:, None] * scaled.index_add(0, row, scaled[col])
    return sums if bias is None else sums + bias


def self_sums(values: Tensor, eps: Tensor, bias: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
    row = torch.repeat_interleave(row_ptr.diff())
    return ((1 + eps) * values).index_add(0, row, values[col]) + bias


def product_attention(
    query: Tensor, key: Tensor, value: Tensor, row_ptr: Tensor, col: Tensor
) -> Tensor:
    row = torch.repeat_interleave(row_ptr.diff())
    scores = (query[row] * key[col]).sum(1, keepdim=True)
    return _means(scores, value[:, None], row, col)[:, 0]


def _means(scores: Tensor, values: Tensor, row: Tensor, col: Tensor) -> Tensor:
    """Of values [N, H, c] at col, by softmaxes of scores [E, H] over each row; 0 for empty rows."""
    nodes, heads = len(values), scores.shape[1]
    with torch.no_grad():  # any shift will do; by the largest one, no weight overflows
        least = scores.new_full((nodes, heads), -torch.inf)
        shift = least.scatter_reduce(0, row[:, None].expand_as(scores), scores, "amax")
    weights = (scores - shift[row]).exp()
    sums = torch.zeros_like(values).index_add(0, row, weights[:, :, None] * values[col])
    total = scores.new_zeros(nodes, heads).index_add(0, row, weights)
    return sums / total.clamp(min=torch.finfo(total.dtype).tiny)[:, :, None]
