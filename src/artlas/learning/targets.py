"""Check labels, regression targets and sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from artlas.errors import quoted, raise_graph_error
from artlas.learning.rows import Rows

_DROP = "drop those graphs, or label them"


def targets_of(y: Any, rows: Rows) -> NDArray[Any]:
    """Return y, or the labels of the graphs if it is None, [n]; there must be one each."""
    if y is None and rows.labels is None:
        wrong = "fit requires y to be passed, but the target y is None"
        fix = "pass one label per graph, or graphs that carry them (with_labels)"
        raise_graph_error(wrong, f"{len(rows.values)} graphs without labels", fix)
    y = rows.labels if y is None else y
    values = np.asarray(column_or_1d(y, warn=True))
    if len(values) != len(rows.values):
        got = f"{len(values)} labels for {len(rows.values)} graphs"
        raise_graph_error("there is not one label per graph", got, "pass one label per graph")
    if len(values) < 2:
        raise_graph_error("there is nothing to compare", "one sample", "fit to two at least")
    if bad := [i for i, value in enumerate(values.tolist()) if value is None or value != value]:
        got = f"{values[bad[0]]} at {bad[0]} (Input y contains NaN)"
        raise_graph_error("a label is missing", got, _DROP)
    return values


def encode(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes [C], ascending, and every label's place among them, [n]."""
    if labels.dtype.kind == "O":
        kinds = {type(label) for label in labels.tolist()}
        if len(kinds) > 1:
            got = ", ".join(sorted(kind.__name__ for kind in kinds))
            fix = "give all labels one kind, such as strings"
            raise_graph_error("the labels are of several kinds", got, fix)
    kind = type_of_target(labels)
    if kind not in ("binary", "multiclass"):
        fix = "pass classes, or use GraphRegressor for numbers"
        raise_graph_error(f"Unknown label type: {kind}", quoted(labels[:3].tolist()), fix)
    classes, places = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        got = f"one class, {quoted(classes.tolist()[0])}"
        raise_graph_error("there is only one class to choose from", got, "add graphs of another")
    return classes, places.astype(np.int64)


def numbers(targets: NDArray[Any]) -> NDArray[np.float64]:
    """Return targets of a regression as float64."""
    if targets.dtype.kind in "OUS":
        try:
            targets = np.array([_number(value) for value in targets.tolist()])
        except TypeError:
            fix = "pass numbers, or use GraphClassifier for classes"
            raise_graph_error("a target is not a number", quoted(targets[:3].tolist()), fix)
    values = targets.astype(np.float64)
    if not np.isfinite(values).all():
        place = int((~np.isfinite(values)).argmax())
        got = f"{values[place]} at {place} (Input y contains infinity)"
        raise_graph_error("a target is not finite", got, _DROP)
    return values


def _number(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError
    return float(value)


def check_sample_weight(sample_weight: Any, count: int) -> NDArray[np.float64]:
    """Return weights [n] that are finite and not negative, ones if None is given."""
    if sample_weight is None:
        return np.ones(count)
    fix = "pass one number from 0 per graph, some of them positive"
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise_graph_error("a sample weight is not a number", quoted(sample_weight), fix)
    if weights.ndim != 1 or len(weights) != count:
        got = f"shape {list(weights.shape)} for {count} graphs"
        raise_graph_error("there is not one sample weight per graph", got, fix)
    if not np.isfinite(weights).all() or weights.min() < 0:
        bad = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise_graph_error("a sample weight is negative or not finite", f"{bad}", fix)
    if weights.max() == 0:
        raise_graph_error("all sample weights are zero", f"{count} zeros", fix)
    return weights
