"""scikit-learn's interface: graphs to vectors, and the paper's two heads as classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from artlas.errors import raise_graph_error
from artlas.graphs.collection import Graphs
from artlas.io.reading import as_graphs
from artlas.learning.heads import Linear, Prototypes, SupportScaler
from artlas.method.checkpoint import load
from artlas.method.model import ART
from artlas.method.representations import check_representation, feature_names


class GraphEmbedder(TransformerMixin, BaseEstimator):
    """One vector a graph by a frozen model; ``fit`` loads it and learns nothing from the graphs.

    model: ``graph``, ``node``, a folder of weights, or an :class:`artlas.ART`; representation: as
    ``ART.embed`` takes it. Graphs are whatever :class:`artlas.Graphs` accepts, or a list of them.
    """

    def __init__(self, model: Any = "graph", representation: str = "plus") -> None:
        self.model = model
        self.representation = representation

    def fit(self, X: Any, y: Any = None) -> GraphEmbedder:
        """Load the model, and note how many features the graphs' nodes have."""
        check_representation(self.representation)
        self.model_ = self.model if isinstance(self.model, ART) else load(self.model)
        self.n_node_features_in_ = _width(as_graphs(X))
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The representations of graphs, [n, d]."""
        check_is_fitted(self)
        graphs = as_graphs(X)
        if _width(graphs) != self.n_node_features_in_:
            raise_graph_error(
                f"the nodes have {_width(graphs)} features, and {self.n_node_features_in_} when "
                "fitted",
                f"{graphs!r}",
                "give all graphs the same features",
            )
        return np.asarray(self.model_.embed(graphs, self.representation).cpu())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """What every column is: ``q_0``, ``role_31_x_5``, ..."""
        check_is_fitted(self)
        names = feature_names(self.model_.config, self.representation, self.n_node_features_in_)
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.requires_fit = True
        return tags


def _width(graphs: Graphs) -> int:
    return 0 if graphs.x is None else graphs.x.shape[1]


class _Head(ClassifierMixin, BaseEstimator):
    """Standardise by the training rows alone, then one of the heads."""

    _head: type[Prototypes] | type[Linear]

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows [n, d] and labels [n]."""
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, marks = np.unique(labels, return_inverse=True)
        self.scaler_ = SupportScaler.fit(rows)
        self.head_ = self._head.fit(self.scaler_.transform(rows), marks)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """One score a class, [n, C], the highest for the predicted one; [n] where there are two."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        scores = self.head_.scores(self.scaler_.transform(rows))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row, [n]."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        chosen: NDArray[Any] = self.classes_[self.head_.predict(self.scaler_.transform(rows))]
        return chosen

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The soft-max of the scores, [n, C]."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        scores = self.head_.scores(self.scaler_.transform(rows))
        shares = np.exp(scores - scores.max(1, keepdims=True))
        return shares / shares.sum(1, keepdims=True)


class PrototypeClassifier(_Head):
    """The nearest class mean after standardisation: the paper's head at graph level."""

    _head = Prototypes


class FewShotLinear(_Head):
    """Balanced logistic regression after standardisation: the paper's head at node level."""

    _head = Linear
