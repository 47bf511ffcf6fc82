"""Measure a model on graphs, and bound from both sides what cannot be measured."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from artlas.certify.certificate import TOLERANCE, Array, Certificate, Interval, judge_statements
from artlas.errors import raise_graph_error
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure
from artlas.gw import solver
from artlas.gw.bounds import discrepancy_bounds, energy_bounds
from artlas.io.reading import as_graphs
from artlas.method import refinement
from artlas.method.checkpoint import weights_hash
from artlas.method.energy import coverage
from artlas.method.model import ART

MOST_NODES = 5000  # of a graph: the solver takes a dense relation between two graphs


def certify(
    model: ART,
    graphs: Any,
    names: Sequence[str] | None = None,
    most: int = 64,
    pairs: int = 100,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    """Certify a model on at most ``most`` of the graphs and ``pairs`` of their pairs.

    The seed draws both; ``progress`` is called with the number of solved problems and their total.
    """
    graphs = as_graphs(graphs)
    rng = np.random.default_rng(seed)
    labels = [f"graph {g}" for g in range(len(graphs))] if names is None else list(names)
    if len(labels) != len(graphs):
        raise ValueError(f"{len(labels)} names for {len(graphs)} graphs: give one for each.")
    chosen, graphs_given = np.arange(len(graphs)), len(graphs)
    if len(graphs) > most:
        chosen = np.sort(rng.choice(len(graphs), most, replace=False))
        graphs = graphs[chosen]
    names = tuple(labels[g] for g in chosen)
    largest = int(graphs.sizes.argmax())
    if (nodes := int(graphs.sizes[largest])) > MOST_NODES:
        wrong = f"{names[largest]}: this graph is too large for the iterative solver"
        fix = "leave it out, or pass neighbourhoods in it (artlas.ego_graphs)"
        raise_graph_error(wrong, f"{nodes:,} nodes, more than {MOST_NODES:,}", fix)
    drawn = np.stack(np.triu_indices(len(graphs), 1), axis=1).astype(np.int64)
    if len(drawn) > pairs:
        drawn = drawn[np.sort(rng.choice(len(drawn), pairs, replace=False))]
    epsilon, relations = model.config.measure_epsilon, model.atlas.relations().detach()

    total, report = len(graphs) + len(drawn), progress or (lambda done, total: None)
    alignment = model.align(graphs)
    energies = alignment.energies.cpu().double().numpy()
    recomputed, residuals = _from_couplings(model, graphs)
    upper = np.empty_like(energies)
    for g, graph in enumerate(graphs):
        upper[g] = refinement.reference(model, graph).energies[0]
        report(g + 1, total)
    solved = np.empty(len(drawn))
    for p, pair in enumerate(drawn):
        solved[p] = solver.discrepancies(graphs[pair], [(0, 1)], epsilon)[0]
        report(len(graphs) + p + 1, total)
    least = Interval(energy_bounds(graphs, relations, epsilon), upper.clip(0))

    q = np.sqrt(energies.clip(0))
    temperature = model.config.coverage_temperature
    relaxation = temperature * math.log(energies.shape[1])
    excess, bound = _excess(energies, least)
    certificate = Certificate(
        names=names,
        sizes=np.array([[graph.num_nodes, graph.num_edges] for graph in graphs]),
        energies=energies,
        residuals=residuals,
        least_energies=least,
        nearest_energy=Interval(least.low.min(1), least.high.min(1)),
        amortisation_error=_amortisation_error(q, least),
        excess=excess,
        coverage_bound=Interval(bound.low + relaxation, bound.high + relaxation),
        coverage=coverage(alignment.energies.cpu().double(), temperature).numpy(),
        covering_radius=Interval(*(np.sqrt(end.min(1).max()) for end in least)),
        pairs=drawn,
        distances=Interval(discrepancy_bounds(graphs, drawn, epsilon), solved),
        coordinate_distances=np.abs(q[drawn[:, 0]] - q[drawn[:, 1]]).max(1, initial=0),
        statements=(),
        weights=weights_hash(model),
        seed=seed,
        graphs_given=graphs_given,
    )
    statements = judge_statements(certificate, recomputed, relaxation)
    return dataclasses.replace(certificate, statements=statements)


def _from_couplings(model: ART, graphs: Graphs) -> tuple[Array, Array]:
    """Compute energies [G, K] and largest infeasibility [G] of a model's couplings in float64."""
    relations = model.atlas.relations().detach().cpu().double().numpy()
    measures = degree_measure(graphs, model.config.measure_epsilon).split(graphs.sizes.tolist())
    energies, residuals = np.empty((len(graphs), len(relations))), np.empty(len(graphs))
    for g, mu in enumerate(measures):
        A = graphs.to_scipy(g).astype(np.float64)
        couplings = model.couplings(graphs[g]).cpu().double().numpy()
        rows, columns = couplings.sum(2), couplings.sum(1)
        errors = rows - mu.numpy(), columns - 1 / columns.shape[1], couplings.clip(max=0)
        residuals[g] = max(np.abs(error).max() for error in errors)
        for k, (T, B) in enumerate(zip(couplings, relations, strict=True)):
            constant = rows[k] @ (A @ rows[k]) + columns[k] @ B**2 @ columns[k]
            energies[g, k] = constant - 2 * ((A @ T) * (T @ B)).sum()
    return energies, residuals


def _amortisation_error(q: Array, least: Interval) -> Interval:
    r"""Bound :math:`\eta`, the largest error of coordinates q [G, K] over the bases, [G]."""
    low, high = np.sqrt(least.low), np.sqrt(least.high)
    smallest = np.maximum(np.maximum(q - high, low - q), 0)
    return Interval(smallest.max(1), np.maximum(np.abs(q - low), np.abs(q - high)).max(1))


def _excess(energies: Array, least: Interval) -> tuple[Interval, Interval]:
    r"""Bound :math:`\Delta` and :math:`m^* + \Delta = \min_{k \in \mathcal K^*} e_k`, both [G]."""
    best = least.high.min(1)
    may_be_nearest = least.low <= best[:, None] + TOLERANCE
    lowest = np.where(may_be_nearest, energies, np.inf).min(1)
    highest = np.where(may_be_nearest, energies, -np.inf).max(1)
    excess = np.where(may_be_nearest, energies - least.low, -np.inf).max(1)
    return Interval((lowest - best).clip(0), excess.clip(0)), Interval(lowest, highest)
