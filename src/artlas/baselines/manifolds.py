r"""The hyperboloid and the sphere of curvatures -1 and 1.

A point or vector is a pair of its time [N, 1] and the other coordinates [N, w]: joining and parting
them would cost more than all else. The origin is (1, 0). With the inner product of a manifold,
:math:`\langle x, x \rangle = \kappa`:

.. math:: \exp_x u = c(\|u\|)\, x + s(\|u\|)\, u / \|u\|, \quad
    PT_{x \to o} u = u - \frac{\langle o, u \rangle}{\kappa + \langle o, x \rangle} (x + o)

where c, s are cosh, sinh or cos, sin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, atan2

TINY = 1e-6
FAR = 6.0  # the longest tangent of the hyperboloid, where float32 still has three digits


class Vector(NamedTuple):
    """Coordinates in the ambient space."""

    time: Tensor  # [N, 1]
    rest: Tensor  # [N, w]


@dataclass(frozen=True)
class Manifold:
    """A space of constant curvature, -1 or 1."""

    curvature: int

    def inner(self, x: Vector, y: Vector) -> Tensor:
        """Inner products, [N, 1]."""
        return _dot(x.rest, y.rest) + self.curvature * x.time * y.time

    def from_origin(self, tangent: Tensor) -> Vector:
        """exp at the origin of tangents [N, w]."""
        norm = _norm(tangent)
        if self.curvature < 0:
            short = norm.clamp(max=FAR)
            return Vector(short.cosh(), short.sinh() / norm * tangent)
        return Vector(norm.cos(), norm.sin() / norm * tangent)

    def to_origin(self, x: Vector) -> Tensor:
        """log at the origin, [N, w]."""
        norm = _norm(x.rest)
        angle = norm.asinh() if self.curvature < 0 else atan2(norm, x.time)
        return angle / norm * x.rest

    def walk(self, x: Vector, tangent: Vector) -> Vector:
        """exp at x of tangents there."""
        norm = (self.inner(tangent, tangent).clamp(min=0) + TINY**2).sqrt()
        c, s = (norm.cosh(), norm.sinh()) if self.curvature < 0 else (norm.cos(), norm.sin())
        return self.onto(_sum(c, x, s / norm, tangent))

    def onto(self, values: Vector) -> Vector:
        """Scaled onto the manifold: the mean of points, if these are their sums."""
        square = self.curvature * self.inner(values, values)
        scale = (square.clamp(min=0) + TINY**2).rsqrt()
        return Vector(values.time * scale, values.rest * scale)

    def tangent(self, x: Vector, values: Vector) -> Vector:
        """The part of ambient vectors that is tangent at x."""
        share = self.curvature * self.inner(x, values)
        return Vector(values.time - share * x.time, values.rest - share * x.rest)

    def carried(self, x: Vector, values: Tensor) -> Tensor:
        r"""Ambient (0, values), values [N, w], made tangent at x and carried to the origin, [N, w].

        Of the tangent (-a x_0, v - a x) with :math:`a = \kappa \langle x, v \rangle`, the transport
        makes :math:`v - a x / (1 + x_0)`.
        """
        # 1 + x_0 is 0 at the antipode alone
        share = self.curvature * _dot(x.rest, values) / (1 + x.time).clamp(min=TINY)
        return values - share * x.rest


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(1, keepdim=True)


def _norm(values: Tensor) -> Tensor:
    return (values.square().sum(1, keepdim=True) + TINY**2).sqrt()


def _sum(a: Tensor, x: Vector, b: Tensor, y: Vector) -> Vector:
    return Vector(a * x.time + b * y.time, a * x.rest + b * y.rest)
