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
    r"""Return the kernel with weights :math:`w_b \propto a_b^p`, a the blocks' alignments.

    The power p is the one of :data:`POWERS` whose ridge regression has the least leave-one-out
    loss; 0 stands for equal weights. targets [m, C] and sample_weights [m] are the anchors'.
    """
    if len(kernel.names) < 2:
        return kernel
    part = spread_out(len(targets), SAMPLE)
    sample, targets, sample_weights = kernel.anchors[part], targets[part], sample_weights[part]
    sizes = _alignments(replace(kernel, anchors=sample), targets)
    largest = float(sizes.max())
    if largest <= 0:
        return kernel
    shares = (sizes / largest).clamp(min=_LEAST)
    candidates = []
    for power in POWERS:
        weights = shares**power / (shares**power).sum()
        candidate = replace(kernel, weights=tuple(weights.tolist()), anchors=sample)
        found = kernel_ridge.fit(candidate.gram(), targets, sample_weights)
        loss = kernel_ridge.squared_loss(targets, found.left_out, sample_weights)
        candidates.append((loss, power, candidate.weights))
    return replace(kernel, weights=min(candidates)[2])


def alignments(kernel: BlockKernel, targets: Tensor) -> dict[str, float]:
    r"""Measure how well each block's kernel fits the anchors' targets [m, C].

    .. math:: \langle HKH, H Y Y^T H \rangle / (\|HKH\| \, \|H Y Y^T H\|)

    with H centring, on at most 600 anchors; 0 says nothing about the targets, 1 all.
    """
    part = spread_out(len(targets), SAMPLE)
    found = _alignments(replace(kernel, anchors=kernel.anchors[part]), targets[part])
    return dict(zip(kernel.names, found.tolist(), strict=True))


def _alignments(kernel: BlockKernel, targets: Tensor) -> Tensor:
    targets = targets - targets.mean(0)
    norm = (targets.T @ targets).norm()
    found = []
    for _, term in kernel.by_block(kernel.anchors):
        centred = term.double() - term.double().mean(0)
        centred -= centred.mean(1, keepdim=True)
        scale = centred.norm() * norm
        found.append((targets * (centred @ targets)).sum() / scale if scale > 0 else scale)
    return torch.stack(found) if found else norm.new_zeros(0)
