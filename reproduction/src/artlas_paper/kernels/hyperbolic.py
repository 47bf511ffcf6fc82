r"""The hyperboloid and the sphere of curvatures -1 and 1 in PyTorch, on any device, with any dtype.

A point [1 + w] is its time and then its other coordinates; the origin is (1, 0). With the inner
product of a manifold, :math:`\langle x, x \rangle = \kappa`:

.. math:: \exp_x u = c(\|u\|)\, x + s(\|u\|)\, u / \|u\|, \quad
    PT_{x \to o} u = u - \frac{\langle o, u \rangle}{\kappa + \langle o, x \rangle} (x + o)

where c, s are cosh, sinh or cos, sin. The first argument of every map is the curvature.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

TINY = 1e-6
FAR = 6.0  # the longest tangent of the hyperboloid, where float32 still has three digits


def from_origin(curvature: int, tangent: Tensor) -> Tensor:
    norm = _norm(tangent)
    if curvature < 0:
        short = norm.clamp(max=FAR)
        return torch.cat([short.cosh(), short.sinh() / norm * tangent], 1)
    return torch.cat([norm.cos(), norm.sin() / norm * tangent], 1)


def to_origin(curvature: int, x: Tensor) -> Tensor:
    time, rest = x[:, :1], x[:, 1:]
    norm = _norm(rest)
    angle = norm.asinh() if curvature < 0 else torch.atan2(norm, time)
    return angle / norm * rest


def mean(curvature: int, x: Tensor, y: Tensor) -> Tensor:
    return _onto(curvature, x + y)


def walk(curvature: int, x: Tensor, y: Tensor) -> Tensor:
    tangent = y - curvature * inner(curvature, x, y) * x
    norm = (inner(curvature, tangent, tangent).clamp(min=0) + TINY**2).sqrt()
    c, s = (norm.cosh(), norm.sinh()) if curvature < 0 else (norm.cos(), norm.sin())
    return _onto(curvature, c * x + s / norm * tangent)


def carried(curvature: int, x: Tensor, y: Tensor) -> Tensor:
    # Of the tangent (-a x_0, y - a x) with a = k <x, y>, transport makes y - a x / (1 + x_0),
    # where 1 + x_0 is 0 at the antipode alone
    time, rest = x[:, :1], x[:, 1:]
    return y - curvature * _dot(rest, y) / (1 + time).clamp(min=TINY) * rest


def inner(curvature: int, x: Tensor, y: Tensor) -> Tensor:
    """Inner products, [N, 1]."""
    return _dot(x[:, 1:], y[:, 1:]) + curvature * x[:, :1] * y[:, :1]


def manifold_map(name: str, curvature: int, x: Tensor, y: Tensor | None = None) -> Tensor:
    """Apply the map of that name in this module to rows x [N, .] and, for some maps, y [N, .]."""
    return _MAPS[name](curvature, *((x,) if y is None else (x, y)))


def _onto(curvature: int, values: Tensor) -> Tensor:
    """Scaled onto the manifold."""
    square = curvature * inner(curvature, values, values)
    return values * (square.clamp(min=0) + TINY**2).rsqrt()


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(1, keepdim=True)


def _norm(values: Tensor) -> Tensor:
    return (values.square().sum(1, keepdim=True) + TINY**2).sqrt()


_MAPS: dict[str, Callable[..., Tensor]] = {
    function.__name__: function for function in (from_origin, to_origin, mean, walk, carried)
}
