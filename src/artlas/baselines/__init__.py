"""Methods that the paper compares with: one file each, one interface for all.

A baseline is made of its own frozen options, learns from unlabelled graphs of several domains, and
then gives one vector a graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from artlas.graphs import Graphs
from artlas.ppr import EgoGraphs

Domains = Mapping[str, Graphs | EgoGraphs]


@dataclass(frozen=True)
class TrainingConfig:
    """How a baseline is trained; the defaults are the paper's where it names none for a method.

    rate, decay: learning rate and weight decay of Adam; seed: of the order of the graphs.
    """

    epochs: int = 100
    batch: int = 128
    rate: float = 1e-3
    decay: float = 0.0
    seed: int = 42

    def __post_init__(self) -> None:
        for name in ("epochs", "batch"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"TrainingConfig.{name} must be a positive integer, got {value!r}."
                )
        for name, least in (("rate", 1e-300), ("decay", 0.0)):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not least <= value < math.inf:
                raise ValueError(f"TrainingConfig.{name} must be positive, got {value!r}.")


class Baseline(Protocol):
    """What every baseline can do."""

    def pretrain(self, domains: Domains, config: TrainingConfig) -> list[float]:
        """Learn from the graphs of all domains, whatever their labels; the loss of every epoch."""
        ...

    def embed(self, graphs: Graphs) -> Tensor:
        """One vector a graph, [G, d], the same alone as among others."""
        ...

    def stepper(self, graphs: Graphs, config: TrainingConfig) -> Callable[[], float]:
        """A function that takes one training step on these graphs, and gives its loss."""
        ...
