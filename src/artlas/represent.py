"""From energies and couplings to the vectors that downstream tasks use."""

from __future__ import annotations

import torch
from torch import Tensor

REPRESENTATIONS = ("paper", "coordinates", "features", "plus", "plus-no-roles")


def coordinates(energies: Tensor) -> Tensor:
    r""":math:`q_k(G) = \sqrt{e_k(G)}`, [G, K]."""
    return energies.clamp_min(0).sqrt()


def responsibilities(energies: Tensor, temperature: float) -> Tensor:
    r""":math:`w_k(G) = \mathrm{softmax}_k(-e_k / \tau_E)`, [G, K]."""
    return torch.softmax(-energies / temperature, -1)


def compose(representation: str, energies: Tensor, transported: Tensor | None) -> Tensor:
    r""":math:`z(G) = [q(G) \,\|\, \mathrm{vec}\, H(G)]`, role by role, or one of its two parts.

    energies [G, K], transported H [G, M, d] to [G, K + M d].
    """
    parts = []
    if representation in ("paper", "coordinates"):
        parts.append(coordinates(energies))
    if representation in ("paper", "features"):
        assert transported is not None
        parts.append(transported.flatten(1))
    return torch.cat(parts, 1)


def check_representation(name: str) -> None:
    if name not in REPRESENTATIONS:
        raise ValueError(
            f"Unknown representation {name!r}. Choose one of {', '.join(REPRESENTATIONS)}."
        )
