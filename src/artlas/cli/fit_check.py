"""Cross-validate an estimator beside trivial controls, which have the same kernel and folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from artlas.blocks.layout import Layout
from artlas.evaluation import controls
from artlas.evaluation.accuracy import Accuracy
from artlas.graphs.collection import Graphs
from artlas.learning.graph_estimators import GraphClassifier, GraphRegressor
from artlas.learning.rows import rows_of_graphs

Estimator = GraphClassifier | GraphRegressor
Values = NDArray[Any]

MOST = 1000  # graphs, so that the check takes seconds
FOLDS, REPEATS = 5, 3
FEW = 500  # graphs up to which folds are drawn several times
TINY = 30  # graphs up to which each is a fold, where classes do not forbid it
OURS = "estimator"
CONTROLS: dict[str, Callable[[Graphs], Values]] = {
    "sizes": controls.size,
    "sum of features": controls.log_sum_pool,
    "degree histogram": controls.degree_histogram,
    "roles by degree": controls.degree_roles,
}


@dataclass(frozen=True)
class Check:
    """Cross-validated quality of an estimator and of controls, by name; the estimator is first.

    measure: accuracy, balanced accuracy or R²; scores: of every graph that was predicted by fits
    to others, whose mean is the measure; total: graphs there are, of which these are a sample;
    folds, repeats: how they were divided.
    """

    measure: str
    scores: Mapping[str, Accuracy]
    graphs: int
    total: int
    folds: int
    repeats: int

    @property
    def best_control(self) -> str:
        """The control of the highest mean, the first of those."""
        return max(
            [name for name in self.scores if name != OURS], key=lambda n: self.scores[n].mean
        )

    def lead(self, name: str) -> tuple[float, float]:
        """Compute how far the estimator is ahead of a control, and the paired standard error."""
        return self.scores[OURS].difference_from(self.scores[name])


def check(
    estimator: Estimator, graphs: Graphs, labels: Values, report: Callable[[int, int], None]
) -> Check:
    """Cross-validate a fitted estimator, and controls with its settings, on at most MOST graphs.

    report: takes how many fits are done, and how many there are.
    """
    seed, total = estimator.random_state, len(graphs)
    labels = labels if is_classifier(estimator) else labels.astype(np.float64)
    places = np.unique(labels, return_inverse=True)[1]
    if total > MOST:
        chosen = np.sort(_by_value(places, seed)[np.arange(MOST) * total // MOST])
        graphs, labels, places = graphs[chosen], labels[chosen], places[chosen]
    methods = _methods(estimator, graphs)
    folds, repeats = _division(len(graphs), places, is_classifier(estimator))
    weights, measure = np.ones(len(graphs)), "R²"
    if isinstance(estimator, GraphClassifier):
        measure = "accuracy" if estimator.class_weight is None else "balanced accuracy"
        if estimator.class_weight is not None:
            sizes = np.bincount(places)
            weights = len(places) / np.count_nonzero(sizes) / sizes[places]
    predict = _predict_class if is_classifier(estimator) else _predict_number
    done, scores = 0, {name: np.zeros(len(graphs)) for name in methods}
    for repeat in range(repeats):
        fold = _folds(places, folds, seed + repeat)
        for name, (rows, layout) in methods.items():
            found = np.empty(len(graphs), dtype=labels.dtype)
            for number in range(folds):
                test = fold == number
                found[test] = predict(estimator, rows, layout, labels, test)
                done += 1
                report(done, repeats * folds * len(methods))
            scores[name] += _score(labels, found, weights, is_classifier(estimator)) / repeats
    accuracies = {name: Accuracy(values) for name, values in scores.items()}
    return Check(measure, accuracies, len(graphs), total, folds, repeats)


def _methods(estimator: Estimator, graphs: Graphs) -> dict[str, tuple[Values | None, Any]]:
    """Return rows and blocks by name; None stands for a prediction that looks at no graph."""
    found: dict[str, tuple[Values | None, Any]] = {}
    found[OURS] = rows_of_graphs(graphs, preset=estimator.preset).values.numpy(), estimator.layout_
    for name, control in CONTROLS.items():
        if graphs.x is not None or name != "sum of features":
            rows = control(graphs)
            found[name] = rows, Layout.of_widths({"control": rows.shape[1]})
    found["majority class" if is_classifier(estimator) else "mean of labels"] = None, None
    return found


def _division(count: int, places: Values, classes: bool) -> tuple[int, int]:
    """Return how many folds there are, and how often they are drawn."""
    smallest = int(np.bincount(places).min()) if classes else 1
    if count <= TINY and smallest == 1:
        return count, 1
    # Not one graph each: of two classes of equal size, the one left out is then the rarer one.
    # A class of one graph is never learned when it is tested, however many folds there are.
    folds = FOLDS if smallest == 1 else min(FOLDS, smallest)
    return folds, REPEATS if count <= FEW else 1


def _by_value(places: Values, seed: int) -> NDArray[np.int64]:
    """Order graphs by class, or by number, and at random among equals."""
    return np.lexsort((np.random.default_rng(seed).random(len(places)), places))


def _folds(places: Values, folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of every graph; each class is spread evenly."""
    found = np.empty(len(places), dtype=np.int64)
    found[_by_value(places, seed)] = np.arange(len(places)) % folds
    return found


