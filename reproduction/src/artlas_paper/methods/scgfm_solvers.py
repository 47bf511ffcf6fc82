"""Iterative Gromov-Wasserstein solvers that couple a graph with SCGFM's mixture of bases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs
from artlas.gw import solver
from artlas.method.config import UNIFORM

Solver = Literal["artlas", "pot", "pot-entropic"]
Align = Callable[[Graphs, NDArray[np.float64]], NDArray[np.float64]]  # graph, base -> coupling


def dense_adjacency(graph: Graphs) -> NDArray[np.float64]:
    """Return the adjacency matrix of a single graph, [n, n]."""
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes))
    rows = np.repeat(np.arange(len(adjacency)), graph.row_ptr.diff().numpy())
    adjacency[rows, graph.col.numpy()] = 1
    return adjacency


def _pot(iterations: int, name: str, **options: Any) -> Align:
    """Return a solver of POT by the name of its function."""
    try:
        from ot import gromov
    except ImportError as error:
        raise ImportError(
            "This solver of SCGFM's is POT's, which is not installed. "
            "To fix this: pip install 'artlas[bench]', or choose the solver 'artlas'."
        ) from error
    function = getattr(gromov, name)

    def align(graph: Graphs, base: NDArray[np.float64]) -> NDArray[np.float64]:
        return function(
            dense_adjacency(graph),
            base,
            loss_fun="square_loss",
            symmetric=True,
            max_iter=iterations,
            **options,
        )

    return align


def _pot_conditional(iterations: int, epsilon: float) -> Align:
    """POT's conditional gradient, started at the product of the measures."""
    return _pot(iterations, "gromov_wasserstein")


def _pot_entropic(iterations: int, epsilon: float) -> Align:
    """POT's projected gradient with entropy of strength epsilon."""
    return _pot(iterations, "entropic_gromov_wasserstein", epsilon=epsilon, warn=False)


def _artlas(iterations: int, epsilon: float) -> Align:
    """The same conditional gradient, compiled and on sparse adjacencies."""
    steps = solver.SolverConfig(exact=iterations)

    def align(graph: Graphs, base: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = [(solver.product_start(base[None], UNIFORM), steps)]
        return solver.solve(graph, base[None], starts, UNIFORM).couplings[0][0]

    return align


SOLVERS: dict[str, Callable[[int, float], Align]] = {
    "artlas": _artlas,
    "pot": _pot_conditional,
    "pot-entropic": _pot_entropic,
}
