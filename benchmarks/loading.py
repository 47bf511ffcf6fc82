"""Measure loading: COLLAB's text, ego-graphs and their batches, a graph of Reddit's size.

Peaks of memory are measured in a fresh process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import artlas
from artlas import ART, Graphs
from artlas.nodes.ego import ego_graphs
from artlas_paper import datasets
from artlas_paper.datasets.centres import choose_centres
from artlas_paper.process_memory import memory_bytes
from benchmarks.data import SEED, data_root
from benchmarks.fresh_process import run_module
from benchmarks.report import ROOT, Measurement
from benchmarks.timing import Call, Rounds, interleave, ratio

SOURCES = ("Cora", "CiteSeer", "PubMed", "Computers", "Photo")
COLLAB_SECONDS, COLLAB_GB = 10.0, 2.0
PUSH_BAR, SOURCES_SECONDS, BATCH_BAR, REDDIT_GB = 3.0, 180.0, 0.1, 14.0


def measure_collab(root: Path, peer: bool) -> Iterable[Measurement]:
    """Measure time and peak memory of reading COLLAB's text; peer: also PyTorch Geometric's."""
    ours = run_module("benchmarks.loading", "collab", root)
    seconds = ours["seconds"]
    yield Measurement.single(
        "COLLAB from its text: seconds",
        seconds,
        bar=COLLAB_SECONDS,
        at_most=True,
        unit=" s",
        raw=ours,
    )
    yield Measurement.single(
        "the same: peak memory of the process",
        ours["gb"],
        bar=COLLAB_GB,
        at_most=True,
        unit=" GB",
        raw=ours,
    )
    if peer:
        theirs = run_module("benchmarks.loading", "collab-pyg", root)
        value = theirs["seconds"] / seconds
        note = f"PyTorch Geometric {theirs['seconds']:.0f} s and {theirs['gb']:.1f} GB"
        title = "COLLAB, PyTorch Geometric's time / ours"
        yield Measurement.single(title, value, note=note, raw=theirs)


def measure_push(root: Path, centres: int, rounds: Rounds) -> Iterable[Measurement]:
    """Measure the time per centre on ogbn-arxiv of get_ppr (PyTorch Geometric) over ours."""
    from torch_geometric.utils import get_ppr

    graph = datasets.load("ogbn-arxiv", root, verbose=False)
    chosen = np.random.default_rng(SEED).choice(graph.num_nodes, centres, replace=False)
    source = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.row_ptr.diff())
    edge_index, target = torch.stack([source, graph.col.long()]), torch.from_numpy(chosen)
    measured = interleave(
        {
            "get_ppr": lambda: get_ppr(
                edge_index, alpha=0.15, eps=1e-4, target=target, num_nodes=graph.num_nodes
            ),
            "ours": lambda: ego_graphs(graph, chosen),
        },
        rounds,
    )
    per = {name: 1e3 * min(values) / centres for name, values in measured.items()}
    note = f"{centres:,} centres: get_ppr {per['get_ppr']:.2f} ms, ours {per['ours']:.3f} ms each"
    name = "local push on ogbn-arxiv at 1e-4, get_ppr / ours"
    yield Measurement.of(
        name, ratio(measured, "get_ppr", "ours"), bar=PUSH_BAR, note=note, raw=measured
    )


def measure_sources(root: Path) -> Iterable[Measurement]:
    """Time finding the ego-graphs of every node of the five sources."""
    graphs = [datasets.load(name, root, "raw", verbose=False) for name in SOURCES]
    begin = time.perf_counter()
    egos = [ego_graphs(graph) for graph in graphs]
    value = time.perf_counter() - begin
    count = sum(map(len, egos))
    cut = sum(int((e.positive > e.config.most_nodes).sum()) for e in egos)
    stopped = sum(int(e.stopped.sum()) for e in egos)
    note = f"{cut:,} cut to 400 nodes, {stopped} stopped at the limit of pushes"
    name = f"ego-graphs of all {count:,} nodes of the five sources"
    yield Measurement.single(name, value, bar=SOURCES_SECONDS, at_most=True, unit=" s", note=note)


def measure_batch(root: Path, rounds: Rounds) -> Iterable[Measurement]:
    """Measure the time of building a batch of 64 ego-graphs over the training step on it."""
    for name in ("Cora", "Computers"):
        graph = datasets.load(name, root, "raw", verbose=False).with_features(None)
        egos = ego_graphs(graph, choose_centres(graph.y))
        batch, step = egos[:64], _training_step()
        calls: dict[str, Call] = {
            "build": partial(egos.__getitem__, slice(64)),
            "step": partial(step, batch),
        }
        measured = interleave(calls, rounds)
        low = {key: 1e3 * min(values) for key, values in measured.items()}
        note = f"{batch!r}: {low['build']:.1f} ms and {low['step']:.0f} ms"
        title = f"{name}: building a batch of 64 ego-graphs / the training step on it"
        spread = ratio(measured, "build", "step")
        yield Measurement.of(title, spread, bar=BATCH_BAR, at_most=True, note=note, raw=measured)


def measure_reddit() -> Iterable[Measurement]:
    """Measure the peak memory of loading a graph of Reddit's size and 300 ego-graphs a class."""
    with tempfile.TemporaryDirectory(prefix="artlas-reddit-") as folder:
        subprocess.run(
            [sys.executable, "-m", "benchmarks.synthetic_reddit", Path(folder) / "Reddit" / "raw"],
            cwd=ROOT,
            check=True,
        )
        ours = run_module("benchmarks.loading", "reddit", folder, quiet=False)
    note = (
        f"packed in {ours['pack']:.0f} s, loaded in {ours['load']:.0f} s, "
        f"{ours['centres']:,} ego-graphs in {ours['push']:.1f} s"
    )
    value = ours["gb"]
    name = "graph of Reddit's layout and size: load, 300 centres a class; peak memory"
    yield Measurement.single(
        name, value, bar=REDDIT_GB, at_most=True, unit=" GB", note=note, raw=ours
    )


