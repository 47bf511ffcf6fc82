"""GIN: the graph isomorphism network of Xu et al.

"How Powerful are Graph Neural Networks?", ICLR 2019. The layers are trained on the labels of the
sources and then frozen; see :mod:`artlas_paper.methods.supervised`.
"""

from __future__ import annotations

from torch import nn

from artlas_paper.methods.layers import BatchNorm, GINLayer, Linear
from artlas_paper.methods.supervised import Supervised


class GIN(Supervised):
    """Sums of neighbours with learned eps and batch-normalised perceptrons, read out by sums."""

    name = "gin"
    pooling = "sum"
    rectified = True

    def layer(self, width: int) -> nn.Module:
        hidden = self.config.hidden
        perceptron = nn.Sequential(
            Linear(width, hidden), BatchNorm(hidden, nn.ReLU), Linear(hidden, hidden, rectify=True)
        )
        return GINLayer(perceptron, train_eps=True)
