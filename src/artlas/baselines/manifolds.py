r"""The hyperboloid and the sphere of curvatures -1 and 1, and attention over edges.

Points are rows [N, w + 1], the first coordinate is time; the origin is (1, 0, ...). With the inner
product of a manifold, :math:`\langle x, x \rangle = \kappa`:

.. math:: \exp_x u = c(\|u\|)\, x + s(\|u\|)\, u / \|u\|, \quad
    PT_{x \to o} u = u - \frac{\langle o, u \rangle}{\kappa + \langle o, x \rangle} (x + o)

where c, s are cosh, sinh or cos, sin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from artlas.baselines.batch import Batch, entry_products, weighted_sums

TINY = 1e-6
FAR = 6.0  # the longest tangent of the hyperboloid, where float32 still has three digits


@dataclass(frozen=True)
class Manifold:
    """A space of constant curvature, -1 or 1."""

    curvature: int

    def inner(self, x: Tensor, y: Tensor) -> Tensor:
        """Inner products of rows, [N, 1]."""
        rest = (x[:, 1:] * y[:, 1:]).sum(1, keepdim=True)
        return rest + self.curvature * x[:, :1] * y[:, :1]

    def from_origin(self, tangent: Tensor) -> Tensor:
        """exp at the origin of tangents [N, w]."""
        norm = _norm(tangent)
        if self.curvature < 0:
            short = norm.clamp(max=FAR)
            return torch.cat([short.cosh(), short.sinh() / norm * tangent], 1)
        return torch.cat([norm.cos(), norm.sin() / norm * tangent], 1)

    def to_origin(self, x: Tensor) -> Tensor:
        """log at the origin, [N, w]."""
        rest = x[:, 1:]
        norm = _norm(rest)
        angle = norm.asinh() if self.curvature < 0 else torch.atan2(norm, x[:, :1])
        return angle / norm * rest

    def walk(self, x: Tensor, tangent: Tensor) -> Tensor:
        """exp at x of tangents there [N, w + 1]."""
        norm = (self.inner(tangent, tangent).clamp(min=0) + TINY**2).sqrt()
        if self.curvature < 0:
            return self.onto(norm.cosh() * x + norm.sinh() / norm * tangent)
        return self.onto(norm.cos() * x + norm.sin() / norm * tangent)

    def onto(self, values: Tensor) -> Tensor:
        """Scaled onto the manifold: the mean of points, if these are their sums."""
        square = self.curvature * self.inner(values, values)
        return values / (square.clamp(min=0) + TINY**2).sqrt()

    def tangent(self, x: Tensor, values: Tensor) -> Tensor:
        """The part of ambient vectors that is tangent at x, [N, w + 1]."""
        return values - self.curvature * self.inner(x, values) * x

    def transport(self, x: Tensor, tangent: Tensor) -> Tensor:
        """Tangents at x carried to the origin, [N, w]."""
        # 1 + <o, x> / curvature is 0 at the antipode alone
        share = tangent[:, :1] / (1 + x[:, :1]).clamp(min=TINY)
        return tangent[:, 1:] - share * x[:, 1:]


def attend(query: Tensor, key: Tensor, value: Tensor, batch: Batch) -> Tensor:
    """Means of neighbours' values [N, c] by weights exp(query . key); 0 for nodes without any."""
    ones = value.new_ones(len(value), 1)
    sums = _Attention.apply(query, key, torch.cat([value, ones], 1), batch.row_ptr, batch.col)
    return sums[:, :-1] / sums[:, -1:].clamp(min=TINY)


class _Attention(torch.autograd.Function):
    """Weighted sums over neighbours, with nothing but numbers kept of an edge.

    Entries are needed in both directions; because the pattern is symmetric, those of a transposed
    matrix are products of the swapped factors.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, row_ptr: Tensor, col: Tensor
    ) -> Tensor:
        ctx.save_for_backward(query, key, value, row_ptr, col)
        return weighted_sums(value, entry_products(query, key, row_ptr, col).exp(), row_ptr, col)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        query, key, value, *place = ctx.saved_tensors
        grad = grads[0].contiguous()
        there = entry_products(query, key, *place).exp()
        back = entry_products(key, query, *place).exp()
        d_value = weighted_sums(grad, back, *place)
        d_query = weighted_sums(key, there * entry_products(grad, value, *place), *place)
        d_key = weighted_sums(query, back * entry_products(value, grad, *place), *place)
        return d_query, d_key, d_value, None, None


def _norm(values: Tensor) -> Tensor:
    return (values.square().sum(1, keepdim=True) + TINY**2).sqrt()
