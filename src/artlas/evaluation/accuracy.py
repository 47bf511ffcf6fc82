"""Accuracy of a frozen representation over few-shot episodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from artlas.evaluation.episodes import Episode
from artlas.learning.heads import HEADS, SMALLEST_SPREAD, Linear, SupportScaler

Scaling = Literal["double", "single", "none"]


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The share of queries classified correctly in each episode, [R], between 0 and 1."""

    episodes: NDArray[np.float64]

    @property
    def mean(self) -> float:
        return float(self.episodes.mean())

    @property
    def std(self) -> float:
        """Standard deviation over episodes, with denominator R as published."""
        return float(self.episodes.std())

    def over(self, other: Accuracy) -> tuple[float, float]:
        """Mean difference to another accuracy on the same episodes, and its standard error."""
        if len(self.episodes) != len(other.episodes):
            raise ValueError(
                f"A paired difference needs the same episodes; got {len(self.episodes)} and "
                f"{len(other.episodes)}. To fix this, evaluate both on one list of episodes."
            )
        difference = self.episodes - other.episodes
        return float(difference.mean()), float(difference.std() / len(difference) ** 0.5)

    def summary(self) -> dict[str, Any]:
        """Mean, deviation and every episode, for a JSON file."""
        return {"mean": self.mean, "std": self.std, "episodes": self.episodes.tolist()}


def evaluate(
    values: ArrayLike,
    labels: ArrayLike,
    episodes: Sequence[Episode],
    head: str = "prototype",
    scaling: Scaling = "double",
) -> Accuracy:
    """Standardise, fit a head on each support and score each query; values [G, d], labels [G].

    scaling: ``double`` is :class:`SupportScaler`; ``single`` the published arithmetic, float32 with
    constant columns kept, which a column that is constant on the support alone can ruin; ``none``
    leaves the values as they are, as the coordinates of a kernel should be.

    Query labels are read after prediction, to count the hits, and nowhere else.
    """
    rows, marks = np.asarray(values, dtype=np.float64), np.asarray(labels)
    if len(rows) != len(marks):
        raise ValueError(
            f"There are {len(rows)} representations for {len(marks)} labels. "
            "To fix this, pass one row a label."
        )
    hits = [np.mean(predict(rows, marks, e, head, scaling) == marks[e.query]) for e in episodes]
    return Accuracy(np.array(hits, dtype=np.float64))


def predict(
    values: ArrayLike,
    labels: ArrayLike,
    episode: Episode,
    head: str = "prototype",
    scaling: Scaling = "double",
) -> NDArray[np.int64]:
    """Classify the queries of an episode, [Q], by values [G, d] and the labels of its support."""
    rows, marks = np.asarray(values, dtype=np.float64), np.asarray(labels)
    support, query = rows[episode.support], rows[episode.query]
    if head not in HEADS:
        raise ValueError(f"A head is one of {', '.join(HEADS)}, got {head!r}.")
    if scaling not in get_args(Scaling):
        raise ValueError(f"Scaling is one of {', '.join(get_args(Scaling))}, got {scaling!r}.")
    if scaling == "single":
        return _predict_single(support, marks[episode.support], query, head)
    if scaling == "double":
        scaler = SupportScaler.fit(support)
        support, query = scaler.transform(support), scaler.transform(query)
    return HEADS[head].fit(support, marks[episode.support]).predict(query)


def _predict_single(
    support: NDArray[np.float64], labels: NDArray[Any], query: NDArray[np.float64], head: str
) -> NDArray[np.int64]:
    """As published: float32, the spread of a constant column at its floor, ``torch.cdist``."""
    known, asked = torch.from_numpy(support).float(), torch.from_numpy(query).float()
    mean, spread = known.mean(0), known.std(0, unbiased=False).clamp_min(SMALLEST_SPREAD)
    known, asked = (known - mean) / spread, (asked - mean) / spread
    if head == "linear":
        return Linear.fit(known.numpy(), labels).predict(asked.numpy())
    classes = np.unique(labels)
    centres = torch.stack([known[torch.from_numpy(labels == c)].mean(0) for c in classes])
    chosen: NDArray[np.int64] = classes[torch.cdist(asked, centres).argmin(1).numpy()]
    return chosen


def verdict(rows: Mapping[str, Accuracy], controls: Collection[str]) -> str:
    """Say which wins, the best control or the best of the other rows, and by how much.

    They tie when they are at most two paired standard errors over episodes apart.
    """
    control = max(controls, key=lambda row: rows[row].mean)
    ours = max((row for row in rows if row not in controls), key=lambda row: rows[row].mean)
    lead, error = rows[ours].over(rows[control])
    points = f"{100 * abs(lead):.1f} points (standard error {100 * error:.1f})"
    if abs(lead) <= 2 * error:
        return f"a tie: {ours} and the control {control} are {points} apart."
    if lead < 0:
        return f"a control wins: {control}, {points} ahead of the best of the model, {ours}."
    return f"{ours} wins, {points} ahead of the best control, {control}."


def nearest(asked: ArrayLike, known: ArrayLike, count: int) -> NDArray[np.int64]:
    """Rows of known [n, d] nearest to each of asked [m, d], standardised by known; [m, count]."""
    scaler = SupportScaler.fit(known)
    there = scaler.transform(known)
    distances = [((there - row) ** 2).sum(1) for row in scaler.transform(asked)]
    return np.argsort(distances, axis=1, kind="stable")[:, :count]
