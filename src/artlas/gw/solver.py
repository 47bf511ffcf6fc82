r"""Solve relational Gromov-Wasserstein problems iteratively, as reference for amortised couplings.

.. math:: \mathcal E(A, B; T) = \chi_A + \chi_B - 2 \langle A T B, T \rangle, \quad
    \nabla \mathcal E = -4 A T B

There are two kinds of steps, both with an exact line search, so that none raises the energy.
*Mirror* steps run Sinkhorn on :math:`T \circ \exp(-\nabla / \epsilon)` and move through the
inside of the polytope. *Exact* steps are conditional gradients towards the vertex that solves a
linear transport problem. Where no direction decreases the energy to first order, pairs of nodes
are swapped if that lowers it. The result is a local optimum: its energy is an upper bound of the
global minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from artlas import checks, kernels
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure
from artlas.io.reading import as_graphs

Array = NDArray[np.float64]
Start = Callable[[Graphs], Array]  # gives the initial couplings of one graph, [K, n, M]
STATISTICS = ("before", "after", "gap", "moved", "mirror", "sinkhorn", "exact", "swaps")
MIRROR = 20  # mirror steps from starts that do not depend on the base
BUDGET = 1 << 28  # bytes of couplings that are solved at a time


@dataclass(frozen=True)
class SolverConfig:
    r"""How a problem is solved from one start.

    mirror, exact: limits on the steps of each kind, mirror steps first; sinkhorn: limit on the
    iterations of a mirror step; epsilon: its :math:`\epsilon`, relative to the spread of the
    gradient; tolerance: a step that moves no more L1 mass than this is the last one.
    """

    mirror: int = 0
    exact: int = 200
    sinkhorn: int = 500
    epsilon: float = 0.05
    tolerance: float = 1e-7

    def __post_init__(self) -> None:
        checks.integer(self, "mirror", "exact", "sinkhorn", least=0)
        checks.positive(self, "epsilon", "tolerance")


@dataclass(frozen=True, eq=False)
class Solution:
    """Energies of G graphs with K relations, and how the solver reached them.

    energies [G, K]; couplings: of every graph, [K, n, M] float64; statistics: each of STATISTICS,
    [G, K]; start [G, K]: the number of the start that gave the energy.
    """

    energies: Array
    couplings: list[Array]
    statistics: dict[str, Array]
    start: NDArray[np.int64]


def solve(
    graphs: Any,
    relations: Any,
    starts: Sequence[tuple[Start, SolverConfig]],
    measure_epsilon: float = 1e-8,
    measures: Any = None,
) -> Solution:
    """Solve every pair of graph and relation from every start, and keep the lowest energy.

    relations [K, M, M]; measures [K, M] of the roles, uniform if not given. The measure of the
    nodes follows from their degrees.
    """
    graphs, relations = as_graphs(graphs), as_relations(relations)
    bases, roles = relations.shape[:2]
    nu = _role_measures(measures, relations)
    solutions = []
    for start, config in starts:
        parts = [
            _solve_from(start, config, part, measure_epsilon, relations, nu)
            for part in graphs.batches(max(1, BUDGET // (8 * bases * roles)))
        ]
        solutions.append(concatenate(parts))
    return lowest(solutions)


def concatenate(parts: Sequence[Solution]) -> Solution:
    """Join the solutions of successive batches of graphs."""
    return Solution(
        np.concatenate([part.energies for part in parts]),
        [coupling for part in parts for coupling in part.couplings],
        {name: np.concatenate([part.statistics[name] for part in parts]) for name in STATISTICS},
        np.concatenate([part.start for part in parts]),
    )


def lowest(solutions: Sequence[Solution]) -> Solution:
    """Keep the lowest energy of every pair among several solutions; the first wins a tie."""
    if not solutions:
        raise ValueError("At least one start is needed, got none.")
    kept = solutions[0]
    for number, other in enumerate(solutions[1:], 1):
        wins = other.energies < kept.energies
        kept = Solution(
            np.where(wins, other.energies, kept.energies),
            [
                np.where(own[:, None, None], new, old)
                for old, new, own in zip(kept.couplings, other.couplings, wins, strict=True)
            ],
            {n: np.where(wins, other.statistics[n], kept.statistics[n]) for n in STATISTICS},
            np.where(wins, number, kept.start),
        )
    return kept


def _solve_from(
    start: Start, config: SolverConfig, graphs: Graphs, epsilon: float, relations: Array, nu: Array
) -> Solution:
    native, (bases, roles) = kernels.native_gw(), relations.shape[:2]
    initial = [_checked_couplings(start(graph), graph, relations) for graph in graphs]
    flat = np.concatenate([coupling.reshape(-1) for coupling in initial])
    stats = np.empty((len(graphs) * bases, len(STATISTICS)))
    native.solve_gw(
        *(pointers.numpy() for pointers in (graphs.node_ptr, graphs.row_ptr, graphs.col)),
        degree_measure(graphs, epsilon).numpy(),
        relations,
        nu,
        couplings=flat,
        statistics=stats,
        mirror_steps=config.mirror,
        sinkhorn_steps=config.sinkhorn,
        epsilon=config.epsilon,
        exact_steps=config.exact,
        tolerance=config.tolerance,
        mirror_tolerance=1e-3,
        threads=torch.get_num_threads(),
    )
    ends = np.cumsum(graphs.sizes.numpy()) * bases * roles
    couplings = [part.reshape(bases, -1, roles) for part in np.split(flat, ends[:-1])]
    columns = stats.reshape(len(graphs), bases, -1)
    statistics = {name: columns[..., i] for i, name in enumerate(STATISTICS)}
    return Solution(statistics["after"], couplings, statistics, np.zeros(columns.shape[:2], int))


def as_relations(relations: Any) -> Array:
    """Return relations as float64 [K, M, M]; they must be finite and symmetric."""
    if isinstance(relations, torch.Tensor):
        relations = relations.detach().cpu().numpy()
    values = np.ascontiguousarray(relations, dtype=np.float64)
    if values.ndim != 3 or values.shape[1] != values.shape[2] or 0 in values.shape:
        raise ValueError(f"relations must be [K, M, M], got shape {list(values.shape)}.")
    if not np.isfinite(values).all() or not np.allclose(values, values.transpose(0, 2, 1)):
        raise ValueError("relations must be finite and symmetric: use (B + B.T) / 2.")
    return values


def _role_measures(measures: Any, relations: Array) -> Array:
    if measures is None:
        return np.full(relations.shape[:2], 1 / relations.shape[1])
    values = np.ascontiguousarray(measures, dtype=np.float64)
    if values.shape != relations.shape[:2] or (values <= 0).any():
        wanted, got = list(relations.shape[:2]), list(values.shape)
        raise ValueError(f"measures must be positive and [K, M] = {wanted}, got shape {got}.")
    return values / values.sum(1, keepdims=True)


def _checked_couplings(couplings: Any, graph: Graphs, relations: Array) -> Array:
    values = np.array(couplings, dtype=np.float64, order="C")
    wanted = (len(relations), graph.num_nodes, relations.shape[1])
    if values.shape != wanted or not np.isfinite(values).all() or (values < 0).any():
        got = f"got shape {list(values.shape)}"
        raise ValueError(f"A start must give couplings {list(wanted)}, finite and from 0, {got}.")
    return values


def product_start(relations: Any, measure_epsilon: float = 1e-8) -> Start:
    r"""Start from the independent coupling :math:`\mu \nu^\top` with uniform :math:`\nu`."""
    bases, roles = as_relations(relations).shape[:2]

    def start(graph: Graphs) -> Array:
        mu = degree_measure(graph, measure_epsilon).numpy()
        return np.broadcast_to(mu[None, :, None] / roles, (bases, len(mu), roles))

    return start


def degree_start(relations: Any, measure_epsilon: float = 1e-8) -> Start:
    """Start by matching nodes in order of degree with roles in order of strength."""
    strengths = as_relations(relations).sum(2)

    def start(graph: Graphs) -> Array:
        mu = degree_measure(graph, measure_epsilon).numpy()
        nodes = np.argsort(-mu, kind="stable")
        sorted_coupling = _north_west_corner(mu[nodes], strengths.shape[1])
        couplings = np.zeros((len(strengths), *sorted_coupling.shape))
        for coupling, strength in zip(couplings, strengths, strict=True):
            coupling[np.ix_(nodes, np.argsort(-strength, kind="stable"))] = sorted_coupling
        return couplings

    return start


def _north_west_corner(mu: Array, roles: int) -> Array:
    """The monotone coupling of masses mu [n] with equal masses, [n, M]: overlaps on [0, 1]."""
    rows = np.concatenate([[0.0], np.cumsum(mu)])
    columns = np.linspace(0, 1, roles + 1)
    low = np.maximum(rows[:-1, None], columns[None, :-1])
    return np.clip(np.minimum(rows[1:, None], columns[None, 1:]) - low, 0, None)


def discrepancies(graphs: Any, pairs: Any, measure_epsilon: float = 1e-8) -> Array:
    r"""Upper bounds of :math:`d(G, G') = \sqrt{\min_T \mathcal E(A, A'; T)}` of pairs [P, 2]."""
    graphs = as_graphs(graphs)
    energies = []
    for i, j in np.asarray(pairs).tolist():
        larger, smaller = sorted((graphs[i], graphs[j]), key=lambda graph: -graph.num_nodes)
        relation = smaller.to_scipy(0).toarray()[None]
        nu = degree_measure(smaller, measure_epsilon).numpy()[None]

        def product(graph: Graphs, nu: Array = nu) -> Array:
            mu = degree_measure(graph, measure_epsilon).numpy()
            return mu[None, :, None] * nu[:, None, :]

        starts = [(product, SolverConfig(mirror=steps)) for steps in (0, MIRROR)]
        energies.append(solve(larger, relation, starts, measure_epsilon, nu).energies[0, 0])
    return np.sqrt(np.maximum(np.array(energies, dtype=np.float64), 0.0))
