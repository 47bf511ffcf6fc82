"""The work of a run that predicts by a saved estimator: a row of predictions for every graph."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.embedding.pieces import graph_labels
from artlas.embedding.table import UNLABELLED, Rows
from artlas.errors import raise_read_error
from artlas.files.stored import read_json
from artlas.graphs.collection import Graphs
from artlas.learning.calibration import probabilities
from artlas.learning.graph_estimators import GraphClassifier, GraphRegressor
from artlas.learning.rows import rows_of_graphs
from artlas.learning.saved_estimators import FACTS, TENSORS

LEVEL = 0.01  # of the training graphs, by which a graph is said to lie outside
_VALUES_PER_NODE = 256  # float32 at work on a node, beside its features
_NODES_PER_GRAPH = 8  # or more, which share the memory of a vector

Estimator = GraphClassifier | GraphRegressor


def load_estimator(folder: Path) -> Estimator:
    """Load a classifier or a regressor, whichever the folder holds."""
    path = folder / FACTS
    name = read_json(path).get("estimator") if path.is_file() else None
    kind = GraphRegressor if name == GraphRegressor.__name__ else GraphClassifier
    return kind.load(folder)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicts by a fitted estimator; ``digest`` is that of its files."""

    estimator: Estimator
    digest: str
    bases = 0  # there is no atlas
    remedy = "give its nodes the features of those that the estimator was fitted to"

    @classmethod
    def load(cls, folder: Path) -> Prediction:
        """Load the estimator of a folder."""
        estimator = load_estimator(folder)
        if estimator.n_node_features_in_ is None:
            fix = "fit one to graphs: artlas fit"
            raise_read_error(folder, "this predicts from vectors", "files of graphs", fix)
        content = b"".join((folder / name).read_bytes() for name in (FACTS, TENSORS))
        return cls(estimator, hashlib.sha256(content).hexdigest())

    @property
    def reference(self) -> tuple[str, int]:
        return "the training graphs", self.estimator.n_node_features_in_ or 0

    def settings(self) -> dict[str, Any]:
        return {"estimator": self.digest}

    def nodes_within(self, budget: int, width: int) -> int:
        vector = self.estimator.n_features_in_ // _NODES_PER_GRAPH
        return max(1, budget // (4 * (_VALUES_PER_NODE + 12 * width + vector)))

    def labels(self, graphs: Graphs) -> NDArray[Any]:
        if isinstance(self.estimator, GraphClassifier):
            return graph_labels(graphs)
        if graphs.y is None or graphs.y.shape != (len(graphs),):
            return np.full(len(graphs), np.nan)
        return graphs.y.double().numpy()

    def rows(self, graphs: Graphs, name: str, first: int) -> Rows:
        estimator = self.estimator
        vectors = rows_of_graphs(graphs, estimator.n_node_features_in_, estimator.preset).values
        scores, novelty = (found.numpy() for found in estimator.machine_.judge(vectors))
        columns: dict[str, NDArray[Any]] = {
            "source": np.full(len(graphs), name),
            "index": np.arange(first, first + len(graphs)),
            "label": self.labels(graphs),
        }
        if isinstance(estimator, GraphClassifier):
            classes = estimator.classes_
            classes = classes.astype(np.str_) if classes.dtype.kind == "O" else classes
            shares = probabilities(scores, estimator.sharpness_).astype(np.float32)
            columns["prediction"] = classes[scores.argmax(1)]
            columns |= {f"p_{c}": shares[:, i] for i, c in enumerate(classes.tolist())}
        else:
            columns["prediction"] = scores[:, 0]
        columns["novelty"] = novelty.astype(np.float32)
        columns["outside"] = novelty >= 1 - LEVEL
        return Rows(columns, {"estimator": type(estimator).__name__, "sha256": self.digest})

    def count(self, rows: Rows) -> tuple[float, ...]:
        """Count the rows outside, those with a label, and what :meth:`describe` needs of these."""
        columns, outside = rows.columns, float(rows.columns["outside"].sum())
        label, prediction = columns["label"], columns["prediction"]
        if isinstance(self.estimator, GraphClassifier):
            labelled = label != UNLABELLED
            comparable = prediction.dtype.kind != "U"
            known = labelled & np.isin(label, self.estimator.classes_) & comparable
            right = known & (label == prediction) if comparable else known
            return outside, float(labelled.sum()), float(known.sum()), float(right.sum())
        labelled = ~np.isnan(label)
        error = label[labelled] - prediction[labelled]
        centred = label[labelled] - float(self.estimator.machine_.intercept)
        squares = (centred**2).sum(), (error**2).sum()
        return outside, float(labelled.sum()), float(centred.sum()), *map(float, squares)

    def describe(self, totals: tuple[float, ...]) -> list[str]:
        """Say how many graphs lie outside, and how good the predictions are where labels are."""
        outside, labelled, *rest = totals
        said = []
        if outside:
            verb = "lies" if outside == 1 else "lie"
            said.append(f"{_graphs(outside)} {verb} outside what the estimator has seen.")
        if labelled and isinstance(self.estimator, GraphClassifier):
            said.append(_accuracy(labelled, *rest))
        elif labelled:
            said.append(_fit(labelled, *rest))
        return said


def _accuracy(labelled: float, known: float, right: float) -> str:
    if not known:
        return "The labels of the input are none of the estimator's classes: there is no accuracy."
    said = f"Accuracy {right / labelled:.3f} over {_graphs(labelled)} with labels"
    others = labelled - known
    more = f"; {others:,.0f} of the labels are none of the classes and count as wrong"
    return f"{said}{more if others else ''}."


def _fit(labelled: float, total: float, squares: float, errors: float) -> str:
    spread = squares - total**2 / labelled
    quality = f"R² {1 - errors / spread:.3f}, " if spread > 0 else ""
    return f"{quality}RMSE {(errors / labelled) ** 0.5:.4g} over {_graphs(labelled)} with labels."


def _graphs(count: float) -> str:
    return "1 graph" if count == 1 else f"{count:,.0f} graphs"
