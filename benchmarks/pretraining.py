"""How long each baseline's pretraining at node level takes with the paper's settings, all folds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from artlas.training import glibc_malloc
from artlas_paper import datasets
from artlas_paper.methods.registry import METHODS
from artlas_paper.protocol import CENTRES, SOURCES
from benchmarks.data import SEED
from benchmarks.report import Figure
from benchmarks.timing import Spread, seconds


def measure(root: Path, steps: int) -> Iterable[Figure]:
    """Hours of all folds, by steps on ego-graphs of the sources of the first one.

    A fold passes as many graphs in an epoch as its four sources have.
    """
    egos = {
        name: datasets.load_egos(name, root, "paper", CENTRES, verbose=False)
        for name in SOURCES["node"]
    }
    passed = (len(egos) - 1) * sum(map(len, egos.values()))  # in an epoch of each fold
    rng, sources = np.random.default_rng(SEED), list(egos)[1:]
    for entry in METHODS.values():
        training = entry.training["node"]
        count = training.batch // len(sources)
        chosen = {
            name: egos[name].select(rng.choice(len(egos[name]), count, replace=False))
            for name in sources
        }
        step = entry.make("node", chosen).stepper(chosen, training)
        with glibc_malloc.reuse_large_blocks():
            seconds(step)
            took = [seconds(step) for _ in range(steps)]
        hours = [each / (count * len(sources)) * passed * training.epochs / 3600 for each in took]
        yield Figure.of(
            f"{entry.title}, pretraining of all node folds, {training.epochs} epochs",
            Spread.of(hours),
            unit=" h",
            note=f"{torch.get_num_threads()} threads",
            raw={"step": took, "graphs": count * len(sources)},
        )
