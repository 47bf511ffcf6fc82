"""Measure `artlas embed` end to end, beside the same model in memory and the alternatives.

The alternatives are GraKeL's Weisfeiler-Lehman kernel, POT's TFGW and an untrained GIN of PyTorch
Geometric. `python -m benchmarks.embedding [--quick]` runs only this benchmark. Every collection is
measured in a fresh process, with malloc at its defaults.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import artlas
from artlas import Graphs
from artlas.embedding.pieces import Input
from artlas.embedding.run import Run
from artlas_paper import datasets
from benchmarks import alternatives
from benchmarks.data import SEED
from benchmarks.fresh_process import run_module
from benchmarks.report import ROOT, Measurement
from benchmarks.timing import Call, Rounds, Seconds, Spread, interleave, seconds

STEADY_BAR, TFGW_BAR, GIN_BAR = 0.6, 100.0, 1.0
REPRESENTATIONS = ("paper", "plus")
MOLECULES = 50_000
FULL, QUICK = Rounds(least=2, most=7, budget=12.0), Rounds(least=1, most=2, budget=4.0)


@dataclass(frozen=True)
class Sizes:
    """Numbers of graphs for the slow alternatives: GraKeL, TFGW, and the text that PyG reads."""

    wl: int
    tfgw: int
    text: int


SIZES = {
    "NCI1": Sizes(1000, 16, 4110),
    "COLLAB": Sizes(200, 4, 500),
    "molecules": Sizes(1000, 16, 5000),
}


@dataclass(frozen=True)
class Timings:
    """Seconds of every round, graphs of every call, and the origin of the graphs."""

    seconds: Seconds
    graphs: dict[str, int]
    origin: str

    def rate(self, name: str) -> Spread:
        """Compute graphs per second."""
        return Spread.of([self.graphs[name] / value for value in self.seconds[name]])

    def faster(self, name: str, other: str) -> Spread:
        """Compute one rate over another, round by round."""
        scale = self.graphs[name] / self.graphs[other]
        rounds = zip(self.seconds[name], self.seconds[other], strict=False)
        return Spread.of([scale * b / a for a, b in rounds])


def measure(root: Path, quick: bool) -> Iterator[Measurement]:
    """Measure the rates of every collection, and their ratios."""
    for name in SIZES:
        arguments = ["--worker", name, "--root", root, *["--quick"] * quick]
        result = run_module("benchmarks.embedding", *arguments, default_malloc=True)
        yield from _measurements(name, Timings(**result))


def _measurements(name: str, timings: Timings) -> Iterator[Measurement]:
    def rate(call: str, what: str, **rest: Any) -> Measurement:
        return Measurement.of(f"{name}: {what}", timings.rate(call), unit=" graphs/s", **rest)

    def ratio(call: str, other: str, what: str, **rest: Any) -> Measurement:
        return Measurement.of(f"{name}: {what}", timings.faster(call, other), **rest)

    yield rate("align", "align, in memory", note=timings.origin, raw=dataclasses.asdict(timings))
    for kind in REPRESENTATIONS:
        yield rate(f"embed {kind}", f"{kind}: embed, in memory")
        yield rate(f"run {kind}", f"{kind}: artlas embed, text to Parquet")
        yield rate(f"process {kind}", f"{kind}: the same with the start of its process")
        run, whole, memory = f"run {kind}", f"process {kind}", f"embed {kind}"
        title = f"{kind}: artlas embed, text to Parquet"
        yield ratio(run, memory, f"{title} / embed in memory", bar=STEADY_BAR)
        yield ratio(run, "align", f"{title} / align in memory")
        yield ratio(whole, memory, f"{title}, with the start of its process / embed in memory")
    for other, what, bar in (("tfgw", "POT's TFGW", TFGW_BAR), ("wl", "GraKeL's WL kernel", None)):
        theirs, count = timings.rate(other).median, timings.graphs[other]
        note = f"{what} in memory, on {count:,} graphs: {theirs:,.1f} graphs/s"
        title = f"plus: artlas embed, text to Parquet / {what} in memory"
        yield ratio("run plus", other, title, bar=bar, note=note)
    yield rate("gin", "untrained GIN, in memory")
    theirs, count = timings.rate("gin text").median, timings.graphs["gin text"]
    note = f"GIN from the text of {count:,} graphs: {theirs:,.0f} graphs/s"
    for kind in REPRESENTATIONS:
        title = f"{kind}: embed / untrained GIN, both in memory"
        yield ratio(f"embed {kind}", "gin", title, bar=GIN_BAR)
        title = f"{kind}: artlas embed, text to Parquet / untrained GIN, text to vectors"
        yield ratio(f"text {kind}", "gin text", title, bar=GIN_BAR, note=note)


def _worker(name: str, root: Path, quick: bool) -> Timings:
    warnings.simplefilter("ignore", artlas.GraphCleaningWarning)
    with tempfile.TemporaryDirectory(prefix="artlas-bench-") as place:
        folder = Path(place)
        text, origin = _collection(name, root, folder)
        graphs, model = artlas.read(text, verbose=False), artlas.load("graph")
        rng, sizes = np.random.default_rng(SEED), SIZES[name]
        chosen = {
            key: graphs[np.sort(rng.choice(len(graphs), min(count, len(graphs)), replace=False))]
            for key, count in dataclasses.asdict(sizes).items()
        }
        sample = folder / "PyG" / "sample" / "raw"
        alternatives.write_tu(sample, "sample", chosen["text"])
        with torch.no_grad():
            relations = model.atlas.relations()
        warm: dict[str, Call] = {"align": partial(model.align, graphs)}
        cold: dict[str, Call] = {}
        for kind in REPRESENTATIONS:
            warm[f"embed {kind}"] = partial(model.embed, graphs, kind)
            warm[f"run {kind}"] = partial(_run, text, folder, model, kind)
            cold[f"process {kind}"] = partial(_process, text, folder, kind)
            cold[f"text {kind}"] = partial(_run, sample, folder, model, kind)
        warm["gin"] = alternatives.gin(graphs)
        warm["wl"] = alternatives.weisfeiler_lehman(chosen["wl"])
        warm["tfgw"] = alternatives.tfgw(chosen["tfgw"], relations)
        cold["gin text"] = alternatives.gin_from_text(
            folder / "PyG", "sample", max(1, graphs.num_features)
        )
        rounds = QUICK if quick else FULL
        seconds_by_call = {**interleave(warm, rounds), **_time_cold(cold, rounds)}
    counts = {key: len(graphs) for key in seconds_by_call}
    counts |= {key: len(chosen[key]) for key in ("wl", "tfgw")}
    counts |= {key: len(chosen["text"]) for key in seconds_by_call if "text" in key}
    return Timings(seconds_by_call, counts, origin)


def _collection(name: str, root: Path, folder: Path) -> tuple[Path, str]:
    """Return the text of a collection in TU layout, and the origin of its graphs."""
    if name != "molecules":
        return root / "TUDataset" / name / "raw", f"all of {name}"
    graphs = datasets.load("ogbg-molhiv", root, "raw", verbose=False)
    more = MOLECULES - len(graphs)
    text = folder / "molecules"
    alternatives.write_tu(text, "molecules", Graphs.concat([graphs, graphs[:more]]))
    return text, f"ogbg-molhiv's {len(graphs):,} molecules, and the first {more:,} of them again"


def _run(text: Path, folder: Path, model: artlas.ART, kind: str) -> object:
    """Do what `artlas embed` does, in this process."""
    run = Run(folder / "z.parquet", [Input(text, text.name)], model, kind)
    return run.embed(lambda at: None)


def _process(text: Path, folder: Path, kind: str) -> object:
    """Run `artlas embed` as from a shell."""
    words = [sys.executable, "-c", "from artlas.cli import main; main()", "embed", str(text)]
    words += ["--out", str(folder / "z.parquet"), "--representation", kind]
    return subprocess.run(words, check=True, capture_output=True)


def _time_cold(calls: Mapping[str, Call], rounds: Rounds) -> Seconds:
    """Time calls that start from nothing each time, without a warm-up."""
    times: Seconds = {name: [] for name in calls}
    start = time.perf_counter()
    for index in range(rounds.most):
        if index >= 1 and time.perf_counter() - start > rounds.budget:
            break
        for name, call in calls.items():
            times[name].append(seconds(call))
    return times


def main() -> int:
    """Print one worker's timings as JSON, or run this benchmark by `benchmarks.run`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedding", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--worker", choices=list(SIZES), help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is None:
        words = [sys.executable, "-m", "benchmarks.run", "--only", "embedding"]
        return subprocess.run(words + ["--quick"] * arguments.quick, cwd=ROOT).returncode
    print(
        json.dumps(dataclasses.asdict(_worker(arguments.worker, arguments.root, arguments.quick)))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
