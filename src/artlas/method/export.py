"""Export the learned part of the model, as plain tensor operations, with ``torch.export``."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from artlas.method.model import ART


class Logits(nn.Module):
    r"""Encoder, roles and logits :math:`L_k = (U W_G)(R_k W_B)^\top / \sqrt{D_h}` of a model.

    x [N]: the normalised degree of every node; source, target int64 [nnz]: both directions of every
    edge, in one graph or several; returns [K, N, M]. Sinkhorn at ``model.config.temperature`` turns
    these logits into couplings.
    """

    relations: Tensor

    def __init__(self, model: ART) -> None:
        super().__init__()
        self.encoder, self.role_encoder = model.encoder, model.role_encoder
        self.node_projection, self.role_projection = model.node_projection, model.role_projection
        self.register_buffer("relations", model.atlas.relations().detach().contiguous())
        self.scale = model.config.hidden**-0.5

    def forward(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        h = torch.relu(self.encoder.lift(x.unsqueeze(1)))
        for layer in self.encoder.layers:
            h = layer(h, torch.zeros_like(h).index_add(0, source, h.index_select(0, target)))
        roles = self.role_projection(self.role_encoder(self.relations))  # [K, M, D]
        return self.scale * torch.matmul(self.node_projection(h), roles.transpose(1, 2))


def export(model: ART) -> torch.export.ExportedProgram:
    """Export the logits, for any number of nodes and edges, for ``torch.export.save``."""
    weight = model.node_projection.weight
    ends = torch.tensor([0, 1, 1, 2], device=weight.device), torch.tensor([1, 0, 2, 1])
    example = torch.ones(3).to(weight), ends[0], ends[1].to(weight.device)
    nodes, entries = torch.export.Dim("nodes", min=1), torch.export.Dim("entries", min=0)
    shapes = {"x": {0: nodes}, "source": {0: entries}, "target": {0: entries}}
    return torch.export.export(Logits(model).eval(), example, dynamic_shapes=shapes)
