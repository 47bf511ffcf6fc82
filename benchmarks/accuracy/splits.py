"""Training and test parts: stratified folds, the published folds and few-shot episodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from artlas.evaluation import draw_episodes

Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """The numbers of the graphs to learn from, and of those to predict, int64.

    validation: those among the training graphs that a trained network stops by, where published.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    validation: NDArray[np.int64] | None = None


def stratified_folds(labels: Labels, seeds: Iterable[int], count: int = 5) -> list[Split]:
    """Cut graphs with labels [G] into folds once per seed."""
    found = []
    for seed in seeds:
        folds = StratifiedKFold(count, shuffle=True, random_state=seed)
        found += [Split(train, test) for train, test in folds.split(labels, labels)]
    return found


def published_folds(path: Path) -> list[Split]:
    """Read the ten folds of Errica et al. (ICLR 2020); the training part includes validation."""
    found = []
    for fold in json.loads(path.read_text()):
        inner = fold["model_selection"][0]
        validation = np.array(inner["validation"], dtype=np.int64)
        train = np.sort(np.concatenate([inner["train"], validation]).astype(np.int64))
        found.append(Split(train, np.array(fold["test"], dtype=np.int64), np.sort(validation)))
    return found


def episodes(labels: Labels, shots: int, count: int = 20) -> list[Split]:
    """Draw episodes of this many training graphs a class, and 50 test graphs a class at most."""
    drawn = draw_episodes(labels, count, shots, queries=50, seed=42)
    return [Split(episode.support, episode.query) for episode in drawn]


def stratified_sample(labels: Labels, most: int, seed: int = 0) -> NDArray[np.int64]:
    """Choose at most ``most`` graphs whose classes have the shares that they have in labels [G]."""
    if len(labels) <= most:
        return np.arange(len(labels))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    place = np.empty(len(labels))  # of a graph within its class, as a share of the class
    for label in np.unique(labels):
        members = order[labels[order] == label]
        place[members] = (np.arange(len(members)) + rng.random()) / len(members)
    return np.sort(np.argsort(place, kind="stable")[:most])


def hash_splits(splits: Sequence[Split]) -> str:
    """Hash the numbers of all training and test graphs; equal hashes mean the same test."""
    digest = hashlib.sha256()
    for split in splits:
        for part in (split.train, split.test):
            digest.update(np.int64(len(part)).astype("<i8").tobytes())
            digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()[:16]
