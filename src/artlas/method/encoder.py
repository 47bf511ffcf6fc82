"""The structure-only graph encoder: degrees in, node embeddings out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from artlas import kernels
from artlas.graphs.measure import normalised_degree
from artlas.kernels.structure import Structure


class GINLayer(nn.Module):
    r"""One residual GIN layer.

    .. math:: h'_i = \mathrm{LayerNorm}\Big(h_i
        + \mathrm{MLP}\big((1 + \epsilon) h_i + \sum_{j \sim i} h_j\big)\Big)

    The paper says "two-layer GIN"; residual, LayerNorm and the learnable :math:`\epsilon` are the
    authors' published choice. h: [N, D].
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.epsilon = nn.Parameter(torch.zeros(1))
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, h: Tensor, summed: Tensor) -> Tensor:
        """Return the next h, from h and its sum over neighbours."""
        gathered = (1 + self.epsilon) * h + summed
        return self.norm(h + self.outer(torch.relu(self.inner(gathered))))


class Encoder(nn.Module):
    r"""Normalised degree to node embeddings, :math:`U = \mathrm{GIN}(A, X_s)`, [N, D]."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self._packed: tuple[Any, Any] | None = None  # the weights as compiled code reads them
        self.lift = nn.Linear(1, width)
        self.layers = nn.ModuleList(GINLayer(width) for _ in range(layers))

    def forward(self, structure: Structure) -> Tensor:
        x = normalised_degree(structure.degree.to(structure.dtype), structure.node_ptr)
        h = torch.relu(self.lift(x.unsqueeze(1)))
        for layer in self.layers:
            h = layer(h, kernels.on(h).neighbour_sum(h, structure))
        return h

    def project(self, structure: Structure, projection: Tensor) -> Tensor:
        r""":math:`U W_G`, [N, D], with projection [D, D] stored as in ``nn.Linear``.

        Without gradients this is one pass of compiled code, if it is installed. The bits of a
        node's row then depend on its own graph alone.
        """
        native = kernels.native_for(projection)
        if native is None or torch.is_grad_enabled():
            return self(structure) @ projection.T
        state = kernels.state_of((*self.parameters(), projection))
        if self._packed is None or self._packed[0] != state:
            self._packed = state, native.pack_encoder(self, projection)
        x = normalised_degree(structure.degree.to(structure.dtype), structure.node_ptr)
        return native.encode(self._packed[1], projection.shape[0], structure, x)
