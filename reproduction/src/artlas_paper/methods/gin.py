"""GIN: Xu et al.'s sums of neighbours; see :mod:`artlas_paper.methods.supervised`."""

from __future__ import annotations

from torch import nn

from artlas_paper.methods.layers import BatchNorm, GINLayer, Linear
from artlas_paper.methods.supervised import Supervised


class Gin(Supervised):
    """Batch normalisation in the perceptrons, learned eps, read out by sums as in its paper."""

    name = "gin"
    pooling = "sum"
    rectified = True

    def layer(self, width: int) -> nn.Module:
        hidden = self.config.hidden
        inner = nn.Sequential(
            Linear(width, hidden), BatchNorm(hidden, nn.ReLU), Linear(hidden, hidden, rectify=True)
        )
        return GINLayer(inner, train_eps=True)
