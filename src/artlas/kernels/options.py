"""The numbers every kernel takes beside its tensors."""

from __future__ import annotations

from typing import TypedDict


class Sinkhorn(TypedDict):
    """scale: of the logits; clamp: bound on their magnitude, or None; steps: iterations."""

    scale: float
    clamp: float | None
    steps: int


class Mixing(Sinkhorn):
    """temperature: of the responsibilities; top_k: bases kept, or None for all."""

    temperature: float
    top_k: int | None
