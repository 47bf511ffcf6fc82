r"""What GCN, GAT and GIN share: conventional networks, trained by the labels of the sources.

The paper gives their sizes (three layers of 64, vectors of 192; 128 wide at node level) and their
optimiser, but not what they learn from. Such networks have no objective but labels, so every source
domain has a linear classifier of its own, which is discarded:

.. math:: \mathcal L = \frac1G \sum_g CE(W_{d(g)} h_g + b_{d(g)},\, y_g), \quad
    h_g = [\,p(h^{(1)}) \,\|\, p(h^{(2)}) \,\|\, p(h^{(3)})\,]

p is the mean over the nodes; GIN's is the sum, as its authors have it. Graphs without a label count
for nothing. The frozen vector is h.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from artlas.errors import raise_graph_error
from artlas_paper.methods.base import Baseline
from artlas_paper.methods.batch import Batch, Shared, entering
from artlas_paper.methods.layers import AggregationLayer


class Supervised(Baseline):
    """Layers, joint read-out, one classifier a domain."""

    pooling: ClassVar[Literal["mean", "sum"]] = "mean"
    rectified: ClassVar[bool] = False  # whether layers end with a ReLU of their own

    def layer(self, width: int) -> nn.Module:
        """A layer that takes vectors of this width."""
        raise NotImplementedError

    def build(self) -> None:
        config = self.config
        widths = [config.features] + [config.hidden] * (config.layers - 1)
        self.convolutions = nn.ModuleList(map(self.layer, widths))
        joined = config.hidden * config.layers
        self.heads = nn.ModuleList(nn.Linear(joined, max(n, 1)) for n in config.domains)

    def loss(self, batch: Batch) -> Tensor:
        assert batch.y is not None
        if not (batch.y >= 0).any():
            raise_graph_error(
                f"{self.name} learns from the labels of its sources",
                "graphs without labels",
                "pass labelled sources, or choose a method that needs none",
            )
        pooled = self._pooled(batch)
        total = pooled.new_zeros(())
        for number, head in enumerate(self.heads):
            own = (batch.domain == number) & (batch.y >= 0)
            if own.any():
                total = total + nn.functional.cross_entropy(
                    head(pooled[own]), batch.y[own], reduction="sum"
                )
        return total / (batch.y >= 0).sum()

    def _pooled(self, batch: Batch) -> Tensor:
        """The vectors of graphs, [G, 3 hidden], of few at a time unless a layer looks at all."""
        first = self.convolutions[0]
        if not isinstance(first, AggregationLayer):
            return self._joined(batch, self._layers(batch.features, batch))
        parts = batch.with_x(entering(first.enter, batch.features)).parts(self.config.hidden)
        return torch.cat([self._joined(part, self._after_first(part)) for part in parts])

    def _joined(self, batch: Batch, states: Iterable[Tensor]) -> Tensor:
        return torch.cat([self.pool(batch, x) for x in states], 1)

    def _after_first(self, batch: Batch) -> list[Tensor]:
        """The states of nodes after every layer, where features are what the first maps them to."""
        first = self.convolutions[0]
        assert isinstance(first, AggregationLayer)
        x = torch.relu(first.aggregate(batch.x, batch))
        return [x, *self._layers(x, batch, 1)]

    def _layers(self, x: Tensor | Shared, batch: Batch, begin: int = 0) -> list[Tensor]:
        """The states of nodes after every layer from one on."""
        found: list[Tensor] = []
        for layer in self.convolutions[begin:]:
            made: Tensor = layer(x, batch)
            x = made if self.rectified else torch.relu(made)
            found.append(x)
        return found

    def states(self, batch: Batch) -> Tensor:
        return torch.cat(self._layers(batch.features, batch), 1)

    def pool(self, batch: Batch, states: Tensor) -> Tensor:
        return batch.sum_pool(states) if self.pooling == "sum" else batch.mean_pool(states)
