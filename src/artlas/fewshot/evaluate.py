"""Accuracy of a frozen representation over few-shot episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artlas.fewshot.episodes import Episode
from artlas.fewshot.heads import Prototypes, SupportScaler


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


def evaluate(values: ArrayLike, labels: ArrayLike, episodes: Sequence[Episode]) -> Accuracy:
    """Standardise, fit prototypes on each support and score each query; values [G, d], labels [G].

    Query labels are read after prediction, to count the hits, and nowhere else.
    """
    rows, marks = np.asarray(values, dtype=np.float64), np.asarray(labels)
    if len(rows) != len(marks):
        raise ValueError(
            f"There are {len(rows)} representations for {len(marks)} labels. "
            "To fix this, pass one row a label."
        )
    scores = []
    for episode in episodes:
        scaler = SupportScaler.fit(rows[episode.support])
        head = Prototypes.fit(scaler.transform(rows[episode.support]), marks[episode.support])
        predicted = head.predict(scaler.transform(rows[episode.query]))
        scores.append(np.mean(predicted == marks[episode.query]))
    return Accuracy(np.array(scores, dtype=np.float64))
