"""A support vector machine on one of several kernels, chosen with its C by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

COSTS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
INNER = 3
MOST_STEPS = 2_000_000  # of libsvm: only raw kernels at the highest C come near
Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """Whether the kernel is normalised, its last round, C and the accuracy within training."""

    normalised: bool
    rounds: int
    cost: float
    accuracy: float


def predict(
    grams: Mapping[int, Matrix], train: Numbers, labels: Numbers, test: Numbers
) -> tuple[Numbers, Choice]:
    """Choose within the training graphs, fit to them and predict the test graphs.

    grams: kernels [G, G] by round; labels: of the training graphs. Every kernel is tried as it is,
    divided by its mean diagonal, and normalised to a diagonal of one.
    """
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    inner = list(
        StratifiedKFold(min(INNER, max(2, smallest)), shuffle=True, random_state=0).split(
            labels, labels
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = _choose(grams, train, labels, inner)
        gram = grams[best.rounds]
        machine = _machine(best.cost).fit(_scaled(gram, train, train, best.normalised), labels)
    return machine.predict(_scaled(gram, test, train, best.normalised)), best


def _choose(grams: Mapping[int, Matrix], train: Numbers, labels: Numbers, inner: Any) -> Choice:
    best = None
    for rounds, gram in grams.items():
        for normalised in (True, False):
            own = _scaled(gram, train, train, normalised)
            hits = np.zeros(len(COSTS))
            for fit, held in inner:
                hits += _hits(own, fit, held, labels)
            for cost, count in zip(COSTS, hits, strict=True):
                choice = Choice(normalised, rounds, cost, float(count / len(labels)))
                if best is None or choice.accuracy > best.accuracy:
                    best = choice
    assert best is not None
    return best


def _hits(gram: Matrix, fit: Numbers, held: Numbers, labels: Numbers) -> Matrix:
    """Count the held rows that are predicted well, by C."""
    own, other = gram[np.ix_(fit, fit)], gram[np.ix_(held, fit)]
    hits = np.zeros(len(COSTS))
    for place, cost in enumerate(COSTS):
        machine = _machine(cost).fit(own, labels[fit])
        hits[place:] = (machine.predict(other) == labels[held]).sum()
        if np.abs(machine.dual_coef_).max() < cost * (1 - 1e-9):
            break  # no row reaches its bound, so that a higher C changes nothing
    return hits


def _machine(cost: float) -> Any:
    return SVC(kernel="precomputed", C=cost, cache_size=400, max_iter=MOST_STEPS)


def _scaled(gram: Matrix, rows: Numbers, train: Numbers, normalised: bool) -> Matrix:
    diagonal = np.maximum(np.diag(gram), 1e-300)
    part = gram[np.ix_(rows, train)]
    if not normalised:
        return part / diagonal[train].mean()
    return part / np.sqrt(diagonal[rows])[:, None] / np.sqrt(diagonal[train])
