r"""Values that no coupling's energy is below: Mémoli's third lower bound, made for graphs.

.. math:: \min_T \mathcal E(A, B; T) \ge \min_T \sum_{ia} T_{ia} C_{ia}, \quad
    C_{ia} = \min_S \sum_{jb} (A_{ij} - B_{ab})^2 S_{jb}

over couplings T and S of the same measures. S is a problem on a line. A row of a graph takes the
value 1 on the mass :math:`s_i = \sum_j A_{ij} \mu_j` and 0 on the rest, and the best S joins that
mass with the largest relations of role a. So the cost needs s alone, and never an [n, n] array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure
from artlas.io.reading import as_graphs

Array = NDArray[np.float64]


def energy_bounds(graphs: Any, relations: Any, measure_epsilon: float = 1e-8) -> Array:
    """Lower bounds of the least energies of every graph with every relation [K, M, M], [G, K].

    Relations are symmetric, and their roles have equal mass.
    """
    graphs = as_graphs(graphs)
    known = relations.detach().cpu() if isinstance(relations, torch.Tensor) else relations
    bases = np.asarray(known, dtype=np.float64)
    found = np.empty((len(graphs), len(bases)))
    for g, (strengths, mass) in enumerate(map(_strengths, *_split(graphs, measure_epsilon))):
        for k, base in enumerate(bases):
            found[g, k] = _transport_bound(_costs(strengths, base), mass)
    return found.clip(0)


def discrepancy_bounds(graphs: Any, pairs: Any, measure_epsilon: float = 1e-8) -> Array:
    r"""Lower bounds of :math:`d(G, G')` of pairs [P, 2], [P].

    Between two graphs :math:`C_{ij} = |s_i - s'_j|`, so that the outer problem is on a line too.
    """
    from scipy.stats import wasserstein_distance

    graphs = as_graphs(graphs)
    sides = list(map(_strengths, *_split(graphs, measure_epsilon)))
    found = []
    for i, j in np.asarray(pairs).tolist():
        (one, mu), (other, nu) = sides[i], sides[j]
        found.append(float(wasserstein_distance(one, other, mu, nu)) ** 0.5)
    return np.array(found)


def _split(graphs: Graphs, epsilon: float) -> tuple[list[Graphs], list[Array]]:
    measures = degree_measure(graphs, epsilon).split(graphs.sizes.tolist())
    return list(graphs), [mu.numpy() for mu in measures]


def _strengths(graph: Graphs, mu: Array) -> tuple[Array, Array]:
    """The different s_i, and the mass of the nodes that have each; nodes that share it are one."""
    owner = np.repeat(np.arange(graph.num_nodes), graph.row_ptr.diff().numpy())
    sums = np.bincount(owner, mu[graph.col.numpy()], minlength=graph.num_nodes)
    values, which = np.unique(sums.astype(np.float64).round(14), return_inverse=True)
    return values, np.bincount(which.reshape(-1), mu).astype(np.float64)


def _costs(strengths: Array, base: Array) -> Array:
    """C of the given s with every role of a base, [n, M]: s + |B_a|^2 - 2 (the top mass of B_a)."""
    roles = len(base)
    falling = np.cumsum(-np.sort(-base, axis=1), axis=1) / roles
    masses = np.linspace(0, 1, roles + 1)
    top = [np.interp(strengths, masses, np.concatenate([[0], row])) for row in falling]
    return strengths[:, None] + (base**2).mean(1) - 2 * np.stack(top, axis=1)


def _transport_bound(cost: Array, mass: Array) -> float:
    """The least cost [n, M] of a coupling of mass [n] with equal masses, or a little less.

    It is the value of the dual at potentials v, which no choice of them brings above the least
    cost: that they come from an iterative solver can only make the bound lower.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    rows, roles = cost.shape
    equal = vstack(
        [kron(eye_array(rows), np.ones((1, roles))), kron(np.ones((1, rows)), eye_array(roles))],
        format="csr",
    )
    wanted = np.concatenate([mass, np.full(roles, mass.sum() / roles)])
    solved = linprog(cost.reshape(-1), A_eq=equal, b_eq=wanted, method="highs")
    potentials = np.zeros(roles) if solved.status else solved.eqlin.marginals[rows:]
    return float((cost - potentials).min(1) @ mass + potentials.mean())
