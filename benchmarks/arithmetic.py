"""Count the model's multiply-adds, and time this machine's in a matrix product."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from benchmarks.timing import Call

GEMM_SIZE = 2048
GEMM_MULTIPLY_ADDS = GEMM_SIZE**3


@dataclass(frozen=True)
class Shape:
    """The sizes of a model: bases K, roles M, width D, GIN layers, Sinkhorn iterations."""

    bases: int
    roles: int
    width: int
    layers: int
    iterations: int


def multiply_adds(
    nodes: int, entries: int, shape: Shape, steps: float | None = None
) -> dict[str, int]:
    """Count multiply-adds of one inference pass by stage; steps: Sinkhorn iterations executed."""
    k, m, d, layers = shape.bases, shape.roles, shape.width, shape.layers
    iterations = shape.iterations if steps is None else steps
    return {
        "encoder": nodes * (layers * 2 * d * d + d * d),
        "aggregation": entries * d * layers,
        "logits": nodes * k * m * d,
        "sinkhorn": round(2 * iterations * nodes * k * m),
        "neighbours": entries // 2 * k * m,
        "bases": nodes * k * m * m,
    }


def gemm_call() -> Call:
    """Prepare a float32 matrix product of 2048^3 multiply-adds to be timed."""
    left, right = torch.randn(2, GEMM_SIZE, GEMM_SIZE)
    out = torch.empty(GEMM_SIZE, GEMM_SIZE)
    return lambda: torch.mm(left, right, out=out)
