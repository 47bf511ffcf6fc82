r"""Relational Gromov-Wasserstein by iteration: the ground truth that amortisation is compared with.

.. math:: \mathcal E(A, B; T) = \chi_A + \chi_B - 2 \langle A T B, T \rangle, \quad
    \nabla \mathcal E = -4 A T B

Steps are of two kinds, both with an exact line search, so that none raises the energy: *mirror*
steps, Sinkhorn on :math:`T \circ \exp(-\nabla / \epsilon)`, through the inside of the polytope; and
*exact* ones, conditional gradients towards the vertex that a transport problem gives. Where no
direction leads down at first order, neighbours that gain by changing places do so. The result is a
local optimum: its energy is an upper bound of the least one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from artlas import checks, kernels
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure
from artlas.io.reading import as_graphs

if TYPE_CHECKING:
    pass

Array = NDArray[np.float64]
Start = Callable[[Graphs], Array]  # one graph to couplings [K, n, M]
STATISTICS = ("before", "after", "gap", "moved", "mirror", "sinkhorn", "exact", "swaps")
BUDGET = 1 << 28  # bytes of couplings that are worked on at a time


@dataclass(frozen=True)
class SolverConfig:
    r"""How a problem is solved from one start.

    mirror, exact: most steps of each kind; sinkhorn: most iterations of a mirror step; epsilon: its
    :math:`\epsilon` relative to the spread of the gradient; tolerance: a step that moves no more L1 mass
    than this is the last of its problem.
    """

    mirror: int = 0
    exact: int = 200
    sinkhorn: int = 500
    epsilon: float = 0.05
    tolerance: float = 1e-7

    def __post_init__(self) -> None:
        checks.whole(self, "mirror", "exact", "sinkhorn", least=0)
        checks.positive(self, "epsilon", "tolerance")


EXACT = SolverConfig()
FROM_AFAR = SolverConfig(mirror=20)  # for starts that know nothing of the pair


@dataclass(frozen=True, eq=False)
class Solution:
    """Energies of G graphs with K relations, and how they were found.

    energies [G, K]; couplings: of every graph, [K, n, M] float64; statistics: every one of
    STATISTICS, [G, K]; start [G, K]: which of the starts gave the energy.
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
    """Solve every pair from every start and keep the lowest energy; relations [K, M, M].

    measures [K, M] of the roles, uniform if not given; that of the nodes is by degree.
    """
    native = kernels.native_gw()
    graphs, relations = as_graphs(graphs), _relations(relations)
    bases, roles = relations.shape[:2]
    nu = np.full((bases, roles), 1 / roles) if measures is None else _measures(measures, relations)
    mu = degree_measure(graphs, measure_epsilon).numpy()
    found = []
    for start, config in starts:
        parts = [
            _from_start(native, part, own, relations, nu, start, config)
            for part, own in _parts(graphs, mu, bases * roles)
        ]
        found.append(joined(parts))
    return best(found)


def joined(parts: Sequence[Solution]) -> Solution:
    """The solutions of one graph after another as one."""
    return Solution(
        np.concatenate([part.energies for part in parts]),
        [coupling for part in parts for coupling in part.couplings],
        {name: np.concatenate([part.statistics[name] for part in parts]) for name in STATISTICS},
        np.concatenate([part.start for part in parts]),
    )


def best(solutions: Sequence[Solution]) -> Solution:
    """Of several solutions of the same pairs the lowest energies, the first among equals."""
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


