"""The relational discrepancy of tiny structures to rounding, and a lower bound for any size.

A structure is (A, mu): a symmetric relation [n, n] in [0, 1] and its measure [n].
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
from numpy.typing import NDArray

Structure = tuple[NDArray[np.float64], NDArray[np.float64]]
NEGATIVE = -1e-10  # an entry of a coupling below this is not feasible


def distortion(A, B, T) -> float:
    """The four-index sum of (A_ij - B_ab)^2 T_ia T_jb."""
    difference = A[:, :, None, None] - B[None, None]
    return float(np.einsum("ijab,ia,jb->", difference**2, T, T))


@functools.cache
def supports(n: int, m: int) -> NDArray[np.bool_]:
    """Every n x m pattern without an empty row or column: the faces that couplings can have."""
    every = np.array(list(itertools.product([False, True], repeat=n * m))).reshape(-1, n, m)
    return every[every.any(1).all(1) & every.any(2).all(1)].reshape(-1, n * m)


def minimal_energy(first: Structure, second: Structure) -> float:
    r"""The least energy over all couplings.

    The energy is a quadratic, in general neither convex nor concave. At a minimum T is stationary
    on the face of the polytope in whose relative interior it lies. So every face is tried: the
    stationary points on its affine hull solve a linear system (T = 0 off the support, equal
    marginals, gradient = row and column multipliers on it). Where they are not unique the energy is
    the same on all of them, and those in the face reach a smaller face, where they are found.
    """
    (A, mu), (B, nu) = first, second
    n, m = len(mu), len(nu)
    gradient = -4 * np.kron(A, B)  # of -2 <A T, T B> in T, rows of T one after the other
    rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    equal = np.concatenate([rows, columns])
    faces = supports(n, m)
    size = n * m + n + m
    system = np.zeros((len(faces), size, size))
    system[:, : n * m, : n * m] = np.where(faces[:, :, None], gradient, np.eye(n * m))
    system[:, : n * m, n * m :] = np.where(faces[:, :, None], equal.T, 0)
    system[:, n * m :, : n * m] = equal
    wanted = np.concatenate([np.zeros(n * m), mu, nu])
    found = np.linalg.pinv(system, rcond=1e-12) @ wanted
    solved = np.abs(np.einsum("fij,fj->fi", system, found) - wanted).max(1) < 1e-9
    plans = found[:, : n * m]
    plans = plans[solved & (plans.min(1) > NEGATIVE)].reshape(-1, n, m)
    cross = np.einsum("fia,ij,fjb,ab->f", plans, A, plans, B, optimize=True)
    constant = mu @ A**2 @ mu + nu @ B**2 @ nu
    return float(max((constant - 2 * cross).min(), 0))


def discrepancy(first: Structure, second: Structure) -> float:
    """d, the root of the least energy."""
    return minimal_energy(first, second) ** 0.5


def least_energy_bound(first: Structure, second: Structure) -> float:
    r"""A value that the energy of no coupling is below, for any size (Mémoli's third lower bound).

    .. math:: \min_T \sum_{ia} T_{ia} \min_S \sum_{jb} (A_{ij} - B_{ab})^2 S_{jb}

    over couplings T and S: the inner problem is of distributions on a line, the outer one linear.
    """
    import ot

    (A, mu), (B, nu) = first, second
    n, m = len(mu), len(nu)
    rows, columns = np.repeat(A.T, m, axis=1), np.tile(B.T, n)  # [n, n m] and [m, n m]
    cost = ot.wasserstein_1d(rows, columns, mu, nu, p=2).reshape(n, m)
    return float(ot.emd2(mu, nu, cost))
