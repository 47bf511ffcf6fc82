r"""The hyperboloid and the sphere of curvatures -1 and 1.

Points are rows [N, w + 1], the first coordinate is time; the origin is (1, 0, ...). With the inner
product of a manifold, :math:`\langle x, x \rangle = \kappa`:

.. math:: \exp_x u = c(\|u\|)\, x + s(\|u\|)\, u / \|u\|, \quad
    PT_{x \to o} u = u - \frac{\langle o, u \rangle}{\kappa + \langle o, x \rangle} (x + o)

where c, s are cosh, sinh or cos, sin.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

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


def _norm(values: Tensor) -> Tensor:
    return (values.square().sum(1, keepdim=True) + TINY**2).sqrt()
