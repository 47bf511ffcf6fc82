"""Improve a model's couplings by the iterative solver, and find reference energies."""

from __future__ import annotations

from typing import Any

from artlas.gw.solver import (
    EXACT,
    FROM_AFAR,
    Solution,
    SolverConfig,
    Start,
    by_degree,
    independent,
    solve,
)
from artlas.method.model import ART


def amortized(model: ART) -> Start:
    """The start at a model's own couplings."""
    return lambda graph: model.couplings(graph).cpu().double().numpy()


def refine(model: ART, graphs: Any, steps: int) -> Solution:
    """A model's couplings after so many exact steps each; no energy is higher than before."""
    starts = [(amortized(model), SolverConfig(exact=steps))]
    return solve(graphs, model.atlas.relations(), starts, model.config.measure_epsilon)


def reference_starts(model: ART) -> dict[str, tuple[Start, SolverConfig]]:
    """The three starts of the reference, by name."""
    relations, epsilon = model.atlas.relations(), model.config.measure_epsilon
    return {
        "from ART": (amortized(model), EXACT),
        "from product": (independent(relations, epsilon), FROM_AFAR),
        "from degrees": (by_degree(relations, epsilon), FROM_AFAR),
    }


def reference(model: ART, graphs: Any) -> Solution:
    """The least energies found from three starts: the model's, the product, and by degree."""
    starts = list(reference_starts(model).values())
    return solve(graphs, model.atlas.relations(), starts, model.config.measure_epsilon)
