"""Take edges, features and labels out of NetworkX, SciPy and PyTorch Geometric objects.

Objects are recognised by what they offer, so that none of the three is imported here.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from artlas.errors import raise_graph_error
from artlas.graphs.validation import as_array, check_edges


def is_pair(obj: Any) -> bool:
    if not isinstance(obj, (tuple, list)) or len(obj) != 2:
        return False
    return isinstance(obj[0], (Number, np.generic)) or getattr(obj[0], "ndim", None) == 0


def is_networkx(obj: Any) -> bool:
    return hasattr(obj, "is_multigraph") and hasattr(obj, "nodes")


def is_matrix(obj: Any) -> bool:
    return getattr(obj, "ndim", 0) == 2 and (hasattr(obj, "tocoo") or isinstance(obj, np.ndarray))


def is_data(obj: Any) -> bool:
    # Static, because a PyG InMemoryDataset, too, answers hasattr(dataset, "edge_index") with True.
    return inspect.getattr_static(obj, "edge_index", None) is not None


def matrix_edges(matrix: Any, g: int, changes: Counter[str]) -> Any:
    """Return the edges [2, E] of a square array, SciPy sparse or dense."""
    if isinstance(matrix, np.ndarray):
        edges = np.stack(np.asarray(matrix).nonzero())
        weights = np.asarray(matrix)[*edges]
    else:
        entries = matrix.tocoo()
        edges, weights = np.stack([entries.row, entries.col]), entries.data
    return drop_weights(edges, weights, changes, f"the matrix of graph {g}")


def drop_weights(edges: Any, weights: Any, changes: Counter[str], name: str) -> Any:
    """Return the edges [2, E] whose weight is not zero, and count the weights that are not one."""
    if weights.dtype.kind not in "biuf" or not np.isfinite(weights).all():
        wrong, fix = f"{name} has entries that are not finite", "store every edge as 1"
        raise_graph_error(wrong, f"{weights.dtype}", fix)
    if not weights.all():
        edges, weights = edges[:, weights != 0], weights[weights != 0]
    changes["weights"] += int((weights != 1).sum())
    return edges


def networkx_edges(graph: Any, changes: Counter[str]) -> Any:
    number = {node: i for i, node in enumerate(graph)}
    triples = list(graph.edges(data="weight", default=1))
    changes["weights"] += sum(weight != 1 for _, _, weight in triples)
    flat = (number[node] for u, v, _ in triples for node in (u, v))
    pairs = np.fromiter(flat, dtype=np.int64, count=2 * len(triples)).reshape(-1, 2)
    if graph.is_directed():
        return pairs.T
    # NetworkX holds an undirected edge once: completed here, or it would be reported as one-way.
    proper = pairs[:, 0] != pairs[:, 1]
    once = pairs[proper]
    if graph.is_multigraph():
        once = np.unique(once, axis=0)  # NetworkX gives parallel edges one direction
        changes["duplicates"] += int(proper.sum()) - len(once)
    return np.concatenate([once, once[:, ::-1], pairs[~proper]]).T


def networkx_features(graph: Any, names: Sequence[str], g: int) -> Any:
    """Return node attributes as columns [n, d]."""
    columns = []
    for name in names:
        values = [attributes.get(name) for _, attributes in graph.nodes(data=True)]
        if (missing := [n for n, v in zip(graph, values, strict=True) if v is None]) != []:
            wrong, got = f"not every node of graph {g} has {name!r}", f"node {missing[0]!r}"
            raise_graph_error(wrong, f"{got} without it", "set this node attribute")
        column = as_array(values, f"node attribute {name!r} of graph {g}")
        columns.append(column.reshape(len(values), -1))
    return np.concatenate(columns, axis=1)


def data_list(data: Any, i: int) -> list[Any]:
    """Split a PyTorch Geometric Batch into its Data objects."""
    got = "a node-to-graph vector without to_data_list()"
    if hasattr(data, "to_data_list"):
        try:
            return list(data.to_data_list())
        except RuntimeError as error:
            got = str(error)
    elif getattr(data, "batch", None) is None:
        return [data]
    raise_graph_error(f"item {i} is a batch that cannot be split", got, "pass a list of Data")


def data_edges(data: Any, g: int, changes: Counter[str]) -> Any:
    edges = check_edges(data.edge_index, data.num_nodes, g)
    for name in ("edge_weight", "edge_attr"):
        value = getattr(data, name, None)
        if value is not None and edges.shape[1]:
            value = as_array(value, f"{name} of graph {g}")
            if value.size == edges.shape[1]:
                changes["weights"] += int((value != 1).sum())
            else:
                changes["attributes"] += 1
    return edges


def data_labels(ys: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Concatenate the labels of Data objects, which have one each or one for each node."""
    labels = [as_array(y, f"y of graph {g}") for g, y in enumerate(ys)]
    for g, y in enumerate(labels):
        if y.size not in (1, sizes[g]) or (y.ndim > 1 and y.size != len(y)):
            got = f"shape {list(y.shape)} for {sizes[g]} nodes"
            fix = "keep one column, data.y = data.y[:, j], or none, data.y = None"
            raise_graph_error(f"y of graph {g} is neither one label nor one per node", got, fix)
    return np.concatenate([y.reshape(-1) for y in labels])
