r"""Functions of the energies :math:`e_k(G)` [G, K]: coordinates, responsibilities, coverage."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from artlas.kernels.structure import Structure


def coordinates(energies: Tensor) -> Tensor:
    r""":math:`q_k(G) = \sqrt{e_k(G)}`, [G, K]."""
    return energies.clamp_min(0).sqrt()


def responsibilities(energies: Tensor, temperature: float) -> Tensor:
    r""":math:`w_k(G) = \mathrm{softmax}_k(-e_k / \tau_E)`, [G, K]."""
    return torch.softmax(-energies / temperature, -1)


def coverage(energies: Tensor, temperature: float) -> Tensor:
    r"""The normalised soft-min over bases, [G]; the pretraining loss is its mean.

    .. math:: \ell(G) = -\tau_m \log\Big[\tfrac 1 K \sum_k \exp(-e_k / \tau_m)\Big]

    energies: [G, K]; :math:`\min_k e_k \le \ell \le \min_k e_k + \tau_m \log K`.
    """
    if not temperature > 0:
        raise ValueError(f"The coverage temperature must be positive, got {temperature!r}.")
    bases = energies.shape[-1]
    return -temperature * (torch.logsumexp(-energies / temperature, -1) - math.log(bases))


def independent_energy(structure: Structure, relations: Tensor) -> Tensor:
    r"""Energies of the independent coupling :math:`\mu \nu^\top`, [G, K]: alignment's baseline.

    .. math:: \mu^\top A \mu + \nu^\top B^2 \nu - 2\, (\mu^\top A \mu)(\nu^\top B \nu)
    """
    inner = structure.self_energy.to(relations.dtype)[:, None]
    return inner + (relations**2).mean((1, 2)) - 2 * inner * relations.mean((1, 2))
