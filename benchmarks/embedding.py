"""`artlas embed` end to end, file to Parquet, beside the same model in memory and what a user would
pick instead: GraKeL's Weisfeiler-Lehman kernel, POT's TFGW, an untrained GIN of PyTorch Geometric.

`python -m benchmarks.embedding [--quick]` measures this alone. Every collection has a process of
its own, with malloc as users have it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
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
from benchmarks import rivals
from benchmarks.data import SEED
from benchmarks.report import ROOT, Figure
from benchmarks.timing import Call, Rounds, Seconds, Spread, interleave, seconds

STEADY_BAR, TFGW_BAR, GIN_BAR = 0.6, 100.0, 1.0
REPRESENTATIONS = ("paper", "plus")
MOLECULES = 50_000
FULL, QUICK = Rounds(least=2, most=7, budget=12.0), Rounds(least=1, most=2, budget=4.0)


@dataclass(frozen=True)
class Sizes:
    """How many graphs the slow ones get: GraKeL, TFGW, and the text that PyG reads."""

    wl: int
    tfgw: int
    text: int


SIZES = {
    "NCI1": Sizes(1000, 16, 4110),
    "COLLAB": Sizes(200, 4, 500),
    "molecules": Sizes(1000, 16, 5000),
}


@dataclass(frozen=True)
class Measured:
    """Seconds of every round, graphs of every call, and where the graphs are from."""

    seconds: Seconds
    graphs: dict[str, int]
    origin: str

    def rate(self, name: str) -> Spread:
        """Graphs a second."""
        return Spread.of([self.graphs[name] / value for value in self.seconds[name]])

    def faster(self, name: str, other: str) -> Spread:
        """One rate over another, round by round."""
        scale = self.graphs[name] / self.graphs[other]
        rounds = zip(self.seconds[name], self.seconds[other], strict=False)
        return Spread.of([scale * b / a for a, b in rounds])


def measure(root: Path, quick: bool) -> Iterator[Figure]:
    """Rates of every collection, and their ratios."""
    for name in SIZES:
        yield from _figures(name, _alone(name, root, quick))


def _figures(name: str, found: Measured) -> Iterator[Figure]:
    def rate(call: str, what: str, **rest: Any) -> Figure:
        return Figure.of(f"{name}: {what}", found.rate(call), unit=" graphs/s", **rest)

    def ratio(call: str, other: str, what: str, **rest: Any) -> Figure:
        return Figure.of(f"{name}: {what}", found.faster(call, other), **rest)

    yield rate("align", "align, in memory", note=found.origin, raw=dataclasses.asdict(found))
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
        theirs, count = found.rate(other).median, found.graphs[other]
        note = f"{what} in memory, on {count:,} graphs: {theirs:,.1f} graphs/s"
        title = f"plus: artlas embed, text to Parquet / {what} in memory"
        yield ratio("run plus", other, title, bar=bar, note=note)
    yield rate("gin", "untrained GIN, in memory")
    theirs, count = found.rate("gin text").median, found.graphs["gin text"]
    note = f"GIN from the text of {count:,} graphs: {theirs:,.0f} graphs/s"
    for kind in REPRESENTATIONS:
        title = f"{kind}: embed / untrained GIN, both in memory"
        yield ratio(f"embed {kind}", "gin", title, bar=GIN_BAR)
        title = f"{kind}: artlas embed, text to Parquet / untrained GIN, text to vectors"
        yield ratio(f"text {kind}", "gin text", title, bar=GIN_BAR, note=note)


def _alone(name: str, root: Path, quick: bool) -> Measured:
    """What is measured of a collection in a fresh process."""
    words = [sys.executable, "-m", "benchmarks.embedding", "--worker", name, "--root", str(root)]
    plain = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    done = subprocess.run(
        words + ["--quick"] * quick, cwd=ROOT, env=plain, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[2:])} failed:\n{done.stderr[-2000:]}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def _worker(name: str, root: Path, quick: bool) -> Measured:
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
        rivals.write_tu(sample, "sample", chosen["text"])
        with torch.no_grad():
            relations = model.atlas.relations()
        warm: dict[str, Call] = {"align": partial(model.align, graphs)}
        cold: dict[str, Call] = {}
        for kind in REPRESENTATIONS:
            warm[f"embed {kind}"] = partial(model.embed, graphs, kind)
            warm[f"run {kind}"] = partial(_run, text, folder, model, kind)
            cold[f"process {kind}"] = partial(_process, text, folder, kind)
            cold[f"text {kind}"] = partial(_run, sample, folder, model, kind)
        warm["gin"] = rivals.gin(graphs)
        warm["wl"] = rivals.weisfeiler_lehman(chosen["wl"])
        warm["tfgw"] = rivals.tfgw(chosen["tfgw"], relations)
        cold["gin text"] = rivals.gin_from_text(
            folder / "PyG", "sample", max(1, graphs.num_features)
        )
        rounds = QUICK if quick else FULL
        measured = {**interleave(warm, rounds), **_once_a_round(cold, rounds)}
    counts = {key: len(graphs) for key in measured}
    counts |= {key: len(chosen[key]) for key in ("wl", "tfgw")}
    counts |= {key: len(chosen["text"]) for key in measured if "text" in key}
    return Measured(measured, counts, origin)


def _collection(name: str, root: Path, folder: Path) -> tuple[Path, str]:
    """The text of a collection in TU layout, and where its graphs are from."""
    if name != "molecules":
        return root / "TUDataset" / name / "raw", f"all of {name}"
    graphs = datasets.load("ogbg-molhiv", root, "raw", verbose=False)
    more = MOLECULES - len(graphs)
    text = folder / "molecules"
    rivals.write_tu(text, "molecules", Graphs.concat([graphs, graphs[:more]]))
    return text, f"ogbg-molhiv's {len(graphs):,} molecules, and the first {more:,} of them again"


def _run(text: Path, folder: Path, model: artlas.ART, kind: str) -> object:
    """What `artlas embed` does, in this process."""
    run = Run(folder / "z.parquet", [Input(text, text.name)], model, kind)
    return run.embed(lambda at: None)


def _process(text: Path, folder: Path, kind: str) -> object:
    """`artlas embed` as it is called from a shell."""
    words = [sys.executable, "-c", "from artlas.cli import main; main()", "embed", str(text)]
    words += ["--out", str(folder / "z.parquet"), "--representation", kind]
    return subprocess.run(words, check=True, capture_output=True)


def _once_a_round(calls: Mapping[str, Call], rounds: Rounds) -> Seconds:
    """Rounds without a warm-up, for calls that start from nothing each time."""
    measured: Seconds = {name: [] for name in calls}
    start = time.perf_counter()
    for index in range(rounds.most):
        if index >= 1 and time.perf_counter() - start > rounds.budget:
            break
        for name, call in calls.items():
            measured[name].append(seconds(call))
    return measured


def main() -> int:
    """One worker's measurements as JSON, or all of them as a table by `benchmarks.run`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedding", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--worker", choices=list(SIZES), help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is None:
        words = [sys.executable, "-m", "benchmarks.run", "--only", "embedding"]
        return subprocess.run(words + ["--quick"] * given.quick, cwd=ROOT).returncode
    print(json.dumps(dataclasses.asdict(_worker(given.worker, given.root, given.quick))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
