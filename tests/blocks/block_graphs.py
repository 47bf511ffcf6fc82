"""Graphs and features that the tests of blocks share."""

from __future__ import annotations

import functools

import networkx as nx
import numpy as np
import pytest
from blocks import block_oracle
from cases import awkward, from_dense, random_dense

import artlas
from artlas import kernels

BOTH = ["native", "twin"] if kernels.available() else ["twin"]
# The same with the twin in the slow lane: for tests of what the two hardly differ in.
MOSTLY_NATIVE = [BOTH[0], *(pytest.param(which, marks=pytest.mark.slow) for which in BOTH[1:])]
needs_native = pytest.mark.skipif(
    not kernels.available(), reason="equal bits are promised by the compiled kernels"
)


def dense(graph: nx.Graph) -> np.ndarray:
    return nx.to_numpy_array(graph) != 0


@functools.cache
def matrices() -> list[np.ndarray]:
    """Small graphs of every kind, some for dense walks and some for sparse ones."""
    rng = np.random.default_rng(0)
    almost = random_dense(60, 0.97, rng)
    made = [
        nx.empty_graph(2),
        nx.path_graph(2),
        nx.path_graph(9),
        nx.cycle_graph(15),
        nx.cycle_graph(16),
        nx.cycle_graph(41),
        nx.complete_graph(40),
        nx.complete_bipartite_graph(3, 30),
        nx.star_graph(40),
        nx.balanced_tree(3, 3),
        nx.barbell_graph(6, 4),
        nx.wheel_graph(12),
        nx.petersen_graph(),
        nx.karate_club_graph(),
        nx.circulant_graph(80, range(1, 6)),
        nx.disjoint_union(nx.complete_graph(5), nx.empty_graph(50)),
    ]
    randoms = [random_dense(n, p, rng) for n, p in ((7, 0.5), (100, 0.03), (100, 0.5), (150, 0.1))]
    return [*awkward(rng), *map(dense, made), almost, *randoms]


@functools.cache
def described() -> list[np.ndarray]:
    """The descriptors of these graphs, by the oracle."""
    return [block_oracle.descriptors(A) for A in matrices()]


def flags(n, rng):
    return np.eye(5)[rng.integers(0, 5, n)]


def coded(n, rng):
    """Whole numbers as fields of atoms are, some rows of them without two above one."""
    return rng.integers(0, 4, (n, 4)) * rng.integers(0, 40, 4)


def mixed(n, rng):
    return rng.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 1.0, 2.0, 127.0, 128.0], (n, 3))


FEATURES = {
    "none": lambda n, rng: None,
    "flags": flags,
    "coded": coded,
    "mixed": mixed,
    "real": lambda n, rng: rng.normal(size=(n, 3)),
    "zero": lambda n, rng: np.zeros((n, 2)),
    "huge": lambda n, rng: rng.choice([-3.4e38, 1e20, 3.4e38], (n, 2)),
    "tiny": lambda n, rng: rng.choice([-1e-42, 1e-30, 0.0], (n, 2)),
    "wide": lambda n, rng: rng.normal(size=(n, 40)) * (rng.random((n, 40)) < 0.3),
}


def each_kind(*left_out: str) -> pytest.MarkDecorator:
    """Run for every kind of features, on compiled code and on the twin; most in the slow lane."""
    quick = {(kind, BOTH[0]) for kind in ("none", "coded", "mixed", "wide")} | {("mixed", "twin")}
    cases = [
        pytest.param(kind, which, marks=[] if (kind, which) in quick else [pytest.mark.slow])
        for kind in FEATURES
        for which in BOTH
        if kind not in left_out
    ]
    return pytest.mark.parametrize(("kind", "which"), cases)


def collection(kind: str = "none", parts: list[np.ndarray] | None = None, seed: int = 1):
    """The graphs, with features of a kind."""
    parts = matrices() if parts is None else parts
    x = FEATURES[kind](sum(map(len, parts)), np.random.default_rng(seed))
    return from_dense(parts, x=None if x is None else x.astype(np.float32))


def sparse_graph(n: int, degree: int, seed: int = 0, features: int = 2) -> artlas.Graphs:
    """One random graph of n nodes."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n, (2, n * degree // 2))
    pairs = np.unique(np.sort(pairs[:, pairs[0] != pairs[1]], axis=0), axis=1)
    both = np.concatenate([pairs, pairs[::-1]], axis=1)
    x = rng.standard_normal((n, features)) if features else None
    return artlas.Graphs.from_edges([(n, both)], x=x)


def blocks_of(vectors, preset="full"):
    """The blocks of vectors by name, as arrays of double precision."""
    where = artlas.blocks.layout(preset)
    return {name: vectors[:, columns].double().numpy() for name, columns in where}
