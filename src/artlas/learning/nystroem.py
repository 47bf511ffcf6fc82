"""Kernel ridge regression of many rows, through their kernel with a sample of them (Nyström)."""

from __future__ import annotations

import torch
from torch import Tensor

from artlas.learning.block_kernel import BlockKernel
from artlas.learning.kernel_ridge import RIDGES, RidgeFit, least, squared_loss

_CHUNK = 2048
_ROUNDING = 1e-6  # of the kernel in float32, relative to its diagonal


def fit(
    kernel: BlockKernel, rows: Tensor, targets: Tensor, weights: Tensor, ridge: float | None = None
) -> tuple[RidgeFit, Tensor]:
    r"""Fit to rows [n, D], targets [n, C] and positive weights [n]; return nearest kernels [n] too.

    As in :mod:`artlas.learning.kernel_ridge`, but f is a combination of the kernels of the m
    anchors only: linear in :math:`\phi(v) = L^{-1} k(v)` with :math:`L L^T` the anchors' kernel.
    Centred by the weighted means, :math:`U \Lambda U^T = \tilde\Phi^T W \tilde\Phi` and
    :math:`Z = \tilde\Phi U` give the residual of row i when it is left out, intercept included:
    :math:`r_i / (1 - h_i)`,
    :math:`h_i = w_i / \sum w + w_i \sum_j z_{ij}^2 / (\Lambda_j + \lambda)`.
    The anchors stay the same for it. Nearest: every row's largest kernel with an anchor.
    """
    factor = _factor(kernel.gram())
    features, nearest = _features(kernel, rows, factor)
    parts = [slice(start, start + _CHUNK) for start in range(0, len(rows), _CHUNK)]
    total, count = weights.sum(), features.shape[1]
    mean, covariance = torch.zeros(count).double(), torch.zeros(count, count).double()
    for part in parts:
        mean += weights[part] @ features[part].double() / total
    for part in parts:
        centred = features[part].double() - mean
        covariance += centred.T @ (weights[part, None] * centred)
    values, vectors = torch.linalg.eigh(covariance)
    del covariance
    centre = weights @ targets / total
    inner = torch.zeros(count, targets.shape[1]).double()
    for part in parts:
        rotated = (features[part].double() - mean).float() @ vectors.float()
        inner += rotated.double().T @ (weights[part, None] * (targets[part] - centre))
        features[part] = rotated
    values = values.clamp(min=0)

    def solve(ridge: float) -> tuple[Tensor, Tensor]:
        shrunk = 1 / (values + ridge)
        weight = shrunk[:, None] * inner
        left_out = torch.empty_like(targets)
        for part in parts:
            rotated = features[part].double()
            leverage = weights[part] * (1 / total + rotated.square() @ shrunk)
            residual = targets[part] - centre - rotated @ weight
            left_out[part] = targets[part] - residual / (1 - leverage)[:, None]
        return weight, left_out

    if ridge is None:
        tried = RIDGES[::-1]
        losses = [squared_loss(targets, solve(each)[1], weights) for each in tried]
        ridge = tried[least(losses)]
    weight, left_out = solve(ridge)
    weight = vectors @ weight
    coefficients = torch.linalg.solve_triangular(factor.T, weight, upper=True)
    return RidgeFit(coefficients, centre - mean @ weight, ridge, left_out), nearest


def _factor(gram: Tensor) -> Tensor:
    """Factor the anchors' kernel, whose smallest eigenvalues rounding may have made negative."""
    matrix, jitter = gram.double(), _ROUNDING
    while True:
        matrix.diagonal().add_(jitter)
        factor, failed = torch.linalg.cholesky_ex(matrix)
        if not failed:
            return factor
        jitter *= 10


def _features(kernel: BlockKernel, rows: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    features, nearest = torch.empty(len(rows), len(factor)), torch.empty(len(rows))
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        near = kernel.cross(rows[part])
        nearest[part] = near.amax(1)
        features[part] = torch.linalg.solve_triangular(factor, near.double().T, upper=False).T
    return features, nearest
