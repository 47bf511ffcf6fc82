"""One configuration of the study of efficiency, in this process: JSON in, lines of JSON out.

``python -m artlas_paper.studies.efficiency_worker CONFIGURATION`` writes a line when data and model are
ready, and one after every iteration, with its seconds and the peak of memory above what was in use
when it was ready; an iteration of several parts, a few graphs each, has one after every part too.
Whoever started it may end it at any time, and has what was done until then.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import artlas
from artlas.graphs.collection import Graphs
from artlas.method.model import ART
from artlas.training import glibc_malloc
from artlas_paper import datasets
from artlas_paper.datasets.registry import find
from artlas_paper.methods import registry
from artlas_paper.methods.scgfm import SCGFM, SCGFMConfig
from artlas_paper.methods.scgfm_solvers import Solver
from artlas_paper.process_memory import memory_bytes, reset_peak
from artlas_paper.protocol import art_training
from artlas_paper.random_graphs import random_edges

DEGREE, GRAPH_SEED = 8.0, 0
SOLVERS: dict[str, Solver] = {
    "SCGFM": "pot",
    "SCGFM, entropic": "pot-entropic",
    "SCGFM, our solver": "artlas",
}
METHODS = ("ART", *SOLVERS)  # measured at every size
OTHERS = {e.title: e.name for e in registry.METHODS.values() if e.name != "scgfm"}  # on datasets
Call = Callable[[], object]
Part = tuple[int, Call]  # so many graphs, and what is done with them


@dataclass(frozen=True)
class Configuration:
    """What is measured: a method's task on so many graphs of a dataset, or of so many nodes.

    target: a dataset, or None for random graphs of ``nodes`` nodes; task: ``inference`` or
    ``training``; warm, timed: iterations of each of the repeats.
    """

    method: str
    task: str
    graphs: int
    target: str | None
    nodes: int | None
    root: str | None
    warm: int
    timed: int
    repeats: int

    def __post_init__(self) -> None:
        if self.method not in (*METHODS, *OTHERS) or self.task not in ("inference", "training"):
            raise ValueError(
                f"There is no task {self.task!r} of {self.method!r}: choose inference or training "
                f"of {'; '.join([*METHODS, *OTHERS])}."
            )


def data_of(configuration: Configuration) -> Graphs:
    """The same graphs for every method: random ones, or drawn from a dataset, GRAPH_SEED."""
    rng, count, target = (
        np.random.default_rng(GRAPH_SEED),
        configuration.graphs,
        configuration.target,
    )
    if target is None:
        assert configuration.nodes is not None
        return sparse_graphs(rng, [configuration.nodes] * count)
    entry, root = find(target), configuration.root
    place = None if root is None else Path(root)
    whole = datasets.load_examples(entry.name, place, "paper")
    return whole[np.sort(rng.choice(len(whole), min(count, len(whole)), replace=False))]


def sparse_graphs(rng: np.random.Generator, sizes: list[int], features: int = 1) -> Graphs:
    """Random graphs of these sizes, DEGREE neighbours on average, with constant features."""
    edges = [(n, torch.from_numpy(random_edges(rng, n, min(DEGREE, n - 1)))) for n in sizes]
    made = Graphs.from_edges(edges)
    return made if features == 1 else made.with_features(torch.ones(made.num_nodes, features))


def iteration_of(
    method: str, task: str, level: registry.Level, features: int
) -> Callable[[Graphs], list[Part]]:
    """From graphs with so many features to the parts of one iteration of a method's task."""
    if method == "ART":
        model = artlas.load(level)
        return lambda graphs: [(len(graphs), art_iteration(model, graphs, task))]
    if method in OTHERS:
        return partial(baseline_iteration, registry.find(OTHERS[method]), task, level)
    scgfm = SCGFM(SCGFMConfig(features=features, solver=SOLVERS[method]))
    training = registry.find("scgfm").training["graph"]
    rng = np.random.default_rng(GRAPH_SEED + 1)
    few = sparse_graphs(rng, rng.integers(16, 65, size=32).tolist(), features)
    # bases as training shapes them, because a solver's iterations depend on them
    scgfm.pretrain({"random": few}, dataclasses.replace(training, epochs=10, batch=32))

    def parts(graphs: Graphs) -> list[Part]:
        if task == "training":
            return [(len(graphs), scgfm.stepper(graphs, training))]
        # one graph a thread, as it aligns them anyway, so that some are known if all take too long
        few = torch.get_num_threads()
        cuts = [graphs[i : i + few] for i in range(0, len(graphs), few)]
        return [(len(cut), partial(scgfm.embed, cut)) for cut in cuts]

    return parts


def baseline_iteration(
    entry: registry.Entry, task: str, level: registry.Level, graphs: Graphs
) -> list[Part]:
    """Embed by, or take a training step of, a baseline of the paper's sizes."""
    if graphs.y is None:
        graphs = graphs.with_labels(torch.arange(len(graphs)) % 2)
    model = entry.make(level, {"graphs": graphs})
    if task == "training":
        return [(len(graphs), model.stepper(graphs, entry.training[level]))]
    return [(len(graphs), lambda: model.embed(dataclasses.replace(graphs)))]


def art_iteration(model: ART, graphs: Graphs, task: str) -> Call:
    """Embed, or take a training step on, graphs of which nothing was kept from before."""
    if task == "inference":
        return lambda: model.embed(graphs, "paper")
    training, model = art_training("graph"), model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=training.rate)
    bare = graphs.with_features(None).with_labels(None)

    def step() -> float:
        optimiser.zero_grad()
        energies = model.energies(bare)
        loss = artlas.coverage(energies, model.config.coverage_temperature).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip or math.inf)
        optimiser.step()
        return float(loss.detach())

    return step


def work(configuration: Configuration, tell: Callable[[dict[str, Any]], None]) -> None:
    """Get ready, then run every repeat's warm-up and timed iterations, telling each."""
    target = configuration.target
    level = "graph" if target is None else find(target).level
    graphs = data_of(configuration)
    features = graphs.num_features or 1
    make = iteration_of(configuration.method, configuration.task, level, features)
    for _, call in make(sparse_graphs(np.random.default_rng(GRAPH_SEED), [32, 32], features)):
        call()  # loads what is loaded late
    parts = make(graphs)
    before = reset_peak()
    tell(
        {
            "total_nodes": graphs.num_nodes,
            "total_edges": graphs.num_edges,
            "threads": torch.get_num_threads(),
        }
    )
    training = configuration.task == "training"
    with glibc_malloc.reuse_large_blocks() if training else nullcontext():  # as the trainer does
        _measure(configuration, parts, before, tell)


def _measure(
    configuration: Configuration,
    parts: list[Part],
    before: int,
    tell: Callable[[dict[str, Any]], None],
) -> None:
    """Every repeat's warm-up and timed iterations; before: the memory that is not counted."""
    for repeat in range(configuration.repeats):
        for number in range(configuration.warm + configuration.timed):
            whole = 0.0
            for count, call in parts:
                began = time.perf_counter()
                call()
                seconds = time.perf_counter() - began
                whole += seconds
                if len(parts) > 1:
                    peak = memory_bytes("VmHWM") - before
                    tell({"part": count, "seconds": seconds, "peak": peak})
            warm, peak = number < configuration.warm, memory_bytes("VmHWM") - before
            tell({"repeat": repeat, "warm": warm, "seconds": whole, "peak": peak})


if __name__ == "__main__":
    work(Configuration(**json.loads(sys.argv[1])), lambda line: print(json.dumps(line), flush=True))
