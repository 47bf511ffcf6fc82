"""scikit-learn estimators that turn labelled graphs into predictions, with no knob to set."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from torch import Tensor

from artlas.checks import one_of
from artlas.errors import raise_graph_error
from artlas.learning.calibration import fit_sharpness, probabilities
from artlas.learning.estimator_base import Array, GraphEstimator, plain
from artlas.learning.fit_report import Explanation
from artlas.learning.targets import check_sample_weight, encode, numbers, targets_of


class GraphClassifier(ClassifierMixin, GraphEstimator):
    """Predict the classes of graphs from labelled ones.

    Every graph becomes one vector of named blocks (:func:`artlas.blocks.embed`); a mean of
    Gaussian kernels, one for every block, compares the vectors; kernel ridge regression on the
    classes scores them. All it needs is learned from the training graphs: nothing must be set.

    X is anything that :class:`artlas.Graphs` accepts, the path of a file, or vectors [n, D].

    preset: of the graphs' vectors, "full", "compact" or a :class:`artlas.blocks.VectorConfig`;
    blocks: of vectors, a Layout or a mapping of names to widths, by default one for all columns;
    weights: of blocks by name, 1 where not named, so that {} gives equal ones; by default powers of
    the blocks' alignments with the labels, chosen by leave-one-out; ridge: of the regression, by
    default chosen by leave-one-out; class_weight: "balanced" lets all classes weigh the same;
    exact_up_to: the most training graphs that are all compared with (beyond, ``landmarks`` of
    them, drawn by ``random_state``); verbose: print the report of the fit.

    After fit: ``report_`` says what it found, ``classes_`` are the classes.
    """

    def __init__(
        self,
        *,
        preset: Any = "full",
        blocks: Any = None,
        weights: Mapping[str, float] | None = None,
        ridge: float | None = None,
        class_weight: str | None = None,
        exact_up_to: int = 5000,
        landmarks: int = 4000,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            preset=preset,
            blocks=blocks,
            weights=weights,
            ridge=ridge,
            exact_up_to=exact_up_to,
            landmarks=landmarks,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GraphClassifier:
        """Fit to graphs and their labels [n], by default those that the graphs carry."""
        started = time.perf_counter()
        rows = self._training_rows(X)
        labels = targets_of(y, rows)
        classes, places = encode(labels)
        weights = self._class_weights(check_sample_weight(sample_weight, len(places)), places)
        if empty := [c for i, c in enumerate(classes) if not weights[places == i].any()]:
            fix = "drop its graphs, or give them weight"
            raise_graph_error("a class has no weight", f"class {empty[0]!r}", fix)
        targets = torch.eye(len(classes), dtype=torch.float64)[torch.from_numpy(places)]
        left_out = self._fit(rows, targets, weights).numpy()
        self.classes_, kept = classes, weights > 0
        self.anchor_labels_ = labels[self.machine_.anchors.numpy()]
        self.sharpness_ = fit_sharpness(left_out, places[kept], weights[kept])
        right = left_out.argmax(1) == places[kept]
        quality = {"accuracy": float(np.average(right, weights=weights[kept]))}
        self._report(started, targets, len(classes), quality)
        return self

    def decision_function(self, X: Any) -> Array:
        """Score every class, [n, C]; for two classes return the difference, [n]."""
        scores = self._scores(self._rows(X))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every graph, [n]."""
        return self._predict(self._rows(X))

    def predict_proba(self, X: Any) -> Array:
        """Estimate the probability of every class, [n, C], calibrated by leave-one-out."""
        return probabilities(self._scores(self._rows(X)), self.sharpness_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the accuracy for graphs with labels [n], by default those they carry."""
        rows = self._read(X)
        y = targets_of(y, rows)
        return float(accuracy_score(y, self._predict(rows.values), sample_weight=sample_weight))

    def explain(self, graph: Any, count: int = 5) -> Explanation:
        """Explain the prediction for one graph: the blocks' parts, and the nearest graphs."""
        row = self._one_row(graph)
        scores = self._scores(row)
        ranked = np.argsort(-scores[0], kind="stable")
        first, second = ranked[0], ranked[1]
        contributions, base, neighbours = self._explained(row, count)
        return Explanation(
            prediction=plain(self.classes_[first]),
            probability=float(probabilities(scores, self.sharpness_)[0, first]),
            runner_up=plain(self.classes_[second]),
            contributions={
                name: float(part[first] - part[second]) for name, part in contributions.items()
            },
            base=float(base[first] - base[second]),
            neighbours=neighbours,
        )

    def _scores(self, rows: Tensor) -> Array:
        return self.machine_.scores(rows).numpy()

    def _predict(self, rows: Tensor) -> NDArray[Any]:
        return np.asarray(self.classes_[self._scores(rows).argmax(1)])

    def _class_weights(self, weights: Array, places: NDArray[np.int64]) -> Array:
        if self.class_weight is None:
            return weights
        one_of(self, "class_weight", ("balanced",))
        totals = np.bincount(places, weights)
        return weights * (weights.sum() / len(totals) / np.where(totals > 0, totals, 1))[places]


class GraphRegressor(RegressorMixin, GraphEstimator):
    """Predict numbers for graphs from graphs with known ones.

    As :class:`artlas.GraphClassifier`, with the numbers in place of the classes.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GraphRegressor:
        """Fit to graphs and their numbers [n], by default those that the graphs carry."""
        started = time.perf_counter()
        rows = self._training_rows(X)
        values = numbers(targets_of(y, rows))
        weights = check_sample_weight(sample_weight, len(values))
        targets = torch.from_numpy(values)[:, None]
        left_out = self._fit(rows, targets, weights)[:, 0].numpy()
        self.anchor_labels_ = values[self.machine_.anchors.numpy()]
        known, kept = values[weights > 0], weights[weights > 0]
        error = float(np.sqrt(np.average((left_out - known) ** 2, weights=kept)))
        quality = {"R²": float(r2_score(known, left_out, sample_weight=kept)), "RMSE": error}
        self._report(started, targets, None, quality)
        return self

    def predict(self, X: Any) -> Array:
        """Predict the number of every graph, [n]."""
        return self._predict(self._rows(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute R² for graphs with numbers [n], by default those they carry."""
        rows = self._read(X)
        y = targets_of(y, rows)
        return float(r2_score(y, self._predict(rows.values), sample_weight=sample_weight))

    def explain(self, graph: Any, count: int = 5) -> Explanation:
        """Explain the prediction for one graph: the blocks' parts, and the nearest graphs."""
        row = self._one_row(graph)
        contributions, base, neighbours = self._explained(row, count)
        return Explanation(
            prediction=self._predict(row).item(),
            probability=None,
            runner_up=None,
            contributions={name: part.item() for name, part in contributions.items()},
            base=base.item(),
            neighbours=neighbours,
        )

    def _predict(self, rows: Tensor) -> Array:
        return self.machine_.scores(rows)[:, 0].numpy()
