"""Node features stored once per distinct row, with gradients summed over all uses of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class SharedFeatures:
    """Features of N nodes as rows of a table: node i has the features ``table[rows[i]]``.

    table: float [T, d]; rows: int64 [N]. Ego-graphs of one network overlap, so that a batch has
    several times fewer distinct feature vectors than nodes, and a linear map of the table costs
    less than one of all nodes. gradient: where the parts of a batch add up their gradients.
    """

    table: Tensor
    rows: Tensor
    gradient: TableGradient | None = None

    @classmethod
    def of(cls, features: Features) -> SharedFeatures:
        """Wrap features [N, d] that no two nodes share; return shared features unchanged."""
        if isinstance(features, SharedFeatures):
            return features
        return cls(features, torch.arange(len(features)))

    def expand(self) -> Tensor:
        """Return the features of every node, [N, d], differentiable in the table."""
        gradient = TableGradient(self.table) if self.gradient is None else self.gradient
        return _GatherRows.apply(gradient.anchor, self.table.detach(), self.rows, gradient)

    def split(self, sizes: list[int]) -> list[SharedFeatures]:
        """Split into runs of consecutive nodes that add up their gradients in one table."""
        gradient = TableGradient(self.table)
        return [SharedFeatures(self.table, rows, gradient) for rows in self.rows.split(sizes)]


Features = Tensor | SharedFeatures


class TableGradient:
    """Accumulator for the gradient of a table whose rows are gathered several times.

    ``anchor`` is a scalar 0 that every gather depends on. Autograd asks for its gradient last, when
    all gathers have added theirs to ``grad``.
    """

    def __init__(self, table: Tensor) -> None:
        self.grad: Tensor | None = None
        self.anchor = _Anchor.apply(table, self)


def map_features(linear: Callable[[Tensor], Tensor], features: Features) -> Features:
    """Apply a row-wise map to features, and keep them shared if they are."""
    if isinstance(features, SharedFeatures):
        return SharedFeatures(linear(features.table), features.rows)
    return linear(features)


def map_nodes(linear: Callable[[Tensor], Tensor], features: Features) -> Tensor:
    """Apply a row-wise map to features and return the result of every node, [N, c]."""
    mapped = map_features(linear, features)
    return mapped.expand() if isinstance(mapped, SharedFeatures) else mapped


class _Anchor(torch.autograd.Function):
    """Return 0 forward; backward, hand over the accumulated gradient of the table."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, gradient: TableGradient) -> Tensor:
        ctx.gradient = gradient
        return table.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        total, ctx.gradient.grad = ctx.gradient.grad, None
        return total, None


class _GatherRows(torch.autograd.Function):
    """Gather rows of a table; backward, add their gradients in the order of the rows."""

    @staticmethod
    def forward(
        ctx: Any, anchor: Tensor, table: Tensor, rows: Tensor, gradient: TableGradient
    ) -> Tensor:
        ctx.saved = len(table), rows, gradient
        return table.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        count, rows, gradient = ctx.saved
        if gradient.grad is None:
            gradient.grad = grads[0].new_zeros(count, grads[0].shape[1])
        gradient.grad.index_add_(0, rows, grads[0])
        return grads[0].new_zeros(()), None, None, None
