"""Control vectors: what can be computed of a target without any trained model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas.evaluation import controls
from artlas.graphs.collection import Graphs
from artlas.method import z_plus
from artlas.method.batching import GraphBatch
from artlas.nodes.ego import EgoGraphs
from artlas_paper.protocol import ART_CONFIG, Level
from artlas_paper.transfer.control_roles import independent, pool_by, random_balanced

Matrix = NDArray[Any]
Control = Callable[[Any], Matrix]


def log_sum_pool(graphs: Graphs) -> Matrix:
    """Return the signed logarithm of the sum pool, [G, d]."""
    pooled = controls.sum_pool(graphs)
    return np.sign(pooled) * np.log1p(np.abs(pooled))


def z_plus_by(data: Graphs | EgoGraphs, roles: Callable[[Graphs], Tensor] | None = None) -> Matrix:
    """Return z+ without a model, by roles [N, M] computed of the graphs, or without roles."""
    rows = []
    for part in data.split() if isinstance(data, EgoGraphs) else [data]:
        if isinstance(part, EgoGraphs):
            batch = GraphBatch(part[:], torch.from_numpy(part.scores))
        else:
            batch = GraphBatch(part)
        if roles is None:
            rows.append(z_plus.without_roles(batch))
        else:
            pooled = pool_by(roles(batch.graphs))(batch.graphs, z_plus.node_values(batch))
            rows.append(z_plus.vector(batch, pooled))
    return torch.cat(rows).numpy()


def z_plus_of_independent_roles(data: Graphs | EgoGraphs) -> Matrix:
    """Return z+ of the independent coupling: every node is in every role alike."""
    return z_plus_by(data, lambda graphs: independent(graphs, ART_CONFIG.roles))


def z_plus_of_random_roles(data: Graphs | EgoGraphs) -> Matrix:
    """Return z+ of random roles of equal mass, as many as the atlas has."""
    return z_plus_by(data, lambda graphs: random_balanced(graphs, ART_CONFIG.roles))


def centre_features(egos: EgoGraphs) -> Matrix:
    """Return the features of the centres alone, [C, d]."""
    return _features(egos)[egos.centres]


def ego_mean(egos: EgoGraphs, weighted: bool) -> Matrix:
    """Return the mean features of every ego-graph, weighted by PPR score or not, [C, d]."""
    x, starts = _features(egos), egos.node_ptr[:-1]
    weight = egos.scores.astype(np.float64) if weighted else np.ones(len(egos.nodes))
    total = np.add.reduceat(weight, starts)
    out = np.empty((len(egos), x.shape[1]))
    for i, (begin, end) in enumerate(zip(starts, egos.node_ptr[1:], strict=True)):
        out[i] = weight[begin:end] @ x[egos.nodes[begin:end]] / total[i]
    return out


def _features(egos: EgoGraphs) -> Matrix:
    """Return the features of the network, or the relative degree where it has none, [N, d]."""
    if egos.graph.x is None:
        degree = egos.graph.degree.double().numpy()[:, None]
        return degree / max(degree.max(), 1.0)
    return egos.graph.x.numpy()


def _by_batch(control: Callable[[Graphs], Matrix]) -> Control:
    return lambda egos: np.concatenate([control(part) for part in egos.batches()])


_Z_PLUS: dict[str, Control] = {
    "plus-no-roles": z_plus_by,
    "plus-independent": z_plus_of_independent_roles,
    "plus-random-roles": z_plus_of_random_roles,
}
CONTROLS: Mapping[Level, Mapping[str, Control]] = {
    "graph": {
        "sum": controls.sum_pool,
        "mean": controls.mean_pool,
        "log-sum": log_sum_pool,
        "degree-histogram": controls.degree_histogram,
        "size": controls.size,
        **_Z_PLUS,
    },
    "node": {
        "centre": centre_features,
        "ppr-mean": lambda egos: ego_mean(egos, True),
        "mean": lambda egos: ego_mean(egos, False),
        "sum": lambda egos: ego_mean(egos, False) * np.diff(egos.node_ptr)[:, None],
        "degree-histogram": _by_batch(controls.degree_histogram),
        "size": _by_batch(controls.size),
        **_Z_PLUS,
    },
}


def wl_kernel(graphs: Graphs, rounds: int = 3) -> Matrix:
    """Return vectors whose products are GraKeL's normalised WL subtree kernel, [G, r].

    The labels of nodes are their binary features, or their degree where there are none.
    """
    try:
        from grakel import Graph
        from grakel.kernels import VertexHistogram, WeisfeilerLehman
    except ImportError as error:
        raise ImportError(
            "The Weisfeiler-Lehman kernel is GraKeL's, which is not installed. "
            "To fix this: pip install 'artlas-paper[wl]'"
        ) from error

    labels = _node_labels(graphs)
    inputs = []
    for graph, own in zip(graphs, np.split(labels, graphs.node_ptr.numpy()[1:-1]), strict=True):
        source = np.repeat(np.arange(graph.num_nodes), graph.row_ptr.diff().numpy())
        neighbours: dict[int, list[int]] = {i: [] for i in range(graph.num_nodes)}
        for u, v in zip(source.tolist(), graph.col.tolist(), strict=True):
            neighbours[u].append(v)
        inputs.append(Graph(neighbours, dict(enumerate(own.tolist()))))
    kernel = WeisfeilerLehman(n_iter=rounds, base_graph_kernel=VertexHistogram, normalize=True)
    values, vectors = np.linalg.eigh(kernel.fit_transform(inputs))
    kept = values > values[-1] * 1e-10
    return vectors[:, kept] * np.sqrt(values[kept])


def _node_labels(graphs: Graphs) -> NDArray[np.int64]:
    if graphs.x is not None:
        x = graphs.x.numpy()
        binary = x[:, ((x == 0) | (x == 1)).all(0)]
        if binary.shape[1]:
            return np.unique(binary, axis=0, return_inverse=True)[1].reshape(-1)
    return graphs.degree.numpy().astype(np.int64)
