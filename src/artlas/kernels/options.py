"""Options that kernels take besides tensors."""

from __future__ import annotations

from typing import TypedDict


class Sinkhorn(TypedDict):
    """Options of Sinkhorn's iterations.

    scale: factor of the logits; clamp: bound on their magnitude, or None; steps: iterations.
    """

    scale: float
    clamp: float | None
    steps: int


class Mixing(Sinkhorn):
    """Options of mixtures: temperature of the responsibilities; top_k bases to keep, or None."""

    temperature: float
    top_k: int | None
