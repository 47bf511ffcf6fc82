"""From energies and couplings to the vectors that downstream tasks use."""

from __future__ import annotations

import torch
from torch import Tensor

from artlas.method.config import ArtConfig

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


BLOCKS = ("x", "ax", "x_ax", "x_lx")  # of z+: X, AX, X o AX, X o LX with L = deg - A


def feature_names(config: ArtConfig, representation: str, width: int) -> list[str]:
    """The names of the columns of a representation of graphs with ``width`` features a node.

    Graphs without features have one in their place.
    """
    check_representation(representation)
    columns, roles = range(max(width, 1)), [f"role_{a}" for a in range(config.roles)]
    if representation == "plus-no-roles":
        return [f"{block}_{j}" for block in BLOCKS for j in columns]
    if representation == "plus":
        if config.pooling == "each":
            roles = [f"base_{k}_{role}" for k in range(config.bases) for role in roles]
        return [f"{role}_{block}_{j}" for block in BLOCKS for role in roles for j in columns]
    names = []
    if representation in ("paper", "coordinates"):
        names += [f"q_{k}" for k in range(config.bases)]
    if representation in ("paper", "features"):
        names += [f"{role}_x_{j}" for role in roles for j in columns]
    return names