def _parts(graphs: Graphs, mu: Array, width: int) -> Iterator[tuple[Graphs, Array]]:
    first = 0
    for part in graphs.batches(max(1, BUDGET // (8 * width))):
        yield part, mu[first : first + part.num_nodes]
        first += part.num_nodes


def _from_start(
    native: Any,
    graphs: Graphs,
    mu: Array,
    relations: Array,
    nu: Array,
    start: Start,
    config: SolverConfig,
) -> Solution:
    bases, roles = relations.shape[:2]
    made = [_couplings(start(graph), graph, relations) for graph in graphs]
    flat = np.concatenate([coupling.reshape(-1) for coupling in made])
    stats = np.empty((len(graphs) * bases, len(STATISTICS)))
    native.solve_gw(
        graphs.node_ptr.numpy(),
        graphs.row_ptr.numpy(),
        graphs.col.numpy(),
        mu,
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
    found = stats.reshape(len(graphs), bases, -1)
    statistics = {name: found[..., i] for i, name in enumerate(STATISTICS)}
    return Solution(statistics["after"], couplings, statistics, np.zeros(found.shape[:2], int))


def _relations(relations: Any) -> Array:
    found = np.ascontiguousarray(
        relations.detach().cpu().numpy() if isinstance(relations, torch.Tensor) else relations,
        dtype=np.float64,
    )
    if found.ndim != 3 or found.shape[1] != found.shape[2] or 0 in found.shape:
        raise ValueError(f"relations must be [K, M, M], got shape {list(found.shape)}.")
    if not np.isfinite(found).all() or not np.allclose(found, found.transpose(0, 2, 1)):
        raise ValueError("relations must be finite and symmetric: use (B + B.T) / 2.")
    return found


def _measures(measures: Any, relations: Array) -> Array:
    found = np.ascontiguousarray(measures, dtype=np.float64)
    if found.shape != relations.shape[:2] or (found <= 0).any():
        raise ValueError(
            f"measures must be positive and [K, M] = {list(relations.shape[:2])}, got shape "
            f"{list(found.shape)}."
        )
    return found / found.sum(1, keepdims=True)


def _couplings(given: Any, graph: Graphs, relations: Array) -> Array:
    found = np.array(given, dtype=np.float64, order="C")
    wanted = (len(relations), graph.num_nodes, relations.shape[1])
    if found.shape != wanted or not np.isfinite(found).all() or (found < 0).any():
        raise ValueError(
            f"A start must give couplings {list(wanted)} without negative or infinite entries, "
            f"got shape {list(found.shape)}."
        )
    return found


def independent(relations: Any, measure_epsilon: float = 1e-8) -> Start:
    """The start at the product of the measures."""
    bases, roles = _relations(relations).shape[:2]

    def start(graph: Graphs) -> Array:
        mu = degree_measure(graph, measure_epsilon).numpy()
        return np.broadcast_to(mu[None, :, None] / roles, (bases, len(mu), roles))

    return start


def by_degree(relations: Any, measure_epsilon: float = 1e-8) -> Start:
    """The start that joins nodes by falling degree with roles by falling strength."""
    strengths = _relations(relations).sum(2)

    def start(graph: Graphs) -> Array:
        mu = degree_measure(graph, measure_epsilon).numpy()
        nodes = np.argsort(-mu, kind="stable")
        made = np.zeros((len(strengths), len(mu), strengths.shape[1]))
        for k, strength in enumerate(strengths):
            made[k][np.ix_(nodes, np.argsort(-strength, kind="stable"))] = _corner(mu[nodes], k)
        return made

    def _corner(mu: Array, k: int) -> Array:
        """The north-west corner coupling: overlaps of two divisions of [0, 1]."""
        rows = np.concatenate([[0.0], np.cumsum(mu)])
        columns = np.linspace(0, 1, strengths.shape[1] + 1)
        low = np.maximum(rows[:-1, None], columns[None, :-1])
        return np.clip(np.minimum(rows[1:, None], columns[None, 1:]) - low, 0, None)

    return start


def discrepancies(graphs: Any, pairs: Any, measure_epsilon: float = 1e-8) -> Array:
    r"""Upper bounds of :math:`d(G, G') = \sqrt{\min_T \mathcal E(A, A'; T)}` of pairs [P, 2]."""
    graphs = as_graphs(graphs)
    found = []
    for i, j in np.asarray(pairs).tolist():
        one, other = sorted((graphs[i], graphs[j]), key=lambda graph: -graph.num_nodes)
        relation = other.to_scipy(0).toarray()[None]
        nu = degree_measure(other, measure_epsilon).numpy()[None]

        def product(graph: Graphs, nu: Array = nu) -> Array:
            mu = degree_measure(graph, measure_epsilon).numpy()
            return mu[None, :, None] * nu[:, None, :]

        starts = [(product, EXACT), (product, FROM_AFAR)]
        solved = solve(one, relation, starts, measure_epsilon, nu)
        found.append(max(float(solved.energies[0, 0]), 0.0) ** 0.5)
    return np.array(found)
