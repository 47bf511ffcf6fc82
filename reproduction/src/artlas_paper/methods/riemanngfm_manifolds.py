"""RiemannGFM's manifolds: the hyperboloid and the sphere, with the maps between them.

:mod:`artlas_paper.kernels.torch_hyperbolic` has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from artlas_paper.kernels import manifold_map


@dataclass(frozen=True)
class Manifold:
    """A space of constant curvature, -1 or 1, with points [N, 1 + w] and differentiable maps."""

    curvature: int

    def from_origin(self, tangent: Tensor) -> Tensor:
        """Apply the exponential map at the origin to tangents [N, w]."""
        return manifold_map("from_origin", self.curvature, tangent)

    def to_origin(self, x: Tensor) -> Tensor:
        """Apply the logarithmic map at the origin, [N, w]."""
        return manifold_map("to_origin", self.curvature, x)

    def mean(self, x: Tensor, y: Tensor) -> Tensor:
        """Scale x + y onto the manifold: the mean of all points of which x and y are sums."""
        return manifold_map("mean", self.curvature, x, y)

    def exp_at(self, x: Tensor, y: Tensor) -> Tensor:
        """Project ambient vectors y [N, 1 + w] to tangents at x, and apply the exponential map."""
        return manifold_map("walk", self.curvature, x, y)

    def transport_to_origin(self, x: Tensor, values: Tensor) -> Tensor:
        """Project (0, values), values [N, w], to tangents at x; transport them to the origin."""
        return manifold_map("carried", self.curvature, x, values)
