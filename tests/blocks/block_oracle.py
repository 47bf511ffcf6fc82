"""The vector of blocks written plainly: dense matrices, NetworkX, dictionaries, one graph a time.

It shares no code with artlas but the frequencies and phases of the waves, which are hashed numbers.
A graph is its dense adjacency A [n, n] and its features X [n, d], or None.
"""

from __future__ import annotations

import networkx as nx
import numpy as np

from artlas.blocks import twin


def descriptors(A):
    """The nine descriptors of every node, [n, 9]."""
    A = np.asarray(A, dtype=float)
    graph, n = nx.from_numpy_array(A), len(A)
    degree = A.sum(1)
    P = A / np.maximum(degree, 1)[:, None]
    listed = {
        "triangles": nx.triangles(graph),
        "clustering": nx.clustering(graph),
        "core": nx.core_number(graph),
    }
    counted = {name: np.array([of[i] for i in range(n)]) for name, of in listed.items()}
    around = [sum(degree[j] for j in graph[i]) for i in range(n)]
    columns = [
        np.log1p(degree),
        [np.log1p(total / max(d, 1)) for total, d in zip(around, degree, strict=True)],
        np.log1p(around),
        np.log1p(counted["triangles"]),
        counted["clustering"],
        np.log1p(counted["core"]),
        *(np.diag(np.linalg.matrix_power(P, steps)) for steps in (2, 3, 4)),
    ]
    return np.column_stack(columns).astype(float)


def quantiles(D):
    """Integrals of every descriptor's quantile function over eighths of the mass, [72]."""
    u, integrals = np.linspace(0, 1, len(D) + 1), []
    for values in D.T:
        integral = np.concatenate([[0], np.cumsum(np.sort(values)) / len(D)])
        integrals.append(8 * np.diff(np.interp(np.arange(9) / 8, u, integral)))
    return np.concatenate(integrals)


def node_values(A, D, X):
    """What the waves read at three hops, [n, 3 (9 + d)]: V, PV and P²V."""
    A = np.asarray(A, dtype=float)
    V = D
    if X is not None:
        X = np.asarray(X, dtype=float)
        filled = np.array([max(np.count_nonzero(row), 1) for row in X])
        V = np.column_stack([D, np.sign(X) * np.log2(1 + np.abs(X)) / np.sqrt(filled)[:, None]])
    P = A / np.maximum(A.sum(1), 1)[:, None]
    return np.column_stack([V, P @ V, P @ P @ V])


def waves(A, D, X):
    """The mean over nodes of cos(H Omega + b), [256], and how exact float32 can be."""
    H = node_values(A, D, X)
    width = H.shape[1] // 3
    Omega = 2 * np.pi * np.concatenate([twin.frequencies(width, hop) for hop in range(3)])
    values = np.cos(H @ Omega + 2 * np.pi * twin.phases())
    terms = (np.abs(H) @ np.abs(Omega)).max()
    return values.mean(0), 3e-5 + 2 * np.finfo(np.float32).eps * terms


def first_labels(X):
    """What the first colour of every node stands for: its columns that are one, or coded fields."""
    labels = []
    for row in X:
        whole = all(0 <= v <= 127 and v == int(v) for v in row)
        coded = whole and sum(v > 1 for v in row) >= 2
        kept = (lambda v: v != 0) if coded else (lambda v: v == 1)
        labels.append(tuple((j, float(v)) for j, v in enumerate(row) if kept(v)))
    return labels


def refined(A, labels, rounds):
    """Labels by Weisfeiler-Lehman refinement of every round, numbered by a dictionary a round."""
    found = []
    for r in range(rounds):
        if r:
            around = [sorted(labels[j] for j in np.flatnonzero(row)) for row in np.asarray(A)]
            labels = [(own, tuple(near)) for own, near in zip(labels, around, strict=True)]
        numbers = {}
        labels = [numbers.setdefault(label, len(numbers)) for label in labels]
        found.append(labels)
    return found


def shape_labels(A, labels):
    """Labels that also tell up to three triangles and the core number."""
    graph = nx.from_numpy_array(np.asarray(A, dtype=float))
    triangles, core = nx.triangles(graph), nx.core_number(graph)
    return [(label, min(triangles[i], 3), core[i]) for i, label in enumerate(labels)]


def label_counts(labels):
    """How many nodes have each label, ascending."""
    return np.sort(np.unique(labels, return_counts=True)[1])
