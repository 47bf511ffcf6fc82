"""Accuracy of a frozen representation over few-shot episodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artlas.evaluation.episodes import Episode
from artlas.learning.heads import HEADS, SupportScaler

# From support [S, d], its labels [S] and queries [Q, d] to the queries' classes [Q].
Classify = Callable[[NDArray[np.float64], NDArray[Any], NDArray[np.float64]], NDArray[np.int64]]
Head = str | Classify


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The fraction of queries classified correctly in each episode, [R]."""

    episodes: NDArray[np.float64]

    @property
    def mean(self) -> float:
        return float(self.episodes.mean())

    @property
    def std(self) -> float:
        """Standard deviation over episodes with denominator R, as published."""
        return float(self.episodes.std())

    def difference_from(self, other: Accuracy) -> tuple[float, float]:
        """Compute the mean paired difference from ``other``, and its standard error."""
        if len(self.episodes) != len(other.episodes):
            counts = f"{len(self.episodes)} and {len(other.episodes)}"
            wrong = f"A paired difference needs the same episodes; got {counts}."
            raise ValueError(f"{wrong} To fix this, evaluate both on the same list of episodes.")
        difference = self.episodes - other.episodes
        return float(difference.mean()), float(difference.std() / len(difference) ** 0.5)

    def summary(self) -> dict[str, Any]:
        """Return the mean, the deviation and every episode, for a JSON file."""
        return {"mean": self.mean, "std": self.std, "episodes": self.episodes.tolist()}


def evaluate(
    values: ArrayLike, labels: ArrayLike, episodes: Sequence[Episode], head: Head = "prototype"
) -> Accuracy:
    """Fit a head on each episode's support and score its queries; values [G, d], labels [G].

    Query labels are read only after prediction, to count the hits.
    """
    rows, targets = np.asarray(values, dtype=np.float64), np.asarray(labels)
    if len(rows) != len(targets):
        wrong = f"There are {len(rows)} representations for {len(targets)} labels."
        raise ValueError(f"{wrong} To fix this, pass one row per label.")
    hits = [np.mean(predict(rows, targets, e, head) == targets[e.query]) for e in episodes]
    return Accuracy(np.array(hits, dtype=np.float64))


def predict(
    values: ArrayLike, labels: ArrayLike, episode: Episode, head: Head = "prototype"
) -> NDArray[np.int64]:
    """Classify the queries of an episode, [Q], from values [G, d] and the support's labels.

    head: ``prototype`` or ``linear``, after :class:`SupportScaler`, or a function.
    """
    rows, targets = np.asarray(values, dtype=np.float64), np.asarray(labels)
    support, query = rows[episode.support], rows[episode.query]
    if callable(head):
        return head(support, targets[episode.support], query)
    if head not in HEADS:
        raise ValueError(f"A head is one of {', '.join(HEADS)}, got {head!r}.")
    scaler = SupportScaler.fit(support)
    fitted = HEADS[head].fit(scaler.transform(support), targets[episode.support])
    return fitted.predict(scaler.transform(query))


def compare_with_controls(rows: Mapping[str, Accuracy], controls: Collection[str]) -> str:
    """Say in a sentence whether the best row beats the best control, and by how much.

    They tie when their difference is at most two paired standard errors over episodes.
    """
    control = max(controls, key=lambda row: rows[row].mean)
    ours = max((row for row in rows if row not in controls), key=lambda row: rows[row].mean)
    lead, error = rows[ours].difference_from(rows[control])
    points = f"{100 * abs(lead):.1f} points (standard error {100 * error:.1f})"
    if abs(lead) <= 2 * error:
        return f"a tie: {ours} and the control {control} are {points} apart."
    if lead < 0:
        return f"a control wins: {control}, {points} ahead of the best of the model, {ours}."
    return f"{ours} wins, {points} ahead of the best control, {control}."


def nearest_rows(queries: ArrayLike, rows: ArrayLike, count: int) -> NDArray[np.int64]:
    """Find the rows [n, d] nearest to each query [m, d], standardised by the rows; [m, count]."""
    scaler = SupportScaler.fit(rows)
    scaled = scaler.transform(rows)
    distances = [((scaled - query) ** 2).sum(1) for query in scaler.transform(queries)]
    return np.argsort(distances, axis=1, kind="stable")[:, :count]