def _predict_class(
    estimator: Estimator, rows: Values | None, layout: Any, labels: Values, test: Values
) -> Values:
    classes, counts = np.unique(labels[~test], return_counts=True)
    if rows is None or len(classes) == 1:
        return np.full(test.sum(), classes[counts.argmax()])
    return _refitted(estimator, rows, layout, labels, test)


def _predict_number(
    estimator: Estimator, rows: Values | None, layout: Any, labels: Values, test: Values
) -> Values:
    if rows is None:
        return np.full(test.sum(), labels[~test].mean())
    return _refitted(estimator, rows, layout, labels, test)


def _refitted(
    estimator: Estimator, rows: Values, layout: Any, labels: Values, test: Values
) -> Values:
    made = clone(estimator).set_params(blocks=layout, weights=None, verbose=False)
    return np.asarray(made.fit(rows[~test], labels[~test]).predict(rows[test]))


def _score(labels: Values, found: Values, weights: Values, classes: bool) -> Values:
    if classes:
        return np.asarray(weights * (labels == found))
    return np.asarray(1 - (labels - found) ** 2 / max(labels.var(), np.finfo(float).tiny))


def verdict(found: Check) -> str:
    """Say in a sentence whether the estimator is ahead of the best control."""
    control = found.best_control
    lead, error = found.lead(control)
    by = f"{quantity(found, abs(lead))} (standard error {quantity(found, error, bare=True)})"
    if lead > 2 * error:
        return f"The estimator is ahead of the best control, {control}, by {by}."
    if lead < -2 * error:
        return f"A control is better: {control} is ahead of the estimator by {by}."
    return f"A control is as good: {control} and the estimator are {by} apart."


def quantity(found: Check, value: float, bare: bool = False) -> str:
    """Format a difference: points of percent, or R²."""
    if found.measure == "R²":
        return f"{value:.3f}" if bare else f"{value:.3f} of R²"
    return f"{100 * value:.1f}" if bare else f"{100 * value:.1f} points"


def rows_to_show(found: Check) -> Iterator[tuple[str, str, str]]:
    """Yield every row of the table: name, quality, how far behind the estimator it is."""
    scale, digits = (1, 3) if found.measure == "R²" else (100, 1)
    for name, score in found.scores.items():
        error = score.std / len(score.episodes) ** 0.5
        quality = f"{scale * score.mean:.{digits}f} ± {scale * error:.{digits}f}"
        lead, spread = found.lead(name)
        ahead = f"{0 - scale * lead:+.{digits}f} ± {scale * spread:.{digits}f}"
        yield name, quality, "" if name == OURS else ahead


def note(found: Check) -> str:
    """Say on what the figures are."""
    how = f"{found.folds} stratified folds"
    if found.folds == found.graphs:
        how = "every graph predicted from all others"
    elif found.repeats > 1:
        how += f", drawn {found.repeats} times"
    which = f"{found.graphs:,} graphs"
    if found.graphs < found.total:
        which = f"a stratified sample of {found.graphs:,} of {found.total:,} graphs"
    return f"On {which}: {how}. ± is the standard error over graphs."
