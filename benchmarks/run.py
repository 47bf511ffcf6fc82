"""Run the benchmarks: `python -m benchmarks.run [--quick] [--only NAME] [--out FILE]`.

Two changes make the reference faster than the published code. Its logits are made contiguous. And
malloc is told to keep large blocks: on glibc, PyTorch returns every block above 32 MiB to the
system and faults it in again, which would cost the padded reference up to half of its time on
400-node graphs. `--plain-malloc` leaves malloc at its defaults, as users have it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from benchmarks import (
    direct_alignment,
    embedding,
    giant_graph,
    import_time,
    iterative_solver,
    kept_memory,
    layers,
    loading,
    memory,
    pretraining,
    scaling,
    speed,
)
from benchmarks.data import BATCH, SEED, Batch, random_batch, real_batches
from benchmarks.report import ROOT, Measurement, Report
from benchmarks.speed import Bars
from benchmarks.timing import Rounds

KEEP_LARGE_BLOCKS = {"MALLOC_MMAP_THRESHOLD_": str(2**33), "MALLOC_TRIM_THRESHOLD_": str(2**34)}
Group = Callable[["Plan"], Iterable[Measurement]]


@dataclass(frozen=True)
class Plan:
    """How much to measure in each group."""

    quick: bool
    headline: Rounds
    fresh: Rounds | None
    batches: int
    generated: int
    largest: int
    scaling: Rounds
    solved: int
    imports: int
    seed: int = SEED


FULL = Plan(
    quick=False,
    headline=Rounds(least=3, most=15, budget=12.0),
    fresh=Rounds(least=2, most=8, budget=4.0),
    batches=3,
    generated=BATCH,
    largest=20,
    scaling=Rounds(least=3, most=6, budget=30.0),
    solved=4,
    imports=5,
)
QUICK = Plan(
    quick=True,
    headline=Rounds(least=2, most=5, budget=3.0),
    fresh=None,
    batches=1,
    generated=16,
    largest=17,
    scaling=Rounds(least=2, most=3, budget=5.0),
    solved=1,
    imports=2,
)


def nci1(plan: Plan) -> Iterable[Measurement]:
    """Time inference and training on 64 molecules."""
    return _speed(plan, lambda: real_batches("NCI1", plan.batches, plan.seed), Bars(25, 20))


def collab(plan: Plan) -> Iterable[Measurement]:
    """Time inference and training on 64 collaboration networks."""
    return _speed(plan, lambda: real_batches("COLLAB", plan.batches, plan.seed), Bars(80, 60))


def nodes400(plan: Plan) -> Iterable[Measurement]:
    """Time inference and training on graphs of 400 nodes and average degree 20."""
    return _speed(plan, lambda: [random_batch("400 nodes", plan.generated, 400, 20)], Bars(20, 15))


def training_memory(plan: Plan) -> Iterable[Measurement]:
    """Measure the peak memory of a training step."""
    return memory.measure_training(8 if plan.quick else 32, 1024, 8)


def large_graphs(plan: Plan) -> Iterable[Measurement]:
    """Measure time and memory on single graphs of up to a million nodes."""
    yield scaling.measure(plan.largest, 8, plan.scaling, headline=not plan.quick)
    yield memory.measure_inference(2**plan.largest, 8, headline=not plan.quick)


def pot(plan: Plan) -> Iterable[Measurement]:
    """Compare POT's iterative solver with direct alignment."""
    return direct_alignment.measure(plan.solved, plan.headline)


def time_import(plan: Plan) -> Iterable[Measurement]:
    """Time the import of artlas."""
    yield import_time.measure(plan.imports)


def collab_text(plan: Plan) -> Iterable[Measurement]:
    """Time reading the 360 MB of text of COLLAB."""
    return loading.measure_collab(loading.bench_root(), peer=not plan.quick)


def push(plan: Plan) -> Iterable[Measurement]:
    """Time ego-graphs by local push, and batches of them."""
    root = loading.bench_root()
    yield from loading.measure_push(root, 200 if plan.quick else 1000, plan.headline)
    yield from loading.measure_batch(root, plan.headline)
    if not plan.quick:
        yield from loading.measure_sources(root)


def reddit(plan: Plan) -> Iterable[Measurement]:
    """Measure the memory of loading a synthetic graph of Reddit's size."""
    return [] if plan.quick else loading.measure_reddit()


