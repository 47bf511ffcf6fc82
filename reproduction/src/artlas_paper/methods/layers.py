"""PyTorch Geometric's layers on batches in CSR form, and the GCN encoder of the baselines."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv

from artlas_paper.kernels import additive_attention, batch_norm, dropout, linear, self_sums
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.shared_features import Features, SharedFeatures, map_features, map_nodes


class Linear(nn.Linear):
    """PyTorch's linear map, optionally followed by a ReLU."""

    def __init__(self, width: int, out: int, bias: bool = True, rectify: bool = False) -> None:
        super().__init__(width, out, bias)
        self.rectify = rectify

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias, self.rectify)


class AggregationLayer:
    """A layer that transforms every node's vector linearly and then aggregates neighbours."""

    lin: Any

    def forward(self, x: Features, batch: Batch) -> Tensor:
        return self.aggregate(map_nodes(self.transform, x), batch)

    def transform(self, rows: Tensor) -> Tensor:
        """Apply the linear map to rows [n, d]."""
        return linear(rows, self.lin.weight)

    def aggregate(self, values: Tensor, batch: Batch) -> Tensor:
        """Aggregate the transformed vectors [N, c] of neighbours, and add the bias."""
        raise NotImplementedError


class GCNLayer(AggregationLayer, GCNConv):
    """PyTorch Geometric's GCNConv on the symmetric adjacency of a batch: equal results."""

    def aggregate(self, values: Tensor, batch: Batch) -> Tensor:
        return batch.propagate(values, self.bias)


class GINLayer(GINConv):
    """PyTorch Geometric's GINConv on the symmetric adjacency of a batch: equal results."""

    def forward(self, x: Features, batch: Batch) -> Tensor:
        # sum after the perceptron's first linear map, whose output is narrower than its input
        modules: list[Any] = list(self.nn) if isinstance(self.nn, nn.Sequential) else [self.nn]
        first, *rest = modules
        values = map_nodes(lambda rows: linear(rows, first.weight), x)
        values = self_sums(values, self.eps, first.bias, batch.row_ptr, batch.col)
        return nn.Sequential(*rest)(values)


class GATLayer(AggregationLayer, GATConv):
    """PyTorch Geometric's GATConv on the symmetric adjacency, without storing values per edge."""

    def aggregate(self, values: Tensor, batch: Batch) -> Tensor:
        # one product for the scores of all heads: each head has zeros in the columns of the others
        heads = torch.eye(self.heads, dtype=values.dtype, device=values.device)
        weights = torch.cat([self.att_src, self.att_dst])  # [2, H, c]
        joint = (heads[:, :, None] * weights[:, None]).reshape(2 * self.heads, -1)
        sent, met = nn.functional.linear(values, joint).split(self.heads, 1)
        place = batch.row_ptr, batch.col
        return additive_attention(values, sent, met, *place, self.negative_slope) + self.bias


class BatchNorm(nn.BatchNorm1d):
    """PyTorch's batch normalisation, optionally followed by a ReLU or PReLU, and by dropout.

    A single row has no variance and is normalised by the running statistics.
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    momentum: float

    def __init__(
        self, width: int, after: type[nn.Module] = nn.Identity, dropout: float = 0.0
    ) -> None:
        super().__init__(width)
        if after not in (nn.Identity, nn.ReLU, nn.PReLU):
            raise ValueError(
                f"A ReLU or PReLU may follow batch normalisation, got {after.__name__}."
            )
        self.after, self.dropout = after(), dropout

    def forward(self, input: Tensor) -> Tensor:
        drop = self.dropout if self.training else 0.0
        if len(input) == 1 or not self.training:
            normalised = nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
            return apply_dropout(self.after(normalised), drop)
        slope = self.after.weight if isinstance(self.after, nn.PReLU) else None
        out, mean, variance = batch_norm(
            input,
            self.weight,
            self.bias,
            self.eps,
            isinstance(self.after, nn.ReLU),
            slope,
            drop,
            _dropout_seed() if drop else 0,
        )
        self._update_running(mean, variance, len(input))
        return out

    def normalise_shared(self, features: SharedFeatures) -> SharedFeatures:
        """Normalise shared features, in which a row of the table counts as often as it is used.

        The features must not need a gradient, and no activation or dropout may follow.
        """
        table, rows = features.table, len(features.rows)
        if rows == 1 or not self.training:
            return SharedFeatures(self(table), features.rows)
        assert isinstance(self.after, nn.Identity)
        assert not self.dropout
        with torch.no_grad():
            counts = torch.bincount(features.rows, minlength=len(table)).to(table)
            mean = counts @ table / rows
            centred = table - mean
            variance = counts @ centred.square() / rows
        self._update_running(mean, variance, rows)
        factor = self.weight * (variance + self.eps).rsqrt()
        return SharedFeatures(torch.addcmul(self.bias, centred, factor), features.rows)

    def _update_running(self, mean: Tensor, variance: Tensor, rows: int) -> None:
        """Move the running statistics towards the mean and biased variance of so many rows."""
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * rows / (rows - 1), self.momentum)
            self.num_batches_tracked.add_(1)


class Dropout(nn.Dropout):
    """Dropout whose mask is hashed from one random seed and the index of every entry."""

    def forward(self, input: Tensor) -> Tensor:
        return apply_dropout(input, self.p if self.training else 0.0)


def apply_dropout(x: Tensor, share: float) -> Tensor:
    """Drop a share of the entries of x [..., c], by a seed from PyTorch's generator."""
    return dropout(x, share, _dropout_seed()) if share else x


def _dropout_seed() -> int:
    return int(torch.randint(2**63 - 1, ()))


class GCNEncoder(nn.Module):
    """A stack of GCN layers, each followed by optional batch normalisation, activation and dropout.

    ``last``: whether these also follow the last layer. The forward pass returns the states after
    every layer, [N, hidden] each.
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

    def forward(self, x: Features, batch: Batch) -> list[Tensor]:
        return self.from_transformed(batch.with_features(self.transform(x)))

    def transform(self, features: Features) -> Features:
        """Apply the first layer's linear map to features."""
        return map_features(gcn_layer(self.layers, 0).transform, features)

    def from_transformed(self, batch: Batch) -> list[Tensor]:
        """Return the states after every layer, for features that ``transform`` was applied to."""
        states = [self.after[0](gcn_layer(self.layers, 0).aggregate(batch.x, batch))]
        for layer, after in list(zip(self.layers, self.after, strict=True))[1:]:
            states.append(after(layer(states[-1], batch)))
        return states


def gcn_layer(layers: nn.ModuleList, number: int) -> GCNLayer:
    """Return one of several GCN layers with its type."""
    layer = layers[number]
    assert isinstance(layer, GCNLayer)
    return layer
