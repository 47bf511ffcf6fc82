"""GAT: the graph attention network of Veličković et al.

"Graph Attention Networks", ICLR 2018. The layers are trained on the labels of the sources and then
frozen; see :mod:`artlas_paper.methods.supervised`.
"""

from __future__ import annotations

from torch import nn

from artlas_paper.methods.layers import GATLayer
from artlas_paper.methods.supervised import Supervised


class GAT(Supervised):
    """Attention layers whose width is divided among four heads, read out by means over nodes."""

    name = "gat"

    def layer(self, width: int) -> nn.Module:
        heads = 4 if self.config.hidden % 4 == 0 else 1
        return GATLayer(width, self.config.hidden // heads, heads=heads)