def giants(plan: Plan) -> Iterable[Measurement]:
    """Measure one graph of up to ten million nodes, from file to vector."""
    for representation in ("paper", "plus"):
        yield from giant_graph.measure(5 if plan.quick else giant_graph.LARGEST, representation)


def gromov_wasserstein(plan: Plan) -> Iterable[Measurement]:
    """Compare our iterative solver with POT's."""
    return iterative_solver.measure(6 if plan.quick else 25, plan.quick)


def baseline_layers(plan: Plan) -> Iterable[Measurement]:
    """Compare the layers of the baselines with PyTorch Geometric's."""
    return layers.measure(BATCH, plan.headline)


def keep_memory(plan: Plan) -> Iterable[Measurement]:
    """Time training steps of baselines with and without keeping freed memory."""
    return kept_memory.measure(8 if plan.quick else 1, 2 if plan.quick else 5)


def node_pretraining(plan: Plan) -> Iterable[Measurement]:
    """Estimate the hours of the baselines' pretraining on ego-graphs."""
    return pretraining.measure(loading.bench_root(), 1 if plan.quick else 3)


def embed(plan: Plan) -> Iterable[Measurement]:
    """Compare `artlas embed` with what a user would choose instead."""
    return embedding.measure(loading.bench_root(), plan.quick)


GROUPS: dict[str, Group] = {
    "nci1": nci1,
    "collab": collab,
    "nodes400": nodes400,
    "memory": training_memory,
    "scaling": large_graphs,
    "pot": pot,
    "import": time_import,
    "collab-text": collab_text,
    "push": push,
    "reddit": reddit,
    "giant": giants,
    "gw": gromov_wasserstein,
    "layers": baseline_layers,
    "keeping": keep_memory,
    "pretraining": node_pretraining,
    "embedding": embed,
}


def _speed(plan: Plan, batch: Callable[[], list[Batch]], bars: Bars) -> Iterable[Measurement]:
    """Measure with sharpened weights, and in a full run again with fresh ones."""
    yield from speed.measure(batch(), True, bars, plan.headline)
    if plan.fresh:
        yield from speed.measure(batch(), False, None, plan.fresh)


def _arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds on smaller inputs")
    parser.add_argument(
        "--only", action="append", choices=list(GROUPS), help="one group; may be repeated"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="seed that draws the real graphs")
    parser.add_argument(
        "--plain-malloc",
        action="store_true",
        help="leave malloc at its defaults, which makes the reference slower",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="JSON file (default: benchmarks/results/bench.json, or build/bench.json if partial)",
    )
    return parser.parse_args()


def main() -> int:
    """Measure, print, write the JSON; return 1 if a bar was missed, 130 if interrupted."""
    arguments = _arguments()
    if not arguments.plain_malloc and not set(KEEP_LARGE_BLOCKS) <= set(os.environ):
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.run", *sys.argv[1:]],
            {**os.environ, **KEEP_LARGE_BLOCKS},
        )
    plan = replace(QUICK if arguments.quick else FULL, seed=arguments.seed)
    partial = arguments.quick or arguments.only
    out = arguments.out or ROOT / ("build" if partial else "benchmarks/results") / "bench.json"
    settings = {**asdict(plan), "only": arguments.only, "plain_malloc": arguments.plain_malloc}
    report = Report(Console(), out, settings)
    report.warn_if_busy()
    interrupted = _measure(report, plan, arguments.only or list(GROUPS))
    report.save()
    report.console.print(report.table())
    report.console.print(f"{'interrupted; ' if interrupted else ''}written to {out}")
    return 130 if interrupted else int(report.missed > 0)


def _measure(report: Report, plan: Plan, names: list[str]) -> bool:
    """Measure the groups named and keep what succeeds; return whether it was interrupted."""
    begin = time.perf_counter()
    try:
        for index, name in enumerate(names, start=1):
            passed = time.perf_counter() - begin
            report.console.print(f"[{index}/{len(names)}] {name}  [dim]({passed:.0f} s so far)[/]")
            try:
                with report.console.status(f"measuring {name}"):
                    for measurement in GROUPS[name](plan):
                        report.add(measurement)
            except Exception as error:  # a group that fails must not lose the others
                report.fail(name, f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
