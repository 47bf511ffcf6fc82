"""GCN: Kipf and Welling's convolutions; see :mod:`artlas_paper.methods.supervised`."""

from __future__ import annotations

from torch import nn

from artlas_paper.methods.layers import GCNLayer
from artlas_paper.methods.supervised import Supervised


class Gcn(Supervised):
    """Layers of convolutions, read out by their means."""

    name = "gcn"

    def layer(self, width: int) -> nn.Module:
        return GCNLayer(width, self.config.hidden)
