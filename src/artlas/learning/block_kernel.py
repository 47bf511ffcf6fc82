"""A mean of Gaussian kernels, one for every block of standardised columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from artlas.blocks.layout import Layout

SAMPLE = 1000  # rows of whose pairs the bandwidth is a median
_CHUNK = 512  # rows at a time: a chunk's kernel stays in the cache from block to block
_FARTHEST = 1e15  # a scaled value, so that its square is finite in float32


@dataclass(frozen=True, eq=False)
class BlockKernel:
    r"""Compare rows block by block, with what was learned from the training rows.

    .. math:: k(v, v') = \sum_b w_b \exp(-\|z_b - z'_b\|^2 / h_b), \quad
        z_j = (v_j - m_j) / s_j, \quad h_b = \mathrm{median}_{i < i'} \|z_{ib} - z_{i'b}\|^2

    with the training rows' means m and deviations s, the latter at least a block's floor. Columns
    that are constant on the training rows are dropped, and with them blocks that have no other.
    Weights sum to one.

    names, widths, weights: [B], of the blocks that are left; columns: int64 [d'], those that are
    left; mean, scale: float64 [d'], scale being :math:`1 / (s_j \sqrt{h_b})`; anchors: float32
    [m, d'], the scaled training rows, or some of them, with which rows are compared.
    """

    names: tuple[str, ...]
    widths: tuple[int, ...]
    weights: tuple[float, ...]
    columns: Tensor
    mean: Tensor
    scale: Tensor
    anchors: Tensor

    @classmethod
    def fit(
        cls,
        rows: Tensor,
        layout: Layout,
        weights: Mapping[str, float] | None = None,
        anchors: Tensor | None = None,
    ) -> BlockKernel:
        """Learn from training rows [n, D]; ``anchors``: the numbers of rows to keep, else all.

        A block whose name ``weights`` lacks has weight one.
        """
        mean, spread = _moments(rows)
        for block, (_, place) in zip(layout.blocks, layout, strict=True):
            varies = spread[place] > 0
            spread[place] = torch.where(varies, spread[place].clamp(min=block.floor), 0.0)
        weights = weights or {}
        varying = {
            name: columns.start + spread[columns].nonzero()[:, 0]
            for name, columns in layout
            if weights.get(name, 1.0) > 0
        }
        varying = {name: columns for name, columns in varying.items() if len(columns)}
        none = torch.zeros(0, dtype=torch.int64)
        columns = torch.cat([none, *varying.values()])
        total = sum(weights.get(name, 1.0) for name in varying)
        kernel = cls(
            tuple(varying),
            tuple(map(len, varying.values())),
            tuple(weights.get(name, 1.0) / total for name in varying),
            columns,
            mean[columns],
            1 / spread[columns],
            torch.zeros(0, len(columns)),
        )
        scale = kernel.scale / kernel._bandwidths(rows)[kernel._owners].sqrt()
        kernel = replace(kernel, scale=scale)
        kept = rows if anchors is None else rows[anchors]
        scaled = [kernel.scaled(part) for part in kept.split(_CHUNK)]
        return replace(kernel, anchors=torch.cat(scaled))

    def gram(self) -> Tensor:
        """Compare all anchors with each other, float32 [m, m], symmetric."""
        count = len(self.anchors)
        out = torch.empty(count, count)
        for start in range(0, count, _CHUNK):
            part = slice(start, min(start + _CHUNK, count))
            out[part, : part.stop] = self._compare(self.anchors[part], part.stop)
            out[:start, part] = out[part, :start].T
            out[part, part] = (out[part, part] + out[part, part].T) / 2
        return out.fill_diagonal_(sum(self.weights))

    def cross(self, rows: Tensor) -> Tensor:
        """Compare rows [q, D] with all anchors, float32 [q, m]."""
        out = torch.empty(len(rows), len(self.anchors))
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            out[part] = self._compare(self.scaled(rows[part]), len(self.anchors))
        return out

    def scaled(self, rows: Tensor) -> Tensor:
        """Scale rows [q, D] to float32 [q, d'], in which every block's bandwidth is one."""
        values = (rows[:, self.columns].double() - self.mean) * self.scale
        return values.clamp_(-_FARTHEST, _FARTHEST).float()

    def by_block(self, scaled: Tensor, count: int | None = None) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the blocks' terms for scaled rows [q, d'] and the first ``count`` anchors.

        Yields a block's name and its weighted kernel, float32 [q, count]; their sum is the kernel.
        """
        blocks = zip(self.names, self._spans, self.weights, self._squares, strict=True)
        for name, span, weight, squares in blocks:
            values, log_weight = scaled[:, span], float(np.log(weight))
            shift = log_weight - squares[:count]
            exponent = torch.addmm(shift, values, self.anchors[:count, span].T, alpha=2)
            exponent -= values.square().sum(1, keepdim=True)
            yield name, exponent.clamp_(max=log_weight).exp_()

    def _compare(self, scaled: Tensor, count: int) -> Tensor:
        total = torch.zeros(len(scaled), count)
        for _, term in self.by_block(scaled, count):
            total += term
        return total

    def _bandwidths(self, rows: Tensor) -> Tensor:
        """Median squared distances by block, float64 [B], of columns scaled to deviation one."""
        sample = rows[spread_out(len(rows), SAMPLE)][:, self.columns].double()
        sample.sub_(self.mean).mul_(self.scale)
        pairs = torch.ones(len(sample), len(sample), dtype=torch.bool).triu(1)
        found = [torch.zeros(0, dtype=torch.float64)]
        for span, width in zip(self._spans, self.widths, strict=True):
            values = sample[:, span]
            squares = torch.cdist(values, values, compute_mode="use_mm_for_euclid_dist").square_()
            median = squares[pairs].median()
            # Where most pairs are equal: the mean over all pairs, whose columns' variance is one.
            found.append(torch.where(median > 1e-9 * width, median, 2.0 * width)[None])
        return torch.cat(found)

    @property
    def _spans(self) -> list[slice]:
        ends = list(accumulate(self.widths))
        return [slice(end - width, end) for end, width in zip(ends, self.widths, strict=True)]

    @property
    def _owners(self) -> Tensor:
        return torch.repeat_interleave(torch.tensor(self.widths, dtype=torch.int64))

    @cached_property
    def _squares(self) -> list[Tensor]:
        return [self.anchors[:, span].square().sum(1) for span in self._spans]


def spread_out(count: int, most: int) -> Tensor:
    """Choose at most ``most`` of ``count`` rows, always the same ones, in ascending order."""
    if count <= most:
        return torch.arange(count)
    chosen = np.random.default_rng(0).choice(count, most, replace=False)
    return torch.from_numpy(np.sort(chosen))


def _moments(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the columns' means and deviations in float64, [D]; a constant one's is exactly 0."""
    count = len(rows)
    chunks = rows.split(4 * _CHUNK)
    mean = sum(chunk.sum(0, dtype=torch.float64) for chunk in chunks) / count
    squares = sum((chunk.double() - mean).square_().sum(0) for chunk in chunks)
    spread = (torch.as_tensor(squares) / count).sqrt()
    largest = torch.maximum(rows.amax(0), -rows.amin(0)).double()
    rounding = 4 * torch.finfo(rows.dtype).eps * largest
    return torch.as_tensor(mean), torch.where(spread > rounding, spread, 0.0)
