r"""Entropic Gromov-Wasserstein solver of fixed strength: projected gradients with Sinkhorn.

.. math:: T \leftarrow \mathrm{Sinkhorn}\big(\exp(4 A T B / \epsilon)\big)

With a large :math:`\epsilon`, all starts reach the same fixed point, but its energy is above the
minimum: unlike :mod:`artlas.gw`, the iteration does not minimise the relational energy itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure
from artlas.gw import solver
from artlas.io.reading import as_graphs
from artlas.method import refinement

if TYPE_CHECKING:
    from artlas.method.model import ART

EPSILON = 0.1


def solve(
    model: ART,
    graphs: Any,
    start: solver.Start,
    steps: int = 200,
    sinkhorn: int = 500,
    epsilon: float = EPSILON,
    tolerance: float = 1e-7,
) -> tuple[solver.Array, list[solver.Array]]:
    """Align graphs with a model's bases, and return energies [G, K] and couplings [K, n, M].

    A graph takes at most ``steps`` steps of at most ``sinkhorn`` iterations each. It ends earlier
    when none of its couplings changes by more than ``tolerance`` in the L1 norm.
    """
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive, got {epsilon!r}.")
    relations = model.atlas.relations().detach().double()
    energies, couplings = [], []
    for graph in as_graphs(graphs):
        mu = degree_measure(graph, model.config.measure_epsilon).double()
        mu = mu / mu.sum()
        adjacency = torch.from_numpy(graph.to_scipy(0).toarray()).double()
        coupling = torch.from_numpy(np.array(start(graph), dtype=np.float64))
        for _ in range(steps):
            scores = 4 * adjacency @ coupling @ relations / epsilon
            change = _sinkhorn(scores, mu, sinkhorn) - coupling
            coupling = coupling + change
            if float(change.abs().sum((1, 2)).max()) <= tolerance:
                break
        energies.append(_energies(graph, mu, relations, coupling))
        couplings.append(coupling.numpy())
    return np.stack(energies), couplings


def reference(
    model: ART, graphs: Any, steps: int = 200, epsilon: float = EPSILON
) -> tuple[solver.Array, list[solver.Array]]:
    """Return the lowest energies, and their couplings, that the model's reference starts reach."""
    best: tuple[solver.Array, list[solver.Array]] | None = None
    for start, _ in refinement.reference_starts(model).values():
        energies, couplings = solve(model, graphs, start, steps, epsilon=epsilon)
        if best is None:
            best = energies, couplings
            continue
        lower = energies < best[0]
        pairs = zip(lower, couplings, best[1], strict=True)
        best = (
            np.where(lower, energies, best[0]),
            [np.where(wins[:, None, None], new, old) for wins, new, old in pairs],
        )
    assert best is not None
    return best


def _sinkhorn(scores: Tensor, mu: Tensor, iterations: int) -> Tensor:
    """Scale exp(scores) [K, n, M] to couplings of mu [n] and uniform roles."""
    roles = scores.shape[2]
    # the largest score of every row and column becomes 0: only entries far below it underflow
    scores = scores - scores.max(2, keepdim=True).values
    kernel = torch.exp(scores - scores.max(1, keepdim=True).values)
    columns = torch.ones(len(kernel), roles, 1, dtype=kernel.dtype)
    for _ in range(iterations):
        rows = mu[:, None] / (kernel @ columns)
        before, columns = columns, (1 / roles) / (kernel.transpose(1, 2) @ rows)
        if float((columns / before - 1).abs().max()) < 1e-10:
            break
    return rows * kernel * columns.transpose(1, 2)


def _energies(graph: Graphs, mu: Tensor, relations: Tensor, coupling: Tensor) -> solver.Array:
    """Compute E(A, B_k; T_k) for every base, [K]."""
    row = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.row_ptr.diff())
    own = (mu[row] * mu[graph.col.long()]).sum()
    nu = coupling.sum(1)
    of_bases = torch.einsum("km,kmr,kr->k", nu, relations.square(), nu)
    neighbour_sums = torch.zeros_like(coupling).index_add_(1, row, coupling[:, graph.col.long()])
    cross = (neighbour_sums @ relations * coupling).sum((1, 2))
    return (own + of_bases - 2 * cross).numpy()
