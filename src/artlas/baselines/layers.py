"""Encoders on PyTorch Geometric's layers, which take a batch instead of a list of edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, leaky_relu_

from artlas.baselines.batch import Batch, entry_products, weighted_sums

try:
    from torch_geometric.nn import GATConv, GCNConv, GINConv
except ImportError as error:
    raise ImportError(
        "Baselines are built on PyTorch Geometric's layers, which are not installed. "
        "To fix this: pip install 'artlas[pyg]'"
    ) from error


leaky_relu_backward = torch.ops.aten.leaky_relu_backward


class GCNLayer(GCNConv):
    """PyTorch Geometric's GCNConv, on the symmetric adjacency of a batch: the same result."""

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        return batch.propagate(self.lin(x)) + self.bias


class GINLayer(GINConv):
    """PyTorch Geometric's GINConv, likewise."""

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        return self.nn(batch.neighbour_sums(x) + (1 + self.eps) * x)


class GATLayer(GATConv):
    """PyTorch Geometric's GATConv, likewise; nothing but numbers is kept of an edge."""

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        heads = self.lin(x).view(len(x), self.heads, self.out_channels)
        sent = (heads * self.att_src).sum(2).T.contiguous()  # [H, N]
        met = (heads * self.att_dst).sum(2).T.contiguous()
        made = [
            attend(heads[:, h], sent[h], met[h], batch, self.negative_slope)
            for h in range(self.heads)
        ]
        return torch.cat(made, 1) + self.bias


def attend(values: Tensor, sent: Tensor, met: Tensor, batch: Batch, slope: float) -> Tensor:
    r"""Means over a node and its neighbours of values [N, c], by a GAT's weights.

    These are softmaxes over j of :math:`LeakyReLU(sent_j + met_i)`, for sent and met [N].
    """
    with torch.no_grad():  # any shift will do; by the largest one, no weight overflows
        near = sent.index_select(0, batch.col)
        near = torch.segment_reduce(near, "max", offsets=batch.row_ptr, initial=-torch.inf)
        shift = leaky_relu(torch.maximum(near, sent) + met, slope)
    padded = torch.cat([values, values.new_ones(len(values), 1)], 1)
    own = (leaky_relu(sent + met, slope) - shift).exp()[:, None]
    sums = _GatSums.apply(padded, sent, met, shift, batch, slope) + own * padded
    return sums[:, :-1] / sums[:, -1:]


class _GatSums(torch.autograd.Function):
    """Sums of neighbours' values by exp(LeakyReLU(sent_j + met_i) - shift_i).

    Because the pattern is symmetric, the weights of the transposed matrix are those of the swapped
    numbers.
    """

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, sent: Tensor, met: Tensor, shift: Tensor, batch: Batch,
        slope: float,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(values, sent, met, shift)
        ctx.batch, ctx.slope = batch, slope
        row, col = batch.row, batch.col  # index_select is five times faster than brackets
        raw = sent.index_select(0, col).add_(met.index_select(0, row))
        weights = leaky_relu_(raw, slope).sub_(shift.index_select(0, row)).exp_()
        return weighted_sums(values, weights, batch.row_ptr, col)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        values, sent, met, shift = ctx.saved_tensors
        batch, slope, grad = ctx.batch, ctx.slope, grads[0].contiguous()
        place = batch.row_ptr, batch.col
        raw = met.index_select(0, batch.col).add_(sent.index_select(0, batch.row))  # of (j, i)
        back = leaky_relu(raw, slope).sub_(shift.index_select(0, batch.col)).exp_()
        d_values = weighted_sums(grad, back, *place)
        d_raw = entry_products(values, grad, *place).mul_(back)
        d_raw = leaky_relu_backward(d_raw, raw, slope, False)
        d_sent = torch.segment_reduce(d_raw, "sum", offsets=batch.row_ptr, initial=0.0)
        d_met = torch.zeros_like(met).index_add_(0, batch.col, d_raw)
        return d_values, d_sent, d_met, None, None, None


class BatchNorm(nn.BatchNorm1d):
    """PyTorch's batch normalisation; a single row, which has no variance, by the running ones."""

    def forward(self, input: Tensor) -> Tensor:
        if len(input) > 1 or not self.training:
            return super().forward(input)
        return nn.functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


class Dropout(nn.Dropout):
    """PyTorch's dropout with four decisions of 16 bits a random number: twice as fast."""

    def forward(self, input: Tensor) -> Tensor:
        if self.p == 0 or not self.training:
            return input
        words = torch.empty(-(-input.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        bits = words.view(torch.int16)[: input.numel()].view(input.shape)
        kept = (bits >= round(self.p * 2**16) - 2**15).to(input.dtype)
        return input * kept.div_(1 - self.p)


class GCN(nn.Module):
    """A stack of GCN layers, each but the last followed by what is asked for.

    forward gives the states after every layer, [N, hidden] each. last: whether the last layer is
    followed by it too.
    """

    def __init__(
        self, features: int, hidden: int, layers: int = 3, norm: bool = False,
        dropout: float = 0.0, activation: Callable[[], nn.Module] = nn.ReLU, last: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        widths = [features] + [hidden] * layers
        self.layers = nn.ModuleList(map(GCNLayer, widths[:-1], widths[1:]))
        after = []
        for i in range(layers):
            parts: list[nn.Module] = []
            if last or i < layers - 1:
                parts = [BatchNorm(hidden)] if norm else []
                parts += [activation(), Dropout(dropout)]
            after.append(nn.Sequential(*parts))
        self.after = nn.ModuleList(after)

    def forward(self, x: Tensor, batch: Batch) -> list[Tensor]:
        states = []
        for layer, after in zip(self.layers, self.after, strict=True):
            x = after(layer(x, batch))
            states.append(x)
        return states


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Cosines of all rows of a [n, c] with all of b [m, c]; zero rows have cosine 0."""
    return unit(a) @ unit(b).T


def unit(values: Tensor) -> Tensor:
    """Rows divided by their norms; zero rows stay zero."""
    return torch.nn.functional.normalize(values, dim=-1, eps=1e-12)
