"""Draw a stratified sample of a target dataset, the same for every method."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs
from artlas_paper import datasets
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import Level


@dataclass(frozen=True)
class Sample:
    """Stratified objects of a target: its graphs, or ego-graphs of its nodes.

    members: indices of the objects in the dataset [n]; labels: their classes from 0 [n].
    """

    target: str
    level: Level
    members: NDArray[np.int64]
    labels: NDArray[np.int64]
    graphs: Graphs


def draw_sample(target: str, root: Path | None, count: int, seed: int) -> Sample:
    """Draw ``count`` objects of a target, stratified by class, with the paper's features."""
    entry = find(target)
    objects = datasets.load_examples(entry.name, root, "paper")
    assert objects.y is not None
    members = stratified(objects.y.numpy(), count, seed)
    graphs = objects[members]
    assert graphs.y is not None
    labels = np.unique(graphs.y.numpy(), return_inverse=True)[1].reshape(-1)
    return Sample(entry.name, entry.level, members, labels, graphs)


def stratified(labels: Any, count: int, seed: int) -> NDArray[np.int64]:
    """Draw ``count`` examples with the class proportions of ``labels``; indices ascend, [n].

    Class sizes are rounded by largest remainder (ties: lower class), at least one per class.
    """
    known = np.asarray(labels)
    classes, sizes = np.unique(known, return_counts=True)
    count = min(count, len(known))
    if count < len(classes):
        raise ValueError(
            f"{count} examples cannot be stratified over {len(classes)} classes. "
            f"To fix this, ask for at least {len(classes)}."
        )
    exact = sizes * (count / len(known))
    share = np.maximum(np.floor(exact).astype(np.int64), 1)
    while share.sum() < count:
        share[np.argmax(exact - share)] += 1
    while share.sum() > count:  # classes with an exact share below one were rounded up
        share[np.argmax(np.where(share > 1, share - exact, -np.inf))] -= 1
    rng = np.random.default_rng(seed)
    parts = [
        rng.choice(np.flatnonzero(known == label), size, replace=False)
        for label, size in zip(classes, share, strict=True)
    ]
    return np.sort(np.concatenate(parts))
