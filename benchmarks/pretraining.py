"""Estimate how long the baselines' pretraining takes on all node folds."""

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
from benchmarks.report import Measurement
from benchmarks.timing import Spread, seconds


def measure(root: Path, steps: int) -> Iterable[Measurement]:
    """Estimate the hours of all folds from a few steps on the sources of the first fold.

    An epoch of a fold processes as many graphs as its four sources have.
    """
    egos = {
        name: datasets.load_egos(name, root, "paper", CENTRES, verbose=False)
        for name in SOURCES["node"]
    }
    processed = (len(egos) - 1) * sum(map(len, egos.values()))  # in one epoch of every fold
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
            times = [seconds(step) for _ in range(steps)]
        graphs = count * len(sources)
        hours = [each / graphs * processed * training.epochs / 3600 for each in times]
        yield Measurement.of(
            f"{entry.title}, pretraining of all node folds, {training.epochs} epochs",
            Spread.of(hours),
            unit=" h",
            note=f"{torch.get_num_threads()} threads",
            raw={"step": times, "graphs": graphs},
        )
