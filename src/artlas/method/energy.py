"""Relational energies and the coverage they make: closed forms on any device and dtype."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from artlas.kernels.structure import Structure


def relational_energy(relation: Tensor, base: Tensor, coupling: Tensor) -> Tensor:
    r"""The squared relational distortion of a coupling, without the four-index sum.

    .. math:: \mathcal E(A, B; T) = \sum_{ij} A_{ij}^2 \mu_i \mu_j + \sum_{ab} B_{ab}^2 \nu_a \nu_b
        - 2 \langle A T, T B \rangle_F

    :math:`\mu, \nu` are the coupling's own marginals, so that it holds for any T.
    relation A: [N, N], dense or sparse; base B: [M, M]; coupling T: [N, M]; both symmetric.
    """
    mu, nu = coupling.sum(1), coupling.sum(0)
    squared = relation.to_dense() ** 2 if relation.layout != torch.strided else relation**2
    constant = mu @ squared @ mu + nu @ base**2 @ nu
    return constant - 2 * ((relation @ coupling) * (coupling @ base)).sum()


class Decomposition(NamedTuple):
    """What a coupling explains of a relation, and what it cannot; their sum is the energy."""

    distance: Tensor
    variance: Tensor


def decompose_energy(relation: Tensor, base: Tensor, coupling: Tensor) -> Decomposition:
    r"""The fixed-coupling decomposition :math:`\mathcal E = \|B - \bar A_T\|_\nu^2 + \mathcal V`.

    :math:`\bar A_T = D_\nu^{-1} T^\top A T D_\nu^{-1}` is the relation carried to the roles, and
    :math:`\mathcal V \ge 0` its variance within them. Shapes as in :func:`relational_energy`.
    """
    mu, nu = coupling.sum(1), coupling.sum(0)
    weight = nu[:, None] * nu
    carried = coupling.T @ (relation @ coupling) / weight
    squared = relation.to_dense() ** 2 if relation.layout != torch.strided else relation**2
    variance = mu @ squared @ mu - (carried**2 * weight).sum()
    return Decomposition((weight * (base - carried) ** 2).sum(), variance)


def independent_energy(structure: Structure, relations: Tensor) -> Tensor:
    r"""Energies of the independent coupling :math:`\mu \nu^\top`, [G, K]: what alignment must beat.

    .. math:: \mu^\top A \mu + \nu^\top B^2 \nu - 2\, (\mu^\top A \mu)(\nu^\top B \nu)
    """
    inner = structure.self_energy.to(relations.dtype)[:, None]
    return inner + (relations**2).mean((1, 2)) - 2 * inner * relations.mean((1, 2))


def coverage(energies: Tensor, temperature: float) -> Tensor:
    r"""The normalised soft-min over bases, one value a graph: the pretraining loss is its mean.

    .. math:: \ell(G) = -\tau_m \log\Big[\tfrac 1 K \sum_k \exp(-e_k / \tau_m)\Big]

    energies: [G, K]; :math:`\min_k e_k \le \ell \le \min_k e_k + \tau_m \log K`.
    """
    if not temperature > 0:
        raise ValueError(f"The coverage temperature must be positive, got {temperature!r}.")
    bases = energies.shape[-1]
    return -temperature * (torch.logsumexp(-energies / temperature, -1) - math.log(bases))
