r"""The supervised baselines GCN, GAT and GIN: message passing trained on the sources' labels.

The paper gives their sizes (three layers of 64, vectors of 192; 128 wide at node level) and their
optimiser, but not their objective. Labels are the only objective that such networks have, so every
source domain has a linear classifier of its own:

.. math:: \mathcal L = \frac1G \sum_g CE(W_{d(g)} h_g + b_{d(g)},\, y_g), \quad
    h_g = [\,p(h^{(1)}) \,\|\, p(h^{(2)}) \,\|\, p(h^{(3)})\,]

p is the mean over the nodes; for GIN it is the sum, as in its paper. Graphs without a label do not
count. Layers and classifiers are trained; the classifiers are then discarded, and the layers are
frozen. The frozen vector of a graph is h.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor, nn

from artlas.errors import raise_graph_error
from artlas_paper.methods.base import Baseline
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import AggregationLayer
from artlas_paper.methods.shared_features import Features, map_features


class Supervised(Baseline):
    """Message-passing layers, a read-out that joins them, and one linear classifier per domain."""

    rectified: ClassVar[bool] = False  # whether layers end with a ReLU of their own

    def layer(self, width: int) -> nn.Module:
        """Create a layer with inputs of this width."""
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
        pooled = self._graph_vectors(batch)
        total = pooled.new_zeros(())
        for number, head in enumerate(self.heads):
            own = (batch.domain == number) & (batch.y >= 0)
            if own.any():
                total = total + nn.functional.cross_entropy(
                    head(pooled[own]), batch.y[own], reduction="sum"
                )
        return total / (batch.y >= 0).sum()

    def _graph_vectors(self, batch: Batch) -> Tensor:
        """Compute the vectors of graphs, [G, 3 hidden].

        GCN and GAT compute those of a few graphs at a time; GIN's batch normalisation needs all.
        """
        first = self.convolutions[0]
        if not isinstance(first, AggregationLayer):
            return self._join(batch, self._layer_states(batch.features, batch))
        transformed = batch.with_features(map_features(first.transform, batch.features))
        parts = transformed.split(self.config.hidden)
        return torch.cat([self._join(part, self._from_transformed(part)) for part in parts])

    def _join(self, batch: Batch, states: Iterable[Tensor]) -> Tensor:
        return torch.cat([self.pool(batch, x) for x in states], 1)

    def _from_transformed(self, batch: Batch) -> list[Tensor]:
        """Return the states after every layer, given the first layer's linear map of features."""
        first = self.convolutions[0]
        assert isinstance(first, AggregationLayer)
        x = torch.relu(first.aggregate(batch.x, batch))
        return [x, *self._layer_states(x, batch, 1)]

    def _layer_states(self, x: Features, batch: Batch, begin: int = 0) -> list[Tensor]:
        """Return the states of nodes after every layer from the given one on."""
        states: list[Tensor] = []
        for layer in self.convolutions[begin:]:
            out: Tensor = layer(x, batch)
            x = out if self.rectified else torch.relu(out)
            states.append(x)
        return states

    def states(self, batch: Batch) -> Tensor:
        return torch.cat(self._layer_states(batch.features, batch), 1)
