"""Operations on rows of features: batch normalisation, dropout, linear maps, unit length."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def batch_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    rectify: bool = False,
    slope: Tensor | None = None,
    drop: float = 0.0,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise the columns of x [N, c], then apply a ReLU or a PReLU, then dropout.

    Columns get mean 0 and variance 1 and are multiplied by weight and shifted by bias [c]. The
    activation is a ReLU if ``rectify``, a PReLU if there is a ``slope`` [1]. Differentiable in x,
    weight, bias and slope. Returns the columns' means and biased variances [c] as well.
    """
    mean, variance = x.new_zeros(2, x.shape[1])
    out = functional.batch_norm(x, mean, variance, weight, bias, True, 1.0, eps)
    variance = variance * ((len(x) - 1) / len(x))  # PyTorch stores the unbiased one
    if slope is not None:  # the gradient of PyTorch's own prelu is many times slower on the CPU
        out = slope * out + (1 - slope) * torch.relu(out)
    elif rectify:
        out = torch.relu(out)
    return dropout(out, drop, seed), mean, variance


def dropout(x: Tensor, share: float, seed: int) -> Tensor:
    """Drop a share of the entries of x and scale the others to make up for them.

    The seed alone chooses the entries, by 16 random bits each, so the share is met to within 1e-5.
    Four entries share a random number, which is several times faster than PyTorch's dropout on the
    CPU. Differentiable in x.
    """
    if share == 0:
        return x
    generator = torch.Generator(x.device).manual_seed(seed)
    words = torch.empty(x.numel() // 4 + 1, dtype=torch.int64, device=x.device)
    words.random_(-(2**63), None, generator=generator)
    bound = min(round(share * 2**16), 2**16 - 1)
    kept = words.view(torch.int16)[: x.numel()].view(x.shape) >= bound - 2**15
    return x * (kept.to(x.dtype) * (1 / (1 - share)))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, rectify: bool = False) -> Tensor:
    """Map rows x [..., d] to :math:`x W^T + b`, W [o, d] and b [o]; apply a ReLU if asked."""
    out = functional.linear(x, weight, bias)
    return torch.relu(out) if rectify else out


def unit(x: Tensor) -> Tensor:
    """Divide vectors x [..., c] by their norms; zeros stay zero."""
    return functional.normalize(x, dim=-1)
