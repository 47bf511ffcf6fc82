"""The settings of training."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from artlas import checks

Optimiser = Literal["adam", "adamw"]
OPTIMISERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


@dataclass(frozen=True)
class PretrainConfig:
    """How to train; the defaults are those of the authors' published runs.

    epochs, batch, rate: number of epochs, graphs per batch, learning rate; clip: largest norm of
    the gradient, None for any; seed: of the order of the graphs (the model has its own for the
    initial weights); checkpoint_every: number of steps between two saved states. plateau: stop
    early if the mean loss of the last ``patience`` epochs is less than this share below that of
    the epochs before. decay: weight decay, part of the gradient for the ``adam`` optimiser and
    apart from it for ``adamw``.
    """

    epochs: int = 60
    batch: int = 64
    rate: float = 1e-3
    clip: float | None = 5.0
    seed: int = 42
    checkpoint_every: int = 500
    plateau: float | None = None
    patience: int = 5
    decay: float = 0.0
    optimiser: Optimiser = "adam"

    def __post_init__(self) -> None:
        checks.integer(self, "epochs", "batch", "checkpoint_every", "patience")
        checks.positive(self, "rate")
        checks.positive(self, *(n for n in ("clip", "plateau") if getattr(self, n) is not None))
        checks.non_negative(self, "decay")
        checks.one_of(self, "optimiser", tuple(OPTIMISERS))

    def make_optimiser(self, parameters: Iterable[Tensor]) -> torch.optim.Adam:
        """Create the optimiser of these parameters."""
        return OPTIMISERS[self.optimiser](parameters, lr=self.rate, weight_decay=self.decay)


def can_resume(before: Any, now: dict[str, Any]) -> bool:
    """Whether settings are equal but for more epochs, so that a run may continue with them."""
    if not isinstance(before, dict):
        return False
    before = {**dataclasses.asdict(PretrainConfig()), **before}  # older runs lack newer settings
    if "every" in before:  # the name of checkpoint_every in the first edition
        before["checkpoint_every"] = before.pop("every")
    return before["epochs"] <= now["epochs"] and {**before, "epochs": now["epochs"]} == now
