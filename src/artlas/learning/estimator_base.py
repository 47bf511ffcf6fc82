"""What the classifier and the regressor of graphs share: settings, rows, fitting and files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from artlas.checks import integer, one_of, positive
from artlas.errors import quoted, raise_graph_error
from artlas.learning import block_weights, kernel_machine, saved_estimators
from artlas.learning.fit_report import FitReport, Neighbour
from artlas.learning.kernel_machine import Settings
from artlas.learning.rows import Rows, is_vectors, layout_of, rows_of_graphs, rows_of_vectors
from artlas.learning.targets import targets_of

Array = NDArray[np.float64]


class GraphEstimator(BaseEstimator):
    """What both estimators of graphs have in common."""

    def __init__(
        self,
        *,
        preset: Any = "full",
        blocks: Any = None,
        weights: Mapping[str, float] | None = None,
        ridge: float | None = None,
        exact_up_to: int = 5000,
        landmarks: int = 4000,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.preset = preset
        self.blocks = blocks
        self.weights = weights
        self.ridge = ridge
        self.exact_up_to = exact_up_to
        self.landmarks = landmarks
        self.random_state = random_state
        self.verbose = verbose

    def novelty(self, X: Any) -> Array:
        """Compute the share of training graphs that had a more similar neighbour, [n].

        From 0 to 1; near 1, a graph is unlike all that were seen.
        """
        rows = self._rows(X)  # first, as it refuses an estimator that is not fitted
        return self.machine_.novelty(rows).numpy()

    def outside(self, X: Any, level: float = 0.01) -> NDArray[np.bool_]:
        """Tell which graphs lie outside what was seen, [n].

        True where at most a share ``level`` of the training graphs had neighbours as far away.
        """
        if not 0 <= level < 1:
            raise_graph_error("the level is no share", quoted(level), "pass one from 0 to below 1")
        return self.novelty(X) >= 1 - level

    def leave_one_block_out(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> dict[str, float]:
        """Measure by how much each block raises the leave-one-out accuracy, or R², of a fit.

        Fits once to the graphs with all blocks, and once without each of them, with equal weights
        unless ``weights`` gives others.
        """
        rows = self._read(X)
        y = targets_of(y, rows)

        def quality(**without: float) -> float:
            made = clone(self).set_params(blocks=self.layout_, verbose=False)
            made.set_params(weights={**(self.weights or {}), **without})
            report: FitReport = made.fit(rows.values, y, sample_weight).report_
            return next(iter(report.quality.values()))

        names = self.machine_.kernel.names
        if len(names) < 2:
            fix = "fit to vectors of several blocks"
            raise_graph_error("there is no other block", f"{len(names)} that varies", fix)
        whole = quality()
        return {name: whole - quality(**{name: 0.0}) for name in names}

    def save(self, folder: Any) -> None:
        """Write the fitted estimator into a folder, as safetensors and JSON."""
        check_is_fitted(self)
        saved_estimators.save(self, folder)

    @classmethod
    def load(cls, folder: Any) -> Any:
        """Load an estimator from a folder that :meth:`save` wrote."""
        return saved_estimators.load(cls, folder)

    def _fit(self, rows: Rows, targets: Tensor, weights: Array) -> Tensor:
        """Fit the kernel and its regression to the rows of positive weight.

        Returns the scores of every one by the regression fitted to all others.
        """
        self.check_settings()
        layout = layout_of(rows, self.blocks, self.preset)
        settings = Settings(
            _check_weights(self.weights, layout.names),
            self.ridge,
            self.exact_up_to,
            self.landmarks,
            self.random_state,
        )
        kept = torch.from_numpy(weights.nonzero()[0])
        values = rows.values if len(kept) == len(weights) else rows.values[kept]
        positive_weights = torch.from_numpy(weights)[kept]
        machine, left_out = kernel_machine.fit(
            values, layout, targets[kept], positive_weights, settings
        )
        self.machine_ = replace(machine, anchors=kept[machine.anchors])
        self.layout_, self.n_node_features_in_ = layout, rows.num_features
        self.n_features_in_ = layout.width
        return left_out

    def _report(
        self, started: float, targets: Tensor, classes: int | None, quality: dict[str, float]
    ) -> None:
        machine = self.machine_
        anchors = len(machine.anchors)
        self.report_ = FitReport(
            graphs=len(targets),
            columns=self.layout_.width,
            classes=classes,
            landmarks=anchors if len(targets) > self.exact_up_to else None,
            ridge=machine.ridge,
            quality=quality,
            weights=dict(zip(machine.kernel.names, machine.kernel.weights, strict=True)),
            alignments=block_weights.alignments(machine.kernel, targets[machine.anchors]),
            seconds=time.perf_counter() - started,
        )
        if self.verbose:
            print(self.report_)

    def _training_rows(self, X: Any) -> Rows:
        if not is_vectors(X):
            self.__dict__.pop("feature_names_in_", None)  # of vectors that it was fitted to before
            return rows_of_graphs(X, preset=self.preset)
        return rows_of_vectors(self, X, reset=True)

    def _rows(self, X: Any) -> Tensor:
        return self._read(X).values

    def _read(self, X: Any) -> Rows:
        check_is_fitted(self)
        if is_vectors(X):
            return rows_of_vectors(self, X, reset=False)
        if self.n_node_features_in_ is None:
            fix = "pass vectors, or fit to graphs"
            raise_graph_error("this was fitted to vectors", f"a {type(X).__name__}", fix)
        return rows_of_graphs(X, self.n_node_features_in_, self.preset)

    def _one_row(self, graph: Any) -> Tensor:
        one = isinstance(graph, (np.ndarray, Tensor)) and graph.ndim == 1
        row = self._rows(graph[None] if one else graph)
        if len(row) != 1:
            raise_graph_error("one graph is explained at a time", f"{len(row)}", "pass one")
        return row

    def _explained(self, row: Tensor, count: int) -> tuple[dict[str, Tensor], Tensor, Any]:
        contributions, base = self.machine_.contributions(row)
        near = zip(*(part.tolist() for part in self.machine_.nearest(row, count)), strict=True)
        labels, anchors = self.anchor_labels_, self.machine_.anchors
        found = [Neighbour(int(anchors[i]), value, plain(labels[i])) for value, i in near]
        return contributions, base, tuple(found)

    def check_settings(self) -> None:
        """Refuse settings that no fit can use."""
        if self.ridge is not None:
            positive(self, "ridge")
        integer(self, "exact_up_to", least=0)
        integer(self, "landmarks", least=2)
        integer(self, "random_state", least=0)
        one_of(self, "verbose", (True, False))


def _check_weights(weights: Any, names: tuple[str, ...]) -> Mapping[str, float] | None:
    if weights is None:
        return None
    fix = f"pass a mapping of numbers from 0 for blocks among {', '.join(names)}"
    if not isinstance(weights, Mapping):
        raise_graph_error("the blocks' weights are not a mapping", quoted(weights), fix)
    for name, weight in weights.items():
        number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if name not in names or not number or not 0 <= weight < float("inf"):
            raise_graph_error("a block's weight does not fit", quoted({name: weight}), fix)
    if not any(weights.get(name, 1) for name in names):
        raise_graph_error("all blocks have weight zero", quoted(weights), fix)
    return weights


def plain(label: Any) -> Any:
    """Return a label as a Python object."""
    return label.item() if isinstance(label, np.generic) else label
