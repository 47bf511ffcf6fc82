"""GAT: Velickovic et al.'s attention; see :mod:`artlas_paper.methods.supervised`."""

from __future__ import annotations

from torch import nn

from artlas_paper.methods.layers import GATLayer
from artlas_paper.methods.supervised import Supervised


class Gat(Supervised):
    """Layers of attention, with four heads that share the width, read out by their means."""

    name = "gat"

    def layer(self, width: int) -> nn.Module:
        heads = 4 if self.config.hidden % 4 == 0 else 1
        return GATLayer(width, self.config.hidden // heads, heads=heads)