def _training_step() -> Callable[[Graphs], None]:
    model = ART()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(batch: Graphs) -> None:
        optimiser.zero_grad()
        model(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()

    return step


def _collab(root: Path) -> dict[str, float]:
    from artlas.io import tu

    begin = time.perf_counter()
    graphs = tu.read(root / "TUDataset" / "COLLAB" / "raw").graphs
    seconds = time.perf_counter() - begin
    assert graphs.num_edges == 12_286_079
    return {"seconds": seconds}


def _collab_pyg(root: Path) -> dict[str, float]:
    from torch_geometric.datasets import TUDataset

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "COLLAB").mkdir()
        os.symlink(root / "TUDataset" / "COLLAB" / "raw", Path(folder) / "COLLAB" / "raw")
        begin = time.perf_counter()
        data = TUDataset(folder, "COLLAB")
        seconds = time.perf_counter() - begin
        assert len(data) == 5000
    return {"seconds": seconds}


def _reddit(root: Path) -> dict[str, float]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    times = [time.perf_counter()]
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=_console()) as bar:
        task = bar.add_task("preparing", total=None)

        def show(stage: str, done: int, total: int | None) -> None:
            bar.update(task, description=stage, completed=done, total=total)

        print(datasets.prepare("Reddit", root, progress=show).check, file=sys.stderr)
        times.append(time.perf_counter())
        show("loading", 0, None)
        graph = datasets.load("Reddit", root, verbose=False)
        times.append(time.perf_counter())
        centres = choose_centres(graph.y)
        egos = ego_graphs(graph, centres, progress=lambda d, t: show("ego-graphs", d, t))
        times.append(time.perf_counter())
    print(egos.summary, file=sys.stderr)
    pack, load, push = np.diff(times).tolist()
    return {"pack": pack, "load": load, "push": push, "centres": len(egos)}


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)


TASKS = {"collab": _collab, "collab-pyg": _collab_pyg, "reddit": _reddit}


def bench_root() -> Path:
    """Return the root of the benchmark files; raise if there are none."""
    root = data_root()
    if root is None:
        raise FileNotFoundError("no benchmark files: set $ARTLAS_DATA to a root that holds them")
    return root


if __name__ == "__main__":
    measured = TASKS[sys.argv[1]](Path(sys.argv[2]))
    peak = memory_bytes("VmHWM") / 1e9  # ru_maxrss would include the parent's
    print(json.dumps({**measured, "gb": peak, "artlas": artlas.__version__}))
