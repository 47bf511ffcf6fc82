"""Draw deterministic few-shot episodes, identical to those of the published protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Episode:
    """Indices of the examples to learn from (support [S]) and to classify (query [Q]), int64.

    They share no index, and both are ordered by class.
    """

    support: NDArray[np.int64]
    query: NDArray[np.int64]


def draw_episode(labels: ArrayLike, seed: int, shots: int = 5, queries: int = 50) -> Episode:
    """Draw one episode of labels [G] from ``default_rng(seed)``.

    For each class in ascending order, its ascending indices are shuffled in place by one generator
    shared by all classes. The first ``shots`` are support, up to ``queries`` of the rest are query.
    A class of n < shots members has max(1, n - 1) of them as support.
    """
    values = np.asarray(labels)
    if values.ndim != 1 or len(values) == 0:
        wrong = f"Episodes need one label per example; got shape {list(values.shape)}."
        raise ValueError(f"{wrong} To fix this, pass a vector of class numbers.")
    if shots < 1 or queries < 1:
        raise ValueError(f"Episodes need at least one shot and query; got {shots} and {queries}.")
    rng = np.random.default_rng(seed)
    support, query = [], []
    for label in np.unique(values):
        members = np.flatnonzero(values == label)
        rng.shuffle(members)
        taken = shots if len(members) >= shots else max(1, len(members) - 1)
        support.append(members[:taken])
        query.append(members[taken : taken + queries])
    return Episode(np.concatenate(support), np.concatenate(query))


def draw_episodes(
    labels: ArrayLike, count: int = 50, shots: int = 5, queries: int = 50, seed: int = 42
) -> list[Episode]:
    """Draw episodes r = 0 ... count - 1 from seeds seed + r, leaving out those without a query."""
    drawn = [draw_episode(labels, seed + r, shots, queries) for r in range(count)]
    kept = [episode for episode in drawn if len(episode.query)]
    if not kept:
        wrong = f"No episode has a query; got {count}, of classes of at most {shots} members."
        raise ValueError(f"{wrong} To fix this, request at least one episode, or lower shots.")
    return kept


def hash_episodes(episodes: Sequence[Episode]) -> str:
    """Hash all indices in order by SHA-256; equal hashes mean the same test on any machine."""
    digest = hashlib.sha256()
    for episode in episodes:
        for part in (episode.support, episode.query):
            digest.update(np.int64(len(part)).astype("<i8").tobytes())
            digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()
