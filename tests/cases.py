"""Graphs that the tests share, and a strategy that makes awkward ones."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

import artlas
from artlas.graphs.measure import degree_measure


def from_dense(matrices: list[np.ndarray], **more: object) -> artlas.Graphs:
    return artlas.Graphs.from_scipy([np.asarray(m, dtype=float) for m in matrices], **more)


def random_dense(n: int, p: float, rng: np.random.Generator) -> np.ndarray:
    upper = np.triu(rng.random((n, n)) < p, 1)
    return upper | upper.T


def star(leaves: int) -> np.ndarray:
    matrix = np.zeros((leaves + 1, leaves + 1), dtype=bool)
    matrix[0, 1:] = matrix[1:, 0] = True
    return matrix


def awkward(rng: np.random.Generator) -> list[np.ndarray]:
    """One node, no edge, isolated nodes, disconnected, a star, a clique, ragged sizes."""
    isolated = np.zeros((9, 9), dtype=bool)
    isolated[:4, :4] = random_dense(4, 1.0, rng)
    apart = np.zeros((12, 12), dtype=bool)
    apart[:5, :5] = random_dense(5, 0.8, rng)
    apart[5:, 5:] = random_dense(7, 0.6, rng)
    return [
        np.zeros((1, 1), dtype=bool),
        np.zeros((6, 6), dtype=bool),
        isolated,
        apart,
        star(7),
        random_dense(8, 1.0, rng),
        random_dense(17, 0.3, rng),
        random_dense(33, 0.2, rng),
    ]


def oracle_graphs(graphs: artlas.Graphs, epsilon: float = 1e-8) -> list[tuple[Tensor, Tensor]]:
    """(A, mu) of every graph, dense and float64, as tests/oracle.py wants them."""
    measure = degree_measure(graphs, epsilon).split(graphs.sizes.tolist())
    return [
        (torch.from_numpy(graphs.to_scipy(g).toarray()).double(), mu)
        for g, mu in enumerate(measure)
    ]


def problem(graphs: artlas.Graphs, K: int, M: int, D: int, spread: float, seed: int = 0):
    """Random nodes [N, D], roles [K, M, D], relations [K, M, M] and the scale: logits ~ spread."""
    gen = torch.Generator().manual_seed(seed)
    nodes = torch.randn(graphs.num_nodes, D, generator=gen)
    roles = torch.randn(K, M, D, generator=gen)
    relations = torch.rand(K, M, M, generator=gen)
    return nodes, roles, (relations + relations.transpose(1, 2)) / 2, spread / math.sqrt(D)


def sharpened(config: artlas.ArtConfig | None = None, factor: float = 60.0) -> artlas.ART:
    """A model whose couplings are far from independent, as a trained model's are."""
    model = artlas.ART(config)
    with torch.no_grad():
        model.node_projection.weight *= factor
    return model


@st.composite
def dense_graphs(draw: st.DrawFn, most: int = 24) -> np.ndarray:
    """Any simple graph, isolated nodes and missing edges included."""
    n = draw(st.integers(1, most))
    p = draw(st.sampled_from([0.0, 0.05, 0.2, 0.5, 1.0]))
    seed = draw(st.integers(0, 2**32 - 1))
    return random_dense(n, p, np.random.default_rng(seed))
