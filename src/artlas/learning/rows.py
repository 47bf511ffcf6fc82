"""Turn graphs, or vectors already made, into checked rows of named blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import Tensor

from artlas import blocks
from artlas.blocks.layout import Layout
from artlas.errors import quoted, raise_graph_error
from artlas.graphs.collection import Graphs
from artlas.io.reading import as_graphs

_CHUNK = 2048


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of named blocks.

    values: float32 or float64 [n, D]; labels: those of the graphs, [n] or None; num_features: of
    the graphs' nodes, None for vectors.
    """

    values: Tensor
    labels: NDArray[Any] | None
    num_features: int | None


def is_vectors(X: Any) -> bool:
    """Tell whether X is a table of numbers: an array, a tensor, a data frame or nested lists."""
    if hasattr(X, "__array__"):
        values = np.asarray(X.detach() if isinstance(X, Tensor) else X)
        return values.ndim == 2 or (values.ndim < 2 and values.dtype.kind != "O")
    if not isinstance(X, (list, tuple)) or not X or isinstance(X[0], str):
        return False
    first = X[0]
    one_dimensional = isinstance(first, (np.ndarray, Tensor)) and first.ndim == 1
    listed = isinstance(first, (list, tuple)) and len(first) > 0
    return one_dimensional or (listed and all(isinstance(value, Real) for value in first))


def rows_of_vectors(estimator: Any, X: Any, reset: bool) -> Rows:
    """Check vectors [n, D], and record their width if ``reset``, else compare it."""
    X = X.detach().cpu().numpy() if isinstance(X, Tensor) else X
    dtypes = [np.float64, np.float32]
    # Finiteness is checked below, by a message that says where.
    values = validate_data(estimator, X, dtype=dtypes, reset=reset, ensure_all_finite=False)
    return Rows(_finite(torch.from_numpy(np.require(values, requirements=["C", "W"]))), None, None)


def rows_of_graphs(X: Any, num_features: int | None = None, preset: Any = "full") -> Rows:
    """Embed graphs, whose nodes must have ``num_features`` features if it is given."""
    graphs = as_graphs(X)
    if num_features is not None and graphs.num_features != num_features:
        wrong = f"the nodes have {graphs.num_features} features, but {num_features} when fitted"
        raise_graph_error(wrong, f"{graphs!r}", "give all graphs the same features")
    return Rows(_finite(blocks.embed(graphs, preset)), _labels(graphs), graphs.num_features)


def layout_of(rows: Rows, declared: Any, preset: Any = "full") -> Layout:
    """Return the blocks of the rows: those declared, or the usual ones of graphs."""
    width = rows.values.shape[1]
    if rows.num_features is not None:
        if declared is not None:
            fix = "leave out blocks, or pass vectors"
            raise_graph_error("blocks are declared for graphs", quoted(declared), fix)
        layout = blocks.layout(preset)
    elif declared is None:
        layout = Layout.of_widths({"vector": width})
    elif isinstance(declared, Layout):
        layout = declared
    else:
        layout = Layout.of_widths(_widths(declared))
    if layout.width != width:
        got = f"blocks of {layout.width} columns in all, vectors of {width}"
        raise_graph_error("the blocks do not fit the vectors", got, "declare every block's width")
    return layout


def _widths(declared: Any) -> dict[str, int]:
    fix = "pass a Layout, or a mapping of names to numbers of columns"
    if not isinstance(declared, Mapping):
        raise_graph_error("blocks are not declared by a mapping", quoted(declared), fix)
    for name, width in declared.items():
        whole = isinstance(width, (int, np.integer)) and not isinstance(width, bool)
        if not isinstance(name, str) or not whole or width < 0:
            raise_graph_error("a block's width is no number", quoted({name: width}), fix)
    return {name: int(width) for name, width in declared.items()}


def _labels(graphs: Graphs) -> NDArray[Any] | None:
    if graphs.y is None or len(graphs.y) != len(graphs):
        return None
    return graphs.y.numpy()


def _finite(values: Tensor) -> Tensor:
    for number, part in enumerate(values.split(_CHUNK)):
        finite = part.isfinite().all(1)
        if not finite.all():
            row = int((~finite).nonzero()[0, 0])
            value = part[row][~part[row].isfinite()][0].item()
            got = f"{'NaN' if value != value else 'inf'} in row {number * _CHUNK + row}"
            raise_graph_error("a vector is not finite", got, "drop this row or repair its values")
    return values
