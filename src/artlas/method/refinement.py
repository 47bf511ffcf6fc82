"""Refine a model's couplings with the iterative solver, and compute reference energies."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from artlas.graphs.measure import degree_measure
from artlas.gw import solver
from artlas.gw.solver import Solution, SolverConfig, Start
from artlas.method.alignment import AligningModel, Alignment, batches
from artlas.method.batching import as_data


def amortized_start(model: AligningModel) -> Start:
    """Start the solver from the model's own couplings."""
    return lambda graph: model.couplings(graph).cpu().double().numpy()


def refine(model: AligningModel, graphs: Any, steps: int) -> Solution:
    """Improve a model's couplings by at most ``steps`` exact steps; no energy increases."""
    starts = [(amortized_start(model), SolverConfig(exact=steps))]
    return solver.solve(graphs, model.atlas.relations(), starts, model.config.measure_epsilon)


def align_refined(model: AligningModel, graphs: Any, steps: int) -> Alignment:
    """Align graphs with the bases of a model by its refined couplings, all of which are kept."""
    graphs = as_data(graphs)
    weight, energies, couplings, residuals = model.atlas.logits, [], [], []
    for part in batches(graphs):
        solution = refine(model, part, steps)
        energies.append(torch.from_numpy(solution.energies))
        measures = degree_measure(part, model.config.measure_epsilon).split(part.sizes.tolist())
        for coupling, mu in zip(solution.couplings, measures, strict=True):
            couplings.append(torch.from_numpy(coupling).to(weight))
            rows = np.abs(coupling.sum(2) - mu.numpy()).max(1)
            columns = np.abs(coupling.sum(1) - 1 / model.config.roles).max(1)
            residuals.append(torch.from_numpy(np.maximum(rows, columns)))
    return Alignment(
        torch.cat(energies).to(weight), torch.stack(residuals).to(weight), graphs, model, couplings
    )


def reference_starts(model: AligningModel) -> dict[str, tuple[Start, SolverConfig]]:
    """The three starts of the reference energies, by name."""
    relations, epsilon = model.atlas.relations(), model.config.measure_epsilon
    mirror = SolverConfig(mirror=solver.MIRROR)
    return {
        "from ART": (amortized_start(model), SolverConfig()),
        "from product": (solver.product_start(relations, epsilon), mirror),
        "from degrees": (solver.degree_start(relations, epsilon), mirror),
    }


def reference(model: AligningModel, graphs: Any) -> Solution:
    """Find the lowest energies from three starts: the model's, the product and the degrees."""
    starts = list(reference_starts(model).values())
    return solver.solve(graphs, model.atlas.relations(), starts, model.config.measure_epsilon)
