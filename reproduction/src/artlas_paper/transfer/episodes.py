"""The fixed few-shot episodes of a target, and the labels that they are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from artlas import evaluation
from artlas.nodes.ego import EgoGraphs
from artlas_paper import datasets
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import EPISODE_SEED, EPISODES, FOLDS, QUERIES
from artlas_paper.transfer.folds import Folds

Shots = int | Literal["all"]


@dataclass(frozen=True)
class Episodes:
    """The episodes of a target at a number of shots.

    members: the examples that the episodes use, ascending; labels: theirs; drawn: the episodes in
    numbers of members; sha256: of the episodes in numbers of the whole dataset.
    """

    shots: Shots
    labels: NDArray[np.int64]
    members: NDArray[np.int64]
    drawn: list[evaluation.Episode]
    sha256: str

    @classmethod
    def draw(cls, labels: Any, shots: Shots, count: int = EPISODES) -> Episodes:
        """Draw ``count`` episodes, or stratified folds of all examples for ``all``."""
        if isinstance(shots, str):
            drawn = _stratified_folds(np.asarray(labels))
        else:
            drawn = evaluation.draw_episodes(labels, count, shots, QUERIES, EPISODE_SEED)
        members = np.unique(np.concatenate([np.concatenate([e.support, e.query]) for e in drawn]))
        renumbered = [
            evaluation.Episode(
                np.searchsorted(members, e.support), np.searchsorted(members, e.query)
            )
            for e in drawn
        ]
        sha256 = evaluation.hash_episodes(drawn)
        return cls(shots, np.asarray(labels)[members], members, renumbered, sha256)


def _stratified_folds(labels: NDArray[np.int64]) -> list[evaluation.Episode]:
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=EPISODE_SEED)
    return [evaluation.Episode(a, b) for a, b in folds.split(np.zeros(len(labels)), labels)]


def labels_of(folds: Folds, target: str) -> NDArray[np.int64]:
    """Return the label of every example of a target: of its graphs, or of its centre nodes."""
    labels = datasets.load_examples(target, folds.root, "raw").y
    assert labels is not None
    return labels.numpy()


def shown_name(folds: Folds, target: str) -> str:
    """Return a target's name in records; it ends in -structural where features are structural."""
    data = datasets.load_examples(target, folds.root, "raw")
    featureless = isinstance(data, EgoGraphs) and data.graph.x is None
    return f"{find(target).name}-structural" if featureless else find(target).name
