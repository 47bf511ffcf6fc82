"""What a fit found, and why a graph is predicted as it is, as tables to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class FitReport:
    """Sizes, leave-one-out quality and blocks of a fitted estimator.

    quality: by name, of the predictions of every training graph from all others; alignments: how
    well each block's kernel fits the labels, from 0 to 1; landmarks: None where every training
    graph is compared with.
    """

    graphs: int
    columns: int
    classes: int | None
    landmarks: int | None
    ridge: float
    quality: Mapping[str, float]
    alignments: Mapping[str, float]
    seconds: float

    def __str__(self) -> str:
        classes = "" if self.classes is None else f", {self.classes} classes"
        solver = "exact" if self.landmarks is None else f"{self.landmarks:,} landmarks"
        quality = ", ".join(f"{name} {value:.3f}" for name, value in self.quality.items())
        lines = [
            f"{self.graphs:,} graphs{classes}, {self.columns:,} columns, {self.seconds:.1f} s",
            f"leave-one-out: {quality}",
            f"ridge: {self.ridge:.3g} ({solver})",
            *_table("block", "alignment", self.alignments),
        ]
        return "\n".join(lines)


class Neighbour(NamedTuple):
    """A training graph like the one explained: its number, its kernel and its label."""

    number: int
    similarity: float
    label: Any


@dataclass(frozen=True)
class Explanation:
    """Why an estimator predicts what it predicts for a graph.

    contributions: by block, to the prediction or, of classes, to the difference of the scores of
    the predicted class and of runner_up; base: of an average training graph. Together they sum to
    it exactly. neighbours: the most similar training graphs, nearest first.
    """

    prediction: Any
    probability: float | None
    runner_up: Any
    contributions: Mapping[str, float]
    base: float
    neighbours: tuple[Neighbour, ...]

    def __str__(self) -> str:
        what = f"predicted: {self.prediction}"
        if self.probability is not None:
            what += f" (probability {self.probability:.2f}), before {self.runner_up}"
        near = [f"{n.number:>9,}  {n.similarity:10.3f}  {n.label}" for n in self.neighbours]
        parts = {**self.contributions, "average": self.base}
        return "\n".join(
            [what, *_table("block", "contribution", parts), "nearest    similarity  label", *near]
        )


def _table(left: str, right: str, values: Mapping[str, float]) -> list[str]:
    width = max(map(len, [left, *values]))
    ranked = sorted(values.items(), key=lambda pair: -abs(pair[1]))
    head = f"{left:<{width}}  {right}"
    return [head, *(f"{name:<{width}}  {value:{len(right)}.3f}" for name, value in ranked)]
