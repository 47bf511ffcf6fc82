"""The hyperboloid and the sphere; :mod:`artlas_paper.kernels.torch_hyperbolic` has the formulas."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from artlas_paper.kernels import manifold_map


@dataclass(frozen=True)
class Manifold:
    """A space of constant curvature, -1 or 1, with points [N, 1 + w]; all maps have gradients."""

    curvature: int

    def from_origin(self, tangent: Tensor) -> Tensor:
        """exp at the origin of tangents [N, w]."""
        return manifold_map("from_origin", self.curvature, tangent)

    def to_origin(self, x: Tensor) -> Tensor:
        """log at the origin, [N, w]."""
        return manifold_map("to_origin", self.curvature, x)

    def mean(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y scaled onto the manifold: the mean of all points that these are sums of."""
        return manifold_map("mean", self.curvature, x, y)

    def walk(self, x: Tensor, y: Tensor) -> Tensor:
        """exp at x of the part of ambient vectors y [N, 1 + w] that is tangent there."""
        return manifold_map("walk", self.curvature, x, y)

    def carried(self, x: Tensor, values: Tensor) -> Tensor:
        """Ambient (0, values), values [N, w], made tangent at x and carried to the origin."""
        return manifold_map("carried", self.curvature, x, values)
