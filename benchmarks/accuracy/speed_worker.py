"""One measurement of speed in a process of its own, whose last line is JSON."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import artlas
from artlas import GraphClassifier, Graphs, blocks
from artlas_paper.process_memory import memory_bytes, reset_peak
from artlas_paper.random_graphs import random_edges
from benchmarks.accuracy import datasets
from benchmarks.accuracy.splits import stratified_folds
from benchmarks.timing import Call, Rounds, interleave, seconds

PARTS = ("embed", "busy", "large", "folds", "fit")
COLLECTIONS = ("NCI1", "COLLAB", "molecules")
MOLECULES, MANY, PREDICTED = 50_000, 100_000, 10_000
ROUNDS = Rounds(least=5, most=7, budget=40.0)
LONG = 2.0  # seconds to repeat a short embedding for
DEGREE = 5.0
EXPONENT = 2.5  # of the power law of degrees
SPIN = "import time\nend = time.time() + 600\nwhile time.time() < end:\n    sum(range(1000))"


def embed(data: Path, name: str) -> dict[str, Any]:
    """Time our vector, its compact form and z+ in turn."""
    graphs = _collection(data, name)
    model = artlas.load("graph")
    calls: dict[str, Call] = {
        "blocks": partial(blocks.embed, graphs),
        "compact": partial(blocks.embed, graphs, "compact"),
        "z+": partial(_plus, model, graphs),
    }
    return {"graphs": len(graphs), "rounds": interleave(calls, ROUNDS)}


def busy(data: Path, name: str) -> dict[str, Any]:
    """Do the same while two other processes compute."""
    with _two_busy_processes():
        return embed(data, name)


def large(data: Path, kind: str, nodes: str) -> dict[str, Any]:
    """Embed one random graph, after a warm-up on a small one."""
    blocks.embed(_large_graph(kind, 100))
    graph = _large_graph(kind, int(nodes))
    before = reset_peak()
    took = [seconds(partial(blocks.embed, graph))]
    peak = memory_bytes("VmHWM") - before
    while sum(took) < LONG and len(took) < 20:
        took.append(seconds(partial(blocks.embed, graph)))
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "largest_degree": int(graph.degree.max()),
        "seconds": float(np.median(took)),
        "peak_extra": peak,
    }


def folds(data: Path, name: str) -> dict[str, Any]:
    """Embed a dataset, then fit and predict on ten stratified folds."""
    graphs, labels = datasets.read(data, name)
    splits = stratified_folds(labels, [0], 10)
    start = time.perf_counter()
    vectors = blocks.embed(graphs).numpy()
    middle = time.perf_counter()
    for split in splits:
        machine = GraphClassifier(blocks=blocks.layout())
        machine.fit(vectors[split.train], labels[split.train]).predict(vectors[split.test])
    end = time.perf_counter()
    return {"graphs": len(graphs), "embed": middle - start, "folds": end - middle}


def fit(data: Path, name: str) -> dict[str, Any]:
    """Embed and fit 100,000 generated graphs, and predict more of them."""
    graphs, labels = _generated(MANY + PREDICTED)
    start = time.perf_counter()
    vectors = blocks.embed(graphs).numpy()
    embedded = time.perf_counter()
    before = memory_bytes("VmRSS")
    machine = GraphClassifier(blocks=blocks.layout())
    machine.fit(vectors[:MANY], labels[:MANY])
    fitted = time.perf_counter()
    found = machine.predict(vectors[MANY:])
    end = time.perf_counter()
    return {
        "columns": vectors.shape[1],
        "embed": embedded - start,
        "fit": fitted - embedded,
        "predict": end - fitted,
        "landmarks": len(machine.machine_.anchors),
        "accuracy": float((found == labels[MANY:]).mean()),
        "before_fit": before,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _plus(model: artlas.ART, graphs: Graphs) -> object:
    with torch.no_grad():
        return model.embed(graphs, "plus")


def _collection(data: Path, name: str) -> Graphs:
    if name != "molecules":
        return datasets.read(data, name)[0]
    from artlas_paper import datasets as paper
    from benchmarks.data import data_root

    root = data if (data / "ogbg_molhiv").is_dir() else data_root()
    if root is None:
        sys.exit(f"There is no {data}/ogbg_molhiv. To fix this: install ogbg-molhiv there.")
    graphs = paper.load("ogbg-molhiv", root, "raw", verbose=False)
    return Graphs.concat([graphs, graphs[: MOLECULES - len(graphs)]])


def _large_graph(kind: str, nodes: int) -> Graphs:
    rng = np.random.default_rng(nodes)
    if kind == "random":
        edges = random_edges(rng, nodes, DEGREE)
    else:
        weights = (np.arange(nodes) + 10.0) ** (-1 / (EXPONENT - 1))
        ends = np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random((2, 3 * nodes)))
        edges = np.minimum(ends, nodes - 1)
        edges = np.concatenate([edges, edges[::-1]], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", artlas.GraphCleaningWarning)
        return Graphs.from_edges([(nodes, edges)])


def _generated(count: int) -> tuple[Graphs, np.ndarray[Any, np.dtype[np.int64]]]:
    """Generate sparse graphs of 15 to 35 nodes of 8 kinds: class 1 has a few more short cycles."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, count)
    pairs, features = [], []
    for label in labels:
        nodes = int(rng.integers(15, 36))
        child = np.arange(1, nodes)
        parent = np.maximum(0, child - 1 - rng.integers(0, 3, nodes - 1))
        ends = rng.integers(0, nodes - 2, int(rng.integers(1, 4)) + 2 * int(label))
        tree = np.stack([np.concatenate([child, ends + 2]), np.concatenate([parent, ends])])
        pairs.append((nodes, np.concatenate([tree, tree[::-1]], axis=1)))
        features.append(np.eye(8, dtype=np.float32)[rng.integers(0, 8, nodes)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", artlas.GraphCleaningWarning)
        return Graphs.from_edges(pairs, x=features), labels


@contextmanager
def _two_busy_processes() -> Iterator[None]:
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(2)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


CALLS: dict[str, Callable[..., dict[str, Any]]] = {
    "embed": embed,
    "busy": busy,
    "large": large,
    "folds": folds,
    "fit": fit,
}

if __name__ == "__main__":
    part_, data_, *rest_ = sys.argv[1:]
    print(json.dumps(CALLS[part_](Path(data_), *rest_)))
