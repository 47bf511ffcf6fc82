"""The rows of the tables: ways to predict the classes of graphs, ours and the controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

import artlas
from artlas import GraphClassifier, Graphs, blocks
from artlas.blocks import Layout
from artlas.evaluation import controls
from artlas.learning import kernel_ridge
from artlas.learning.heads import Prototypes, SupportScaler
from artlas_paper.transfer.controls import log_sum_pool, z_plus_by
from benchmarks.accuracy import svm, wl
from benchmarks.accuracy.degree_roles import degree_roles

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prediction:
    """The classes predicted for the test graphs, [n], and their probabilities, [n, C] or None."""

    classes: Numbers
    probabilities: NDArray[np.float64] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)


class Predictor(Protocol):
    """What a row made of all graphs of a dataset, without their labels."""

    def __call__(self, train: Numbers, labels: Numbers, test: Numbers) -> Prediction:
        """Learn from some graphs and their labels, and predict others."""


@dataclass(frozen=True, eq=False)
class KernelHead:
    """Our classifier on vectors of blocks."""

    vectors: NDArray[Any]
    layout: Layout

    def __call__(self, train: Numbers, labels: Numbers, test: Numbers) -> Prediction:
        machine = GraphClassifier(blocks=self.layout).fit(self.vectors[train], labels)
        probabilities = machine.predict_proba(self.vectors[test])
        classes = np.asarray(machine.classes_)[probabilities.argmax(1)]
        full = np.zeros((len(test), int(machine.classes_.max()) + 1))
        full[:, machine.classes_] = probabilities
        return Prediction(classes, full)


@dataclass(frozen=True, eq=False)
class PrototypeHead:
    """The nearest class mean of standardised vectors."""

    vectors: NDArray[Any]

    def __call__(self, train: Numbers, labels: Numbers, test: Numbers) -> Prediction:
        scaler = SupportScaler.fit(self.vectors[train])
        head = Prototypes.fit(scaler.transform(self.vectors[train]), labels)
        parts = np.array_split(self.vectors[test], max(1, len(test) // 256))
        return Prediction(np.concatenate([head.predict(scaler.transform(p)) for p in parts]))


@dataclass(frozen=True, eq=False)
class RidgeHead:
    """Linear ridge regression on standardised vectors, the ridge chosen by leave-one-out."""

    vectors: NDArray[Any]

    def __call__(self, train: Numbers, labels: Numbers, test: Numbers) -> Prediction:
        scaler = SupportScaler.fit(self.vectors[train])
        rows, queries = (
            torch.from_numpy(
                scaler.transform(self.vectors[part]) / max(1, scaler.varies.sum()) ** 0.5
            )
            for part in (train, test)
        )
        classes, places = np.unique(labels, return_inverse=True)
        targets = torch.eye(len(classes), dtype=torch.float64)[torch.from_numpy(places)]
        weights = torch.ones(len(rows), dtype=torch.float64)
        found = kernel_ridge.fit(rows @ rows.T, targets, weights)
        scores = queries @ (rows.T @ found.coefficients) + found.intercept
        return Prediction(classes[scores.argmax(1).numpy()])


@dataclass(frozen=True, eq=False)
class WLMachine:
    """A support vector machine on the WL subtree kernel, tuned within the training graphs."""

    grams: Mapping[int, NDArray[np.float64]]

    def __call__(self, train: Numbers, labels: Numbers, test: Numbers) -> Prediction:
        classes, choice = svm.predict(self.grams, train, labels, test)
        return Prediction(classes, notes=asdict(choice))


Prepare = Callable[[Graphs], Predictor]


def ours(graphs: Graphs) -> Predictor:
    """Make our vectors, for our classifier."""
    return KernelHead(blocks.embed(graphs).numpy(), blocks.layout())


def compact(graphs: Graphs) -> Predictor:
    """Make our short vectors, for our classifier."""
    vectors = blocks.embed(graphs, "compact").numpy()
    return KernelHead(vectors, blocks.layout("compact"))


def plus(graphs: Graphs) -> NDArray[np.float32]:
    """Make z+ by the shipped model."""
    with torch.no_grad():
        return artlas.load("graph").embed(graphs, "plus").numpy()


def kernel_head(make: Callable[[Graphs], NDArray[Any]]) -> Prepare:
    """Return a row of our classifier on one block of vectors."""

    def prepare(graphs: Graphs) -> Predictor:
        vectors = np.asarray(make(graphs), dtype=np.float32)
        return KernelHead(vectors, Layout.of_widths({"vector": vectors.shape[1]}))

    return prepare


def hashed_wl(graphs: Graphs) -> Predictor:
    """Hash WL colours into one block a round, for our classifier."""
    vectors, widths = wl.hashed_features(graphs)
    return KernelHead(vectors, Layout.of_widths(widths))


ROWS: dict[str, Prepare] = {
    "artlas": ours,
    "artlas, compact": compact,
    "WL kernel, tuned SVM": lambda graphs: WLMachine(wl.grams(graphs)),
    "WL hashed, kernel head": hashed_wl,
    "z+, kernel head": kernel_head(plus),
    "z+, ridge": lambda graphs: RidgeHead(plus(graphs)),
    "z+, prototypes": lambda graphs: PrototypeHead(plus(graphs)),
    "degree roles, kernel head": kernel_head(lambda g: z_plus_by(g, degree_roles)),
    "log-sum pool, kernel head": kernel_head(log_sum_pool),
    "log-sum pool, prototypes": lambda graphs: PrototypeHead(log_sum_pool(graphs)),
    "mean pool, kernel head": kernel_head(controls.mean_pool),
    "degree histogram, kernel head": kernel_head(lambda g: controls.degree_histogram(g, 16)),
    "sizes, kernel head": kernel_head(controls.size),
}
SHORT = {  # for the command line
    "artlas": "artlas",
    "compact": "artlas, compact",
    "wl": "WL kernel, tuned SVM",
    "wl-hashed": "WL hashed, kernel head",
    "plus-kernel": "z+, kernel head",
    "plus-ridge": "z+, ridge",
    "plus": "z+, prototypes",
    "degree-roles": "degree roles, kernel head",
    "log-sum": "log-sum pool, kernel head",
    "log-sum-prototypes": "log-sum pool, prototypes",
    "mean": "mean pool, kernel head",
    "degrees": "degree histogram, kernel head",
    "sizes": "sizes, kernel head",
}
