"""GCN: the graph convolutional network of Kipf and Welling.

"Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017. The layers are
trained on the labels of the sources and then frozen; see :mod:`artlas_paper.methods.supervised`.
"""

from __future__ import annotations

from torch import nn

from artlas_paper.methods.layers import GCNLayer
from artlas_paper.methods.supervised import Supervised


class GCN(Supervised):
    """Graph convolutions, read out by means over the nodes."""

    name = "gcn"

    def layer(self, width: int) -> nn.Module:
        return GCNLayer(width, self.config.hidden)
