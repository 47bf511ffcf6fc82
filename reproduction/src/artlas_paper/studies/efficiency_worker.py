"""Measure one configuration of the study of efficiency: JSON in, lines of JSON out.

``python -m artlas_paper.studies.efficiency_worker CONFIGURATION`` writes a line when data and model
are ready, and one after every iteration with its seconds and the peak of memory above what was in
use at that point. An iteration of several parts, a few graphs each, also writes a line after every
part. The parent process may end this one at any time, and has what was measured until then.
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
Part = tuple[int, Call]  # the number of graphs, and the work on them


@dataclass(frozen=True)
class Configuration:
    """One measurement: a method's task on graphs of a dataset, or on random graphs.

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


def load_graphs(configuration: Configuration) -> Graphs:
    """Generate random graphs or draw them from a dataset, the same for every method."""
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
    """Generate random graphs with DEGREE neighbours on average and constant features."""
    edges = [(n, torch.from_numpy(random_edges(rng, n, min(DEGREE, n - 1)))) for n in sizes]
    graphs = Graphs.from_edges(edges)
    return graphs if features == 1 else graphs.with_features(torch.ones(graphs.num_nodes, features))


def prepare_iteration(
    method: str, task: str, level: registry.Level, features: int
) -> Callable[[Graphs], list[Part]]:
    """Prepare a method; return a function from graphs to the parts of one iteration of its task."""
    if method == "ART":
        model = artlas.load(level)
        return lambda graphs: [(len(graphs), art_iteration(model, graphs, task))]
    if method in OTHERS:
        return partial(baseline_iteration, registry.find(OTHERS[method]), task, level)
    scgfm = SCGFM(SCGFMConfig(features=features, solver=SOLVERS[method]))
    training = registry.find("scgfm").training["graph"]
    rng = np.random.default_rng(GRAPH_SEED + 1)
    few = sparse_graphs(rng, rng.integers(16, 65, size=32).tolist(), features)
    # train the bases first, because a solver's iterations depend on them
    scgfm.pretrain({"random": few}, dataclasses.replace(training, epochs=10, batch=32))

    def parts(graphs: Graphs) -> list[Part]:
        if task == "training":
            return [(len(graphs), scgfm.stepper(graphs, training))]
        # one graph per thread, as it aligns them anyway, so that a capped run has some results
        few = torch.get_num_threads()
        cuts = [graphs[i : i + few] for i in range(0, len(graphs), few)]
        return [(len(cut), partial(scgfm.embed, cut)) for cut in cuts]

    return parts


def baseline_iteration(
    entry: registry.Entry, task: str, level: registry.Level, graphs: Graphs
) -> list[Part]:
    """Embed by, or take a training step of, a baseline of the paper's width."""
    if graphs.y is None:
        graphs = graphs.with_labels(torch.arange(len(graphs)) % 2)
    model = entry.make(level, {"graphs": graphs})
    if task == "training":
        return [(len(graphs), model.stepper(graphs, entry.training[level]))]
    return [(len(graphs), lambda: model.embed(dataclasses.replace(graphs)))]


def art_iteration(model: ART, graphs: Graphs, task: str) -> Call:
    """Embed, or take a training step on, graphs without anything derived before."""
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


def run_configuration(configuration: Configuration, emit: Callable[[dict[str, Any]], None]) -> None:
    """Load graphs and method, then run all iterations, and emit a line for each."""
    target = configuration.target
    level = "graph" if target is None else find(target).level
    graphs = load_graphs(configuration)
    features = graphs.num_features or 1
    make_parts = prepare_iteration(configuration.method, configuration.task, level, features)
    for _, call in make_parts(sparse_graphs(np.random.default_rng(GRAPH_SEED), [32, 32], features)):
        call()  # loads what is imported on first use
    parts = make_parts(graphs)
    before = reset_peak()
    emit(
        {
            "total_nodes": graphs.num_nodes,
            "total_edges": graphs.num_edges,
            "threads": torch.get_num_threads(),
        }
    )
    training = configuration.task == "training"
    with glibc_malloc.reuse_large_blocks() if training else nullcontext():  # as in pretraining
        _measure(configuration, parts, before, emit)


def _measure(
    configuration: Configuration,
    parts: list[Part],
    before: int,
    emit: Callable[[dict[str, Any]], None],
) -> None:
    """Run every repeat's warm-up and timed iterations; before: the memory not counted."""
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
                    emit({"part": count, "seconds": seconds, "peak": peak})
            warm, peak = number < configuration.warm, memory_bytes("VmHWM") - before
            emit({"repeat": repeat, "warm": warm, "seconds": whole, "peak": peak})


if __name__ == "__main__":
    run_configuration(
        Configuration(**json.loads(sys.argv[1])), lambda line: print(json.dumps(line), flush=True)
    )
