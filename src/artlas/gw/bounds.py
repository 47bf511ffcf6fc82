r"""Lower bounds on the Gromov-Wasserstein energy: Mémoli's third lower bound, for graphs.

.. math:: \min_T \mathcal E(A, B; T) \ge \min_T \sum_{ia} T_{ia} C_{ia}, \quad
    C_{ia} = \min_S \sum_{jb} (A_{ij} - B_{ab})^2 S_{jb}

over couplings T and S of the same measures. The inner problem is one-dimensional. A row of A is 1
on the mass :math:`s_i = \sum_j A_{ij} \mu_j` and 0 on the rest, and the best S matches that mass
with the largest relations of role a. So the cost depends on s alone and needs no [n, n] array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure
from artlas.gw.solver import Array, as_relations
from artlas.io.reading import as_graphs


def energy_bounds(graphs: Any, relations: Any, measure_epsilon: float = 1e-8) -> Array:
    """Bound the lowest energy of every graph with every relation [K, M, M] from below, [G, K].

    The relations must be symmetric; their roles have equal mass.
    """
    relations = as_relations(relations)
    bounds = [
        [_transport_bound(_costs(strengths, base), mass) for base in relations]
        for strengths, mass in _strengths(as_graphs(graphs), measure_epsilon)
    ]
    return np.array(bounds).clip(0)


def discrepancy_bounds(graphs: Any, pairs: Any, measure_epsilon: float = 1e-8) -> Array:
    r"""Bound :math:`d(G, G')` of pairs [P, 2] from below, [P].

    Between two graphs :math:`C_{ij} = |s_i - s'_j|`, so the outer problem is one-dimensional too.
    """
    from scipy.stats import wasserstein_distance

    strengths = list(_strengths(as_graphs(graphs), measure_epsilon))
    bounds = []
    for i, j in np.asarray(pairs).tolist():
        (values, mu), (other_values, nu) = strengths[i], strengths[j]
        bounds.append(float(wasserstein_distance(values, other_values, mu, nu)) ** 0.5)
    return np.array(bounds)


def _strengths(graphs: Graphs, epsilon: float) -> Iterator[tuple[Array, Array]]:
    """The distinct values of s_i in every graph, and the mass of the nodes that have each."""
    measures = degree_measure(graphs, epsilon).split(graphs.sizes.tolist())
    for graph, measure in zip(graphs, measures, strict=True):
        mu = measure.numpy()
        owner = np.repeat(np.arange(graph.num_nodes), graph.row_ptr.diff().numpy())
        sums = np.bincount(owner, mu[graph.col.numpy()], minlength=graph.num_nodes)
        values, which = np.unique(sums.astype(np.float64).round(14), return_inverse=True)
        yield values, np.bincount(which.reshape(-1), mu).astype(np.float64)


def _costs(strengths: Array, base: Array) -> Array:
    """C of s [n] with every role of a base, [n, M]: s + |B_a|^2 - 2 (sum of B_a's top mass s)."""
    roles = len(base)
    top_sums = np.cumsum(-np.sort(-base, axis=1), axis=1) / roles
    masses = np.linspace(0, 1, roles + 1)
    top = [np.interp(strengths, masses, np.concatenate([[0], row])) for row in top_sums]
    return strengths[:, None] + (base**2).mean(1) - 2 * np.stack(top, axis=1)


def _transport_bound(cost: Array, mass: Array) -> float:
    """Bound the lowest transport cost [n, M] from mass [n] to equal masses from below.

    The bound is the value of the dual problem, which never exceeds the lowest cost, whatever the
    potentials. An inexact solver can therefore only make the bound lower.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    rows, roles = cost.shape
    marginals = vstack(
        [kron(eye_array(rows), np.ones((1, roles))), kron(np.ones((1, rows)), eye_array(roles))],
        format="csr",
    )
    wanted = np.concatenate([mass, np.full(roles, mass.sum() / roles)])
    solved = linprog(cost.reshape(-1), A_eq=marginals, b_eq=wanted, method="highs")
    potentials = np.zeros(roles) if solved.status else solved.eqlin.marginals[rows:]
    return float((cost - potentials).min(1) @ mass + potentials.mean())
