"""The relational atlas: K learnable bases of M roles, and the embeddings of their roles."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from artlas.method.config import ArtConfig


class Atlas(nn.Module):
    r"""K relations :math:`B_k = \mathrm{Hollow}[\sigma((Z_k + Z_k^\top) / 2)]`, Z ~ N(0, 1).

    ``frozen`` excludes Z from training; ``tied`` shares one Z among all K bases; with ``diagonal``
    the relations are not hollow.
    logits Z: [K, M, M], or [1, M, M] when tied.
    """

    logits: Tensor
    mask: Tensor

    def __init__(self, config: ArtConfig) -> None:
        super().__init__()
        self.bases = config.bases
        slots = 1 if config.atlas == "tied" else config.bases
        logits = torch.randn(slots, config.roles, config.roles)
        if config.atlas == "frozen":
            self.register_buffer("logits", logits)
        else:
            self.logits = nn.Parameter(logits)
        mask = torch.ones(config.roles, config.roles)
        if not config.diagonal:
            mask.fill_diagonal_(0)
        self.register_buffer("mask", mask, persistent=False)

    def relations(self) -> Tensor:
        """B, [K, M, M]: symmetric, in [0, 1), hollow unless ``diagonal`` is set."""
        symmetric = (self.logits + self.logits.transpose(1, 2)) / 2
        return (torch.sigmoid(symmetric) * self.mask).expand(self.bases, -1, -1)


class RoleEncoder(nn.Module):
    r"""The shared row-wise MLP, :math:`R_k(a, :) = \mathrm{BaseEnc}(B_k(a, :))`.

    relations [K, M, M] to role embeddings [K, M, D].
    """

    def __init__(self, roles: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(roles, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
        )

    def forward(self, relations: Tensor) -> Tensor:
        return self.layers(relations)
