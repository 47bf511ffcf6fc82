"""Encoders on PyTorch Geometric's layers, which take a batch instead of a list of edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from artlas_paper.kernels import additive_attention, batch_norm, dropout, linear, self_sums, unit
from artlas_paper.methods.batch import Batch, Shared, entering, through

try:
    from torch_geometric.nn import GATConv, GCNConv, GINConv
except ImportError as error:
    raise ImportError(
        "Baselines are built on PyTorch Geometric's layers, which are not installed. "
        "To fix this: pip install 'artlas[pyg]'"
    ) from error


class Linear(nn.Linear):
    """PyTorch's linear map of rows, and a ReLU if asked for."""

    def __init__(self, width: int, out: int, bias: bool = True, rectify: bool = False) -> None:
        super().__init__(width, out, bias)
        self.rectify = rectify

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias, self.rectify)


class AggregationLayer:
    """A layer that maps every node's vector linearly, and then lets neighbours meet."""

    lin: Any

    def forward(self, x: Tensor | Shared, batch: Batch) -> Tensor:
        return self.aggregate(through(self.enter, x), batch)

    def enter(self, rows: Tensor) -> Tensor:
        """The linear map."""
        return linear(rows, self.lin.weight)

    def aggregate(self, values: Tensor, batch: Batch) -> Tensor:
        """What follows the linear map."""
        raise NotImplementedError


class GCNLayer(AggregationLayer, GCNConv):
    """PyTorch Geometric's GCNConv, on the symmetric adjacency of a batch: the same result."""

    def aggregate(self, values: Tensor, batch: Batch) -> Tensor:
        return batch.propagate(values, self.bias)


class GINLayer(GINConv):
    """PyTorch Geometric's GINConv, likewise."""

    def forward(self, x: Tensor | Shared, batch: Batch) -> Tensor:
        # the perceptron begins with a linear map: sums that follow it are narrower
        modules: list[Any] = list(self.nn) if isinstance(self.nn, nn.Sequential) else [self.nn]
        first, *rest = modules
        values = through(lambda rows: linear(rows, first.weight), x)
        values = self_sums(values, self.eps, first.bias, batch.row_ptr, batch.col)
        return nn.Sequential(*rest)(values)


class GATLayer(AggregationLayer, GATConv):
    """PyTorch Geometric's GATConv, likewise; nothing is kept of an edge."""

    def aggregate(self, values: Tensor, batch: Batch) -> Tensor:
        # the scores of all heads are one product: with 0 in the place of other heads
        heads = torch.eye(self.heads, dtype=values.dtype, device=values.device)
        weights = torch.cat([self.att_src, self.att_dst])  # [2, H, c]
        joint = (heads[:, :, None] * weights[:, None]).reshape(2 * self.heads, -1)
        sent, met = nn.functional.linear(values, joint).split(self.heads, 1)
        place = batch.row_ptr, batch.col
        return additive_attention(values, sent, met, *place, self.negative_slope) + self.bias


class BatchNorm(nn.BatchNorm1d):
    """PyTorch's batch normalisation, then a ReLU or a PReLU if asked for, then dropout; a single
    row, which has no variance, by the running ones."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    momentum: float

    def __init__(
        self, width: int, after: type[nn.Module] = nn.Identity, dropout: float = 0.0
    ) -> None:
        super().__init__(width)
        if after not in (nn.Identity, nn.ReLU, nn.PReLU):
            raise ValueError(f"A ReLU or PReLU may follow, got {after.__name__}.")
        self.after, self.dropout = after(), dropout

    def forward(self, input: Tensor) -> Tensor:
        drop = self.dropout if self.training else 0.0
        if len(input) == 1 or not self.training:
            found = nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
            return drop_entries(self.after(found), drop)
        slope = self.after.weight if isinstance(self.after, nn.PReLU) else None
        found, mean, variance = batch_norm(
            input,
            self.weight,
            self.bias,
            self.eps,
            isinstance(self.after, nn.ReLU),
            slope,
            drop,
            _seed() if drop else 0,
        )
        self._remember(mean, variance, len(input))
        return found

    def of_shared(self, features: Shared) -> Shared:
        """The same of features that nodes share, which have no gradient and nothing behind it: a
        row of the table counts as often as it is shared."""
        table, rows = features.table, len(features.rows)
        if rows == 1 or not self.training:
            return Shared(self(table), features.rows)
        assert isinstance(self.after, nn.Identity)
        assert not self.dropout
        with torch.no_grad():
            counts = torch.bincount(features.rows, minlength=len(table)).to(table)
            mean = counts @ table / rows
            centred = table - mean
            variance = counts @ centred.square() / rows
        self._remember(mean, variance, rows)
        factor = self.weight * (variance + self.eps).rsqrt()
        return Shared(torch.addcmul(self.bias, centred, factor), features.rows)

    def _remember(self, mean: Tensor, variance: Tensor, rows: int) -> None:
        """Running means and variances follow those of so many rows."""
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * rows / (rows - 1), self.momentum)
            self.num_batches_tracked.add_(1)


class Dropout(nn.Dropout):
    """PyTorch's dropout, but that one random number decides on all entries, by their hashes."""

    def forward(self, input: Tensor) -> Tensor:
        return drop_entries(input, self.p if self.training else 0.0)


def drop_entries(x: Tensor, share: float) -> Tensor:
    """x [..., c] after dropout of a share."""
    return dropout(x, share, _seed()) if share else x


def _seed() -> int:
    return int(torch.randint(2**63 - 1, ()))


class GCN(nn.Module):
    """A stack of GCN layers, each but the last followed by what is asked for.

    forward gives the states after every layer, [N, hidden] each. last: whether the last layer is
    followed by it too.
    """

    def __init__(
        self,
        features: int,
        hidden: int,
        layers: int = 3,
        norm: bool = False,
        dropout: float = 0.0,
        activation: type[nn.Module] = nn.ReLU,
        last: bool = True,
    ) -> None:
        super().__init__()
        widths = [features] + [hidden] * layers
        self.layers = nn.ModuleList(map(GCNLayer, widths[:-1], widths[1:]))
        after = []
        for i in range(layers):
            parts: list[nn.Module] = []
            if last or i < layers - 1:
                if norm:
                    parts = [BatchNorm(hidden, activation, dropout)]
                else:
                    parts = [activation(), Dropout(dropout)]
            after.append(nn.Sequential(*parts))
        self.after = nn.ModuleList(after)

    def forward(self, x: Tensor | Shared, batch: Batch) -> list[Tensor]:
        return self.entered(batch.with_x(self.enter(x)))

    def enter(self, features: Tensor | Shared) -> Tensor | Shared:
        """The first layer's linear map of features."""
        return entering(self._layer(0).enter, features)

    def entered(self, batch: Batch) -> list[Tensor]:
        """The states after every layer, where features have entered."""
        states = [self.after[0](self._layer(0).aggregate(batch.x, batch))]
        for layer, after in list(zip(self.layers, self.after, strict=True))[1:]:
            states.append(after(layer(states[-1], batch)))
        return states

    def _layer(self, number: int) -> GCNLayer:
        layer = self.layers[number]
        assert isinstance(layer, GCNLayer)
        return layer


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Cosines of all rows of a [n, c] with all of b [m, c]; zero rows have cosine 0."""
    return unit(a) @ unit(b).T
