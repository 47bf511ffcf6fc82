"""Graph embedding and the paper's two classification heads as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from artlas.errors import raise_graph_error
from artlas.graphs.collection import Graphs
from artlas.io.reading import as_graphs
from artlas.learning.heads import Linear, Prototypes, SupportScaler
from artlas.method.checkpoint import load
from artlas.method.model import ART
from artlas.method.representations import DEFAULT, check_representation, feature_names


class GraphEmbedder(TransformerMixin, BaseEstimator):
    """Embed graphs with a frozen model; ``fit`` loads it and learns nothing from the graphs.

    model: ``graph``, ``node``, a folder of weights, or an :class:`artlas.ART`; representation: as
    in ``ART.embed``. Graphs are anything that :class:`artlas.Graphs` accepts, or a list of them.
    """

    def __init__(self, model: Any = "graph", representation: str = DEFAULT) -> None:
        self.model = model
        self.representation = representation

    def fit(self, X: Any, y: Any = None) -> GraphEmbedder:
        """Load the model, and record the number of node features."""
        check_representation(self.representation)
        self.model_ = self.model if isinstance(self.model, ART) else load(self.model)
        self.n_node_features_in_ = _width(as_graphs(X))
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed the graphs, [n, d]."""
        check_is_fitted(self)
        graphs = as_graphs(X)
        width, fitted = _width(graphs), self.n_node_features_in_
        if width != fitted:
            wrong = f"the nodes have {width} features, but {fitted} when fitted"
            raise_graph_error(wrong, f"{graphs!r}", "give all graphs the same features")
        return np.asarray(self.model_.embed(graphs, self.representation).cpu())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name every column: ``quantiles_core_3``, ``colours_1_17``, or ``role_31_x_5``, ..."""
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
    """Standardise by the training rows, then apply a head."""

    _head: type[Prototypes] | type[Linear]

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to rows [n, d] and labels [n]."""
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, targets = np.unique(labels, return_inverse=True)
        self.scaler_ = SupportScaler.fit(rows)
        self.head_ = self._head.fit(self.scaler_.transform(rows), targets)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score every class, [n, C]; for two classes return the difference, [n]."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every row, [n]."""
        rows = self._scaled(X)  # first, as it refuses an estimator that is not fitted
        return np.asarray(self.classes_[self.head_.predict(rows)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute the softmax of the scores, [n, C]."""
        return np.asarray(softmax(self._scores(X), axis=1))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        rows = self._scaled(X)
        return self.head_.scores(rows)

    def _scaled(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self.scaler_.transform(validate_data(self, X, dtype=np.float64, reset=False))


class PrototypeClassifier(_Head):
    """Predict the nearest class mean after standardisation, the paper's head for graphs."""

    _head = Prototypes


class FewShotLinear(_Head):
    """Balanced logistic regression after standardisation, the paper's head for nodes."""

    _head = Linear
