"""What a fit found, and why a graph is predicted as it is, as tables to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class FitReport:
    """Sizes, leave-one-out quality and blocks of a fitted estimator.

    quality: by name, of the predictions of every training graph from all others; weights: of
    the blocks, which sum to one; alignments: how well each block's kernel fits the labels, from 0
    to 1; landmarks: None where every training
    graph is compared with.
    """

    graphs: int
    columns: int
    classes: int | None
    landmarks: int | None
    ridge: float
    quality: Mapping[str, float]
    weights: Mapping[str, float]
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
            *_table("block", {"weight": self.weights, "alignment": self.alignments}),
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
        table = _table("block", {"contribution": parts})
        return "\n".join([what, *table, "nearest    similarity  label", *near])


def _table(left: str, columns: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Lay columns of numbers out, ranked by the size of the last one's."""
    *_, ranking = columns.values()
    names = sorted(ranking, key=lambda name: -abs(ranking[name]))
    width = max(map(len, [left, *names]))
    lines = [f"{left:<{width}}" + "".join(f"  {title}" for title in columns)]
    for name in names:
        cells = (f"  {values[name]:{len(title)}.3f}" for title, values in columns.items())
        lines.append(f"{name:<{width}}" + "".join(cells))
    return lines
