"""How much every block of a kernel weighs: learned from the training rows, by leave-one-out."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from artlas.learning import kernel_ridge
from artlas.learning.block_kernel import BlockKernel, spread_out

POWERS = (0, 1, 2, 3)
SAMPLE = 600  # rows that weights and alignments are learned from
_LEAST = 1e-3  # of a weight, relative to the largest


def learned(kernel: BlockKernel, targets: Tensor, sample_weights: Tensor) -> BlockKernel:
    """Return the kernel with learned weights; targets [m, C] and sample_weights [m] of anchors."""
    if len(kernel.names) < 2:
        return kernel
    part = spread_out(len(targets), SAMPLE)
    weights = choose(grams_of(kernel, part), targets[part], sample_weights[part])
    return replace(kernel, weights=weights)


def choose(grams: Tensor, targets: Tensor, sample_weights: Tensor) -> tuple[float, ...]:
    r"""Choose weights :math:`w_b \propto a_b^p` of kernels [B, n, n], a being their alignments.

    The power p is the one of :data:`POWERS` whose ridge regression on targets [n, C] has the least
    leave-one-out loss; 0 stands for equal weights. Weights sum to one.
    """
    sizes = _alignments(grams, targets)
    shares = torch.ones_like(sizes)
    if (largest := float(sizes.max())) > 0:
        shares = (sizes / largest).clamp(min=_LEAST)
    candidates = []
    for power in POWERS:
        weights = shares**power / (shares**power).sum()
        gram = torch.einsum("b,bij->ij", weights.float(), grams)
        found = kernel_ridge.fit(gram, targets, sample_weights)
        loss = kernel_ridge.squared_loss(targets, found.left_out, sample_weights)
        candidates.append((loss, power, tuple(weights.tolist())))
    return min(candidates)[2]


def grams_of(kernel: BlockKernel, part: Tensor) -> Tensor:
    """Compare some anchors with each other block by block, float32 [B, n, n], without weights."""
    count = len(kernel.names)
    sample = replace(kernel, weights=(1.0,) * count, anchors=kernel.anchors[part])
    grams = torch.empty(count, len(part), len(part))
    for gram, (_, term) in zip(grams, sample.by_block(sample.anchors), strict=True):
        gram.copy_((term + term.T) / 2).fill_diagonal_(1)
    return grams


def alignments(kernel: BlockKernel, targets: Tensor) -> dict[str, float]:
    r"""Measure how well each block's kernel fits the anchors' targets [m, C].

    .. math:: \langle HKH, H Y Y^T H \rangle / (\|HKH\| \, \|H Y Y^T H\|)

    with H centring, on at most 600 anchors; 0 says nothing about the targets, 1 all.
    """
    part = spread_out(len(targets), SAMPLE)
    found = _alignments(grams_of(kernel, part), targets[part])
    return dict(zip(kernel.names, found.tolist(), strict=True))


def _alignments(grams: Tensor, targets: Tensor) -> Tensor:
    targets = targets - targets.mean(0)
    norm, found = (targets.T @ targets).norm(), torch.zeros(len(grams), dtype=torch.float64)
    for place, gram in enumerate(grams):
        centred = gram.double() - gram.double().mean(0)
        centred -= centred.mean(1, keepdim=True)
        scale = centred.norm() * norm
        if scale > 0:
            found[place] = (targets * (centred @ targets)).sum() / scale
    return found
