"""Compare our iterative solver with POT's conditional gradient from the same starts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import ot
from numpy.typing import NDArray

import artlas
from artlas.graphs.measure import degree_measure
from artlas.gw import solver
from artlas.method import refinement
from benchmarks.data import random_batch, real_batch
from benchmarks.report import Measurement

RATIO_BAR, WITHIN = 10.0, 1e-6
BATCH = 10  # graphs solved by one solver before the other
Array = NDArray[np.float64]


def measure(count: int, quick: bool) -> Iterable[Measurement]:
    """Compare energies and seconds per pair, on random graphs and relations and on real ones."""
    rng = np.random.default_rng(0)
    drawn = rng.uniform(0, 1, (4, 12, 12))
    relations = (drawn + drawn.transpose(0, 2, 1)) / 2 * (1 - np.eye(12))
    random = artlas.Graphs.from_edges(random_batch("gw", 2 * count, 24, 5).edge_lists())
    yield from _compare(
        "random pairs, starts inside", random, relations, _start_inside(relations, rng)
    )
    model = artlas.load("graph")
    bases = model.atlas.relations().detach().double().numpy()
    chosen = np.arange(0, len(bases), 4)
    for name in ("NCI1",) if quick else ("NCI1", "COLLAB"):
        graphs = artlas.Graphs.from_edges(real_batch(name, count).edge_lists())
        inside = _start_inside(bases[chosen], rng)
        yield from _compare(f"{name}, starts inside", graphs, bases[chosen], inside)

        def start(graph: artlas.Graphs) -> Array:
            return refinement.amortized_start(model)(graph)[chosen]

        # equivalent nodes have tied costs there, and the solvers break ties differently
        label = f"{name}, from ART's couplings, where ties are broken differently"
        yield from _compare(label, graphs, bases[chosen], start, tied=True)


def _start_inside(relations: Array, rng: np.random.Generator) -> solver.Start:
    """Draw a coupling inside the polytope, from where no two vertices have tied costs."""

    def start(graph: artlas.Graphs) -> Array:
        mu, roles = degree_measure(graph, 1e-8).numpy(), relations.shape[1]
        couplings = rng.uniform(0.2, 1, (len(relations), len(mu), roles))
        for _ in range(1000):
            couplings *= (mu / couplings.sum(2))[:, :, None]
            couplings /= couplings.sum(1)[:, None, :] * roles
        return couplings

    return start


def _next_start(starts: Iterator[Array], graph: artlas.Graphs) -> Array:
    return next(starts)


def _compare(
    name: str, graphs: artlas.Graphs, relations: Array, start: solver.Start, tied: bool = False
) -> Iterable[Measurement]:
    """Run both solvers in turn on a few graphs at a time, so that the machine is equally busy."""
    ours, theirs, differences = 0.0, 0.0, []
    for first in range(0, len(graphs), BATCH):
        part = graphs[first : first + BATCH]
        starts = [start(graph) for graph in part]
        remaining = iter(starts)
        began = time.perf_counter()
        next_start = partial(_next_start, remaining)
        solution = solver.solve(part, relations, [(next_start, solver.SolverConfig())])
        ours += time.perf_counter() - began
        for graph, couplings, energies in zip(part, starts, solution.energies, strict=True):
            A = graph.to_scipy(0).toarray().astype(float)
            for T, relation, energy in zip(couplings, relations, energies, strict=True):
                began = time.perf_counter()
                _, log = ot.gromov.gromov_wasserstein(
                    A, relation, T.sum(1), T.sum(0), "square_loss", G0=T, log=True
                )
                theirs += time.perf_counter() - began
                differences.append(float(energy - log["gw_dist"]))
    gaps = np.array(differences)
    ratio = theirs / ours
    note = (
        f"{len(gaps)} pairs: {1e3 * theirs / len(gaps):.2f} ms POT, "
        f"{1e3 * ours / len(gaps):.2f} ms ours"
    )
    title = f"GW solver, POT / ours, seconds: {name}"
    yield Measurement.single(title, ratio, bar=RATIO_BAR, note=note)
    share = float((gaps <= WITHIN).mean())
    note = f"ours - POT: mean {gaps.mean():+.2e}, {gaps.min():+.2e} to {gaps.max():+.2e}"
    yield Measurement.single(
        f"GW solver, pairs no higher than POT within 1e-6: {name}",
        100 * share,
        bar=None if tied else 100.0,
        unit=" %",
        note=note,
        raw={"differences": differences},
    )
