"""Compare POT's conditional-gradient Gromov-Wasserstein per pair with direct alignment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import ot
import torch

import artlas
from benchmarks.data import random_batch
from benchmarks.report import Measurement
from benchmarks.subject import Subject, build
from benchmarks.timing import Rounds, Spread, interleave

POT_BAR = 300.0
NODES, DEGREE, BATCH = 30, 4.0, 64


def measure(solved: int, rounds: Rounds) -> Iterator[Measurement]:
    """Measure the time per (graph, base) pair of POT over ours, in a batch and on single graphs."""
    batch = random_batch("pot", BATCH, NODES, DEGREE)
    subject = build(batch, sharp=True)
    one = Subject(subject.model, subject.graphs[:1], 1.0)
    with torch.no_grad():
        bases = subject.model.atlas.relations().double().numpy()
    problems = [_dense_problem(subject, g) for g in range(solved)]
    solutions: list[float] = []
    calls = {
        "pot": lambda: solutions.extend(_solve(problems, bases)),
        "batch": lambda: subject.infer(lambda: subject.our_energies("native")),
        "alone": lambda: one.infer(lambda: one.our_energies("native")),
    }
    times = interleave(calls, rounds)
    pairs = {"pot": solved * len(bases), "batch": BATCH * len(bases), "alone": len(bases)}
    each = {n: [t / pairs[n] for t in times[n]] for n in times}
    ours = float(subject.infer(lambda: subject.our_energies("native"))[:solved].mean())
    note = (
        f"POT {Spread.of(each['pot']).median * 1e3:.2f} ms per pair; mean energy "
        f"{np.mean(solutions):.4f} (POT), {ours:.4f} (ours, untrained)"
    )
    for name, how, bar in (("batch", f"in a batch of {BATCH}", POT_BAR), ("alone", "alone", None)):
        values = [p / o for p, o in zip(each["pot"], each[name], strict=True)]
        yield Measurement.of(
            f"POT conditional-gradient GW / ours {how}, per pair, {NODES}-node graphs",
            Spread.of(values),
            bar=bar,
            note=note if bar else "",
            raw={"seconds": times, "pairs": pairs, "mean_energy": {"ours": ours}},
        )


def _dense_problem(subject: Subject, graph: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the dense adjacency and the measure of one graph, in float64 for POT."""
    graphs: artlas.Graphs = subject.graphs
    first, last = int(graphs.node_ptr[graph]), int(graphs.node_ptr[graph + 1])
    relation = np.zeros((last - first, last - first))
    for i in range(first, last):
        neighbours = graphs.col[graphs.row_ptr[i] : graphs.row_ptr[i + 1]].long().numpy()
        relation[i - first, neighbours - first] = 1.0
    mass = subject.padded.mu[graph, : last - first].double().numpy()
    return relation, mass / mass.sum()


def _solve(problems: list[tuple[np.ndarray, np.ndarray]], bases: np.ndarray) -> list[float]:
    """Return the energy POT reaches for every graph and base."""
    nu = np.full(bases.shape[1], 1.0 / bases.shape[1])
    energies = []
    for relation, mu in problems:
        for base in bases:
            _, log = ot.gromov.gromov_wasserstein(
                relation, base, mu, nu, "square_loss", symmetric=True, log=True
            )
            energies.append(float(log["gw_dist"]))
    return energies
