"""The method written plainly: dense, one (graph, base) pair at a time, unrolled, float64 autograd.

The kernels are tested against this file, so it shares no code with them. A graph is (A, mu): its
dense adjacency [n, n] and its node measure [n]; the role measure is uniform, nu = 1 / M.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Graph = tuple[Tensor, Tensor]


def coupling(logits: Tensor, mu: Tensor, steps: int) -> Tensor:
    """Log-domain Sinkhorn of logits [n, M], updated in full: rows first, then columns."""
    log_T = logits
    log_mu = mu.log()[:, None]
    log_nu = -torch.log(torch.tensor(float(logits.shape[1]), dtype=logits.dtype))
    for _ in range(steps):
        log_T = log_T + log_mu - torch.logsumexp(log_T, dim=1, keepdim=True)
        log_T = log_T + log_nu - torch.logsumexp(log_T, dim=0, keepdim=True)
    return log_T.exp()


def round_to_polytope(T: Tensor, mu: Tensor) -> Tensor:
    """The nearby coupling with exact marginals: shrink the rows, then add what is missing."""
    nu = torch.full((T.shape[1],), 1 / T.shape[1], dtype=T.dtype)
    T = T * torch.clamp(mu / T.sum(1), max=1)[:, None]
    row_missing = torch.clamp(mu - T.sum(1), min=0)
    column_missing = torch.clamp(nu - T.sum(0), min=0)
    return T + torch.outer(row_missing, column_missing) / torch.clamp(row_missing.sum(), min=1e-8)


def energy_four_index(A: Tensor, B: Tensor, T: Tensor) -> Tensor:
    """sum_ijab (A_ij - B_ab)^2 T_ia T_jb, term by term; for small graphs."""
    difference = A[:, :, None, None] - B[None, None, :, :]
    return torch.einsum("ijab,ia,jb->", difference.square(), T, T)


def energy(A: Tensor, B: Tensor, T: Tensor, mu: Tensor) -> Tensor:
    """The same for a binary A and a feasible T, expanded: chi_A + chi_B - 2 <A T, T B>."""
    nu = 1 / B.shape[0]
    return mu @ A @ mu + B.square().sum() * nu**2 - 2 * ((A @ T) * (T @ B)).sum()


def relational_energy(A: Tensor, B: Tensor, T: Tensor) -> Tensor:
    """The four-index sum in closed form for any A, B and T; mu and nu are T's own marginals."""
    mu, nu = T.sum(1), T.sum(0)
    constant = mu @ _squared(A) @ mu + nu @ B**2 @ nu
    return constant - 2 * ((A @ T) * (T @ B)).sum()


class Decomposition(NamedTuple):
    """What a coupling explains of a relation, and what it cannot; their sum is the energy."""

    distance: Tensor
    variance: Tensor


def decompose_energy(A: Tensor, B: Tensor, T: Tensor) -> Decomposition:
    """The energy as the distance of B from A carried to the roles, and A's variance within them."""
    mu, nu = T.sum(1), T.sum(0)
    weight = nu[:, None] * nu
    carried = T.T @ (A @ T) / weight
    variance = mu @ _squared(A) @ mu - (carried**2 * weight).sum()
    return Decomposition((weight * (B - carried) ** 2).sum(), variance)


def _squared(A: Tensor) -> Tensor:
    return A.to_dense() ** 2 if A.layout != torch.strided else A**2


def logits(Q: Tensor, R: Tensor, scale: float, clamp: float | None) -> Tensor:
    """Scaled dot products of nodes [n, D] and roles [M, D], clamped if asked: [n, M]."""
    product = scale * Q @ R.T
    return product if clamp is None else product.clamp(-clamp, clamp)


def couplings(
    Q: Tensor, R: Tensor, graphs: Sequence[Graph], scale: float, clamp: float | None, steps: int
) -> list[Tensor]:
    """Rounded couplings of every graph with every base, [K, n, M] each; Q [N, D], R [K, M, D]."""
    rows = Q.split([len(mu) for _, mu in graphs])
    return [
        torch.stack(
            [round_to_polytope(coupling(logits(q, r, scale, clamp), mu, steps), mu) for r in R]
        )
        for q, (_, mu) in zip(rows, graphs, strict=True)
    ]


def energies(
    Q: Tensor,
    R: Tensor,
    B: Tensor,
    graphs: Sequence[Graph],
    scale: float,
    clamp: float | None,
    steps: int,
) -> Tensor:
    """Energies [G, K] of nodes Q [N, D] with bases of roles R [K, M, D], relations B [K, M, M]."""
    T = couplings(Q, R, graphs, scale, clamp, steps)
    rows = [
        torch.stack([energy(A, b, t, mu) for b, t in zip(B, T_g, strict=True)])
        for (A, mu), T_g in zip(graphs, T, strict=True)
    ]
    return torch.stack(rows).clamp(min=0)
