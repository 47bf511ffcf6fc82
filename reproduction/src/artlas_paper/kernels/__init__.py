"""Layers of the baselines: compiled for float32 on the CPU, in PyTorch for anything else."""

from __future__ import annotations

import torch
from torch import Tensor

from artlas.kernels import native_for
from artlas_paper.kernels import torch_attention, torch_dropout, torch_hyperbolic


def additive_attention(
    values: Tensor, sent: Tensor, met: Tensor, row_ptr: Tensor, col: Tensor, slope: float
) -> Tensor:
    r"""Means over a node and its neighbours of values [N, H c], by the weights of H heads.

    These are softmaxes over j of :math:`LeakyReLU(sent_j + met_i)`, for sent and met [N, H], on the
    symmetric adjacency row_ptr int64 [N + 1], col int32 [E]; differentiable in the first three.
    """
    module = native_for(values) or torch_attention
    return module.additive_attention(values, sent, met, row_ptr, col, slope)


def normalised_sums(
    values: Tensor, bias: Tensor | None, scale: Tensor, row_ptr: Tensor, col: Tensor
) -> Tensor:
    r""":math:`S (A + I) S\, V` for values V [N, c] and a diagonal S as scale [N], and a bias [c].

    The adjacency is given as for additive attention; differentiable in the first three.
    """
    module = native_for(values) or torch_attention
    return module.normalised_sums(values, bias, scale, row_ptr, col)


def self_sums(values: Tensor, eps: Tensor, bias: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
    r""":math:`(A + (1 + eps) I)\, V` for values V [N, c] and eps [1], and a bias [c].

    The adjacency is given as for additive attention; differentiable in the first three.
    """
    module = native_for(values) or torch_attention
    return module.self_sums(values, eps, bias, row_ptr, col)


def product_attention(
    query: Tensor, key: Tensor, value: Tensor, row_ptr: Tensor, col: Tensor
) -> Tensor:
    """Means of neighbours' values [N, c] by softmaxes of query . key [N, d]; 0 without neighbours.

    The adjacency is given as for additive attention; differentiable in the first three.
    """
    module = native_for(value) or torch_attention
    return module.product_attention(query, key, value, row_ptr, col)


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
    """Columns of x [N, c] with mean 0 and variance 1, times weight and plus bias [c]; then a ReLU
    if asked for, or PyTorch's PReLU of a slope [1]; then dropout of a share, by a seed.
    Differentiable in x, weight, bias and slope; also the columns' means and variances [c]."""
    native = native_for(x)
    if native is not None:
        return native.batch_norm(x, weight, bias, slope, eps, rectify, drop, seed)
    out = torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
    with torch.no_grad():
        variance, mean = torch.var_mean(x, 0, correction=0)
    if slope is not None:
        out = torch.nn.functional.prelu(out, slope)
    elif rectify:
        out = torch.relu(out)
    return dropout(out, drop, seed), mean, variance


def dropout(x: Tensor, share: float, seed: int) -> Tensor:
    """x [..., c] without a share of its entries, which a hash of a seed below 2**63 and of their
    place chooses; the others are scaled to make up for them. Differentiable in x."""
    if share == 0:
        return x
    native = native_for(x)
    return (native or torch_dropout).dropout(x, share, seed)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, rectify: bool = False) -> Tensor:
    """:math:`x W^T + b` of rows x [..., d] for weight W [o, d] and bias b [o]; then a ReLU if asked
    for. Differentiable in the first three. Compiled where both widths are multiples of 32."""
    native = native_for(x)
    if native is not None and native.fits_linear(weight):
        return native.linear(x, weight, bias, rectify)
    found = torch.nn.functional.linear(x, weight, bias)
    return torch.relu(found) if rectify else found


def manifold_map(name: str, curvature: int, x: Tensor, y: Tensor | None = None) -> Tensor:
    """A map of :mod:`artlas_paper.kernels.torch_hyperbolic` by rows [N, .]; differentiable in x and y."""
    native = native_for(x)
    if native is not None:
        return native.manifold_map(name, curvature, x, y)
    given = (x,) if y is None else (x, y)
    return getattr(torch_hyperbolic, name)(curvature, *given)


def unit(x: Tensor) -> Tensor:
    """Vectors [..., w] divided by their norms; zeros stay zero. Differentiable."""
    return manifold_map("unit", 0, x.reshape(-1, x.shape[-1])).view(x.shape)
