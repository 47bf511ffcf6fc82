"""Getting graphs in: COLLAB's text, ego-graphs by local push, batches of them, a graph of Reddit's
size. What has a peak of memory is measured in a process of its own."""

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
from benchmarks.report import ROOT, Figure
from benchmarks.timing import Call, Rounds, interleave, ratio

SOURCES = ("Cora", "CiteSeer", "PubMed", "Computers", "Photo")
COLLAB_SECONDS, COLLAB_GB = 10.0, 2.0
PUSH_BAR, SOURCES_SECONDS, BATCH_BAR, REDDIT_GB = 3.0, 180.0, 0.1, 14.0


def measure_collab(root: Path, peer: bool) -> Iterable[Figure]:
    """Time and peak memory of reading COLLAB's text, and PyTorch Geometric's for comparison."""
    ours = _alone("collab", root)
    seconds = ours["seconds"]
    yield Figure(
        "COLLAB from its text: seconds",
        seconds,
        seconds,
        seconds,
        bar=COLLAB_SECONDS,
        at_most=True,
        unit=" s",
        raw=ours,
    )
    yield Figure(
        "the same: peak memory of the process",
        ours["gb"],
        ours["gb"],
        ours["gb"],
        bar=COLLAB_GB,
        at_most=True,
        unit=" GB",
        raw=ours,
    )
    if peer:
        theirs = _alone("collab-pyg", root)
        value = theirs["seconds"] / seconds
        note = f"PyTorch Geometric {theirs['seconds']:.0f} s and {theirs['gb']:.1f} GB"
        yield Figure(
            "COLLAB, PyTorch Geometric's time / ours", value, value, value, note=note, raw=theirs
        )


def measure_push(root: Path, centres: int, rounds: Rounds) -> Iterable[Figure]:
    """Time a centre on ogbn-arxiv, PyTorch Geometric's get_ppr over ours, threshold 1e-4."""
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
    yield Figure.of(name, ratio(measured, "get_ppr", "ours"), bar=PUSH_BAR, note=note, raw=measured)


def measure_sources(root: Path) -> Iterable[Figure]:
    """Time of the ego-graphs of every node of the five sources, found from nothing."""
    graphs = [datasets.load(name, root, "raw", verbose=False) for name in SOURCES]
    begin = time.perf_counter()
    egos = [ego_graphs(graph) for graph in graphs]
    value = time.perf_counter() - begin
    count = sum(map(len, egos))
    cut = sum(int((e.positive > e.config.most_nodes).sum()) for e in egos)
    stopped = sum(int(e.stopped.sum()) for e in egos)
    note = f"{cut:,} cut to 400 nodes, {stopped} stopped at the limit of pushes"
    name = f"ego-graphs of all {count:,} nodes of the five sources"
    yield Figure(name, value, value, value, bar=SOURCES_SECONDS, at_most=True, unit=" s", note=note)


def measure_batch(root: Path, rounds: Rounds) -> Iterable[Figure]:
    """Time of building a training batch of 64 ego-graphs over the training step on it."""
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
        yield Figure.of(title, spread, bar=BATCH_BAR, at_most=True, note=note, raw=measured)


def measure_reddit() -> Iterable[Figure]:
    """Peak memory of loading a graph of Reddit's size and finding 300 centres a class."""
    with tempfile.TemporaryDirectory(prefix="artlas-reddit-") as folder:
        subprocess.run(
            [sys.executable, "-m", "benchmarks.stand_in", Path(folder) / "Reddit" / "raw"],
            cwd=ROOT,
            check=True,
        )
        ours = _alone("reddit", Path(folder), quiet=False)
    note = (
        f"packed in {ours['pack']:.0f} s, loaded in {ours['load']:.0f} s, "
        f"{ours['centres']:,} ego-graphs in {ours['push']:.1f} s"
    )
    value = ours["gb"]
    name = "graph of Reddit's layout and size: load, 300 centres a class; peak memory"
    yield Figure(name, value, value, value, REDDIT_GB, True, " GB", note, ours)


def _training_step() -> Callable[[Graphs], None]:
    model = ART()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(batch: Graphs) -> None:
        optimiser.zero_grad()
        model(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()

    return step


def _alone(task: str, root: Path, quiet: bool = True) -> dict[str, Any]:
    """What a task measured of itself in a fresh process."""
    words = [sys.executable, "-m", "benchmarks.loading", task, str(root)]
    error = subprocess.PIPE if quiet else None
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=error, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[2:])} failed:\n{(done.stderr or '')[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


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

        def tell(what: str, done: int, total: int | None) -> None:
            bar.update(task, description=what, completed=done, total=total)

        print(datasets.prepare("Reddit", root, progress=tell).check, file=sys.stderr)
        times.append(time.perf_counter())
        tell("loading", 0, None)
        graph = datasets.load("Reddit", root, verbose=False)
        times.append(time.perf_counter())
        centres = choose_centres(graph.y)
        egos = ego_graphs(graph, centres, progress=lambda d, t: tell("ego-graphs", d, t))
        times.append(time.perf_counter())
    print(egos.summary, file=sys.stderr)
    pack, load, push = np.diff(times).tolist()
    return {"pack": pack, "load": load, "push": push, "centres": len(egos)}


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)


TASKS = {"collab": _collab, "collab-pyg": _collab_pyg, "reddit": _reddit}


def bench_root() -> Path:
    """The root of the benchmark files, or an error that says where they should be."""
    root = data_root()
    if root is None:
        raise FileNotFoundError("no benchmark files: set $ARTLAS_DATA to a root that holds them")
    return root


if __name__ == "__main__":
    measured = TASKS[sys.argv[1]](Path(sys.argv[2]))
    peak = memory_bytes("VmHWM") / 1e9  # ru_maxrss would include the parent's
    print(json.dumps({**measured, "gb": peak, "artlas": artlas.__version__}))
