"""Encoders on PyTorch Geometric's layers, which take a batch instead of a list of edges."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from artlas.baselines.batch import Batch

try:
    from torch_geometric.nn import GATConv, GCNConv, GINConv
except ImportError as error:
    raise ImportError(
        "Baselines are built on PyTorch Geometric's layers, which are not installed. "
        "To fix this: pip install 'artlas[pyg]'"
    ) from error


class GCNLayer(GCNConv):
    """PyTorch Geometric's GCNConv, on the symmetric adjacency of a batch: the same result."""

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        return batch.propagate(self.lin(x)) + self.bias


class GINLayer(GINConv):
    """PyTorch Geometric's GINConv, likewise."""

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        return self.nn(batch.neighbour_sums(x) + (1 + self.eps) * x)


class GATLayer(GATConv):
    """PyTorch Geometric's GATConv; attention needs the edges one by one."""

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        return super().forward(x, batch.edge_index)


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
                parts = [nn.BatchNorm1d(hidden)] if norm else []
                parts += [activation(), nn.Dropout(dropout)]
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
