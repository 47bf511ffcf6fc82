"""How well does ART's direct alignment agree with iterative solvers, and how much faster is it?

Makes the paper's table of alignment: direct, refined and iterative alignment side by side.

    artlas-paper study alignment --root ROOT --out DIR
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from artlas import evaluation
from artlas.graphs.collection import Graphs
from artlas.gw import solver
from artlas.method import refinement
from artlas.method.batching import GraphBatch
from artlas.method.energy import independent_energy, responsibilities
from artlas.method.model import ART
from artlas.method.representations import node_features, paper_vector
from artlas_paper import entropic_gw
from artlas_paper.protocol import EPISODE_SEED, EPISODES, QUERIES, SEED, SHOTS
from artlas_paper.studies.alignment_report import (
    ENTROPIC,
    PROTOCOL,
    REFINED,
    STEPS,
    TARGETS,
    figure,
    table,
)
from artlas_paper.studies.short_training import episode_accuracy
from artlas_paper.studies.study import Job, ReportProgress, Setting, Study

Values = NDArray[np.float64]
BATCH = 16  # graphs solved between two reports of progress


def jobs(setting: Setting) -> Iterable[Job]:
    """List a job for every target and seed."""
    for target, seed in itertools.product(setting.targets, setting.seeds):
        yield Job({"target": target, "seed": seed}, partial(_measure, setting, target, seed))


def _measure(setting: Setting, target: str, seed: int, report: ReportProgress) -> Mapping[str, Any]:
    sample, model = setting.sample(target), setting.model(target, seed)
    graphs, done = sample.graphs, itertools.count(1)
    batches = -(-len(graphs) // BATCH)

    def show() -> None:
        report(next(done), 4 * batches)

    model.align(graphs[:1])
    began = time.perf_counter()
    direct = model.align(graphs).energies.double().numpy()
    seconds = {"ART": time.perf_counter() - began}
    solutions: dict[str, solver.Solution] = {}
    refine = partial(refinement.refine, model, steps=STEPS)
    solutions[REFINED], seconds[REFINED] = _solve_in_batches(graphs, refine, show)
    starts = refinement.reference_starts(model)
    for start, how in starts.items():
        solve = partial(
            solver.solve,
            relations=model.atlas.relations(),
            starts=[how],
            measure_epsilon=model.config.measure_epsilon,
        )
        solutions[start], seconds[start] = _solve_in_batches(graphs, solve, show)
    solutions["reference"] = solver.lowest([solutions[start] for start in starts])
    seconds["reference"] = sum(seconds[start] for start in starts)
    couplings = [model.couplings(graphs[g]) for g in range(len(graphs))]
    results: dict[str, tuple[Values, Sequence[Any]]] = {"ART": (direct, couplings)}
    results |= {scheme: (s.energies, s.couplings) for scheme, s in solutions.items()}
    amortized = refinement.amortized_start(model)
    for scheme, solve_entropic in (
        (ENTROPIC[0], partial(entropic_gw.solve, model, graphs, amortized, STEPS)),
        (ENTROPIC[1], partial(entropic_gw.reference, model, graphs)),
    ):
        began = time.perf_counter()
        results[scheme] = solve_entropic()
        seconds[scheme] = time.perf_counter() - began
    product = independent_energy(model.prepare(graphs), model.atlas.relations().detach())
    episodes = evaluation.draw_episodes(sample.labels, EPISODES, SHOTS, QUERIES, EPISODE_SEED)
    best, same = results["reference"][0], results["from ART"][0]
    entropic = results[ENTROPIC[1]][0]
    schemes: dict[str, dict[str, float]] = {}
    for scheme, (energies, own) in results.items():
        z = representation(model, graphs, energies, own)
        rho, top = agreement(energies, best)
        same_rho, same_top = agreement(energies, same)
        entropic_rho, entropic_top = agreement(energies, entropic)
        schemes[scheme] = {
            "energy": float(energies.mean()),
            "accuracy": episode_accuracy(z, sample.labels, episodes, sample.level),
            "rho": rho,
            "top": top,
            "same_rho": same_rho,
            "same_top": same_top,
            "entropic_rho": entropic_rho,
            "entropic_top": entropic_top,
            "ms": 1e3 * seconds[scheme] / best.size,
            "gain": float(1 - (energies / product.double().numpy()).mean()),
            "raised": float((energies - direct).max()),
        }
    wins = np.bincount(solutions["reference"].start.reshape(-1), minlength=3) / best.size
    return {
        "schemes": schemes,
        "spread": float(best.std(1).mean()),
        "wins": [round(float(share), 4) for share in wins],
        "objects": len(graphs),
        "threads": torch.get_num_threads(),
    }


def _solve_in_batches(
    graphs: Graphs, solve: Callable[[Graphs], solver.Solution], report: Callable[[], None]
) -> tuple[solver.Solution, float]:
    """Solve a batch at a time, reporting each; return the joined solution and the seconds."""
    began, parts = time.perf_counter(), []
    for first in range(0, len(graphs), BATCH):
        parts.append(solve(graphs[first : first + BATCH]))
        report()
    return solver.concatenate(parts), time.perf_counter() - began


def representation(
    model: ART, graphs: Graphs, energies: Values, couplings: Iterable[Any]
) -> Values:
    """Compose z = [q | vec H] from energies [G, K] and couplings [K, n, M] of every graph."""
    energy = torch.from_numpy(np.asarray(energies, dtype=np.float64))
    weights = responsibilities(energy, model.config.responsibility_temperature)
    x = node_features(GraphBatch(graphs), model.config).double().split(graphs.sizes.tolist())
    features = []
    for weight, own, coupling in zip(weights, x, couplings, strict=True):
        mixed = torch.einsum("k,knm->nm", weight, torch.as_tensor(coupling).double())
        features.append(len(own) * mixed.T @ own)
    return paper_vector(energy, torch.stack(features)).numpy()


def agreement(energies: Values, reference: Values) -> tuple[float, float]:
    """Compute the mean Spearman correlation over objects, and the share with equal nearest base."""
    from scipy.stats import spearmanr

    rho = [
        1.0 if np.array_equal(a, b) else float(spearmanr(a, b).statistic)
        for a, b in zip(energies, reference, strict=True)
    ]
    return float(np.mean(rho)), float(np.mean(energies.argmin(1) == reference.argmin(1)))


STUDY = Study(
    name="alignment",
    title="Amortised and iterative relational alignment",
    protocol=PROTOCOL,
    keys=("target", "seed"),
    targets=TARGETS,
    seeds=(SEED,),
    jobs=jobs,
    table=table,
    figure=figure,
    version=2,
)
