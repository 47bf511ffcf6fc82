"""Graphs as they come in, with all that is to be cleaned away, and what to compare them with."""

from __future__ import annotations

import re
import warnings

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st

from artlas.errors import GraphCleaningWarning
from artlas.graphs.collection import Graphs

unhurried = settings(deadline=None)
PATH = [[0, 1, 1, 2], [1, 0, 2, 1]]  # 0 - 1 - 2, both directions


@st.composite
def raw_graphs(draw, max_graphs=5, max_nodes=7):
    """Directed multigraphs with loops, given as (num_nodes, edge_index) pairs."""
    pairs = []
    for _ in range(draw(st.integers(1, max_graphs))):
        n = draw(st.integers(1, max_nodes))
        ids = st.integers(0, n - 1)
        edges = draw(st.lists(st.tuples(ids, ids), max_size=15))
        pairs.append((n, np.array(edges, dtype=np.int64).reshape(-1, 2).T))
    return pairs


def build(pairs, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphCleaningWarning)
        return Graphs.from_edges(pairs, **kwargs)


def labelled(pairs, per_node=False):
    """The graphs of pairs, with x and y that tell every node and every graph apart."""
    nodes = sum(n for n, _ in pairs)
    x = np.stack([np.arange(nodes), np.arange(nodes) ** 2], axis=1)
    return build(pairs, x=x, y=np.arange(nodes if per_node else len(pairs)) + 100)


def dense(n, edge_index):
    """Oracle: binary, symmetric, zero diagonal."""
    a = np.zeros((n, n))
    for u, v in np.asarray(edge_index).reshape(2, -1).T:
        a[u, v] = a[v, u] = float(u != v)
    return a


def same(a, b):
    def equal(s, t):
        if s is None or t is None:
            return s is t
        return s.dtype == t.dtype and torch.equal(s, t)

    return all(
        equal(getattr(a, k), getattr(b, k)) for k in ("node_ptr", "row_ptr", "col", "x", "y")
    )


def counts(text):
    """The counts of a report, by the first word of their names."""
    names = "one-way edges|duplicate entries|self-loops|edge weights|graphs whose edge attributes"
    found = re.findall(rf"({names})[a-z ]*: ([\d,]+)", text)
    return {name.split()[0]: int(number.replace(",", "")) for name, number in found}


def report(build_them):
    """The counts of the only warning; {} when nothing is reported."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        build_them()
    assert len(caught) <= 1
    assert all(w.category is GraphCleaningWarning for w in caught)
    if not caught:
        return {}
    assert caught[0].filename == build_them.__code__.co_filename
    assert "strict=True" in str(caught[0].message)
    return counts(str(caught[0].message))
