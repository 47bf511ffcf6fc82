"""One giant graph, from its file to its vector, in a process of its own for every size.

A random graph of n nodes, 4 n undirected edges and 16 features for n = 10^4 ... 10^7: random edges
are the worst case for a processor's caches.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import ROOT, Figure

SMALLEST, LARGEST = 4, 7
DEGREE, FEATURES = 8, 16
SLOPE_BAR, MEMORY_BAR = 1.05, 20.0
ROUNDS, BUDGET = 9, 10.0  # of the smaller sizes, and seconds of each


def save(path: Path, nodes: int) -> None:
    """The graph of a size, the same every time."""
    rng = np.random.default_rng(nodes)
    edges = rng.integers(0, nodes, (2, nodes * DEGREE // 2), dtype=np.int32)
    x = rng.standard_normal((nodes, FEATURES), dtype=np.float32)
    np.savez(path, edge_index=edges, num_nodes=nodes, x=x)


def worker(path: Path, representation: str, most: int) -> dict[str, float]:
    """Seconds of every stage, the best of so many rounds, and the peak memory of this process."""
    import warnings

    import artlas

    warnings.simplefilter("ignore", artlas.GraphCleaningWarning)
    model = artlas.load("graph")
    best = {"read": float("inf"), "embed": float("inf")}
    began = time.perf_counter()
    for _ in range(most):
        start = time.perf_counter()
        graphs = artlas.read(path, verbose=False)
        middle = time.perf_counter()
        model.embed(graphs, representation)
        end = time.perf_counter()
        best["read"] = min(best["read"], middle - start)
        best["embed"] = min(best["embed"], end - middle)
        if end - began > BUDGET:
            break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**best, "total": best["read"] + best["embed"], "peak": peak}


def measure(largest: int, representation: str) -> list[Figure]:
    """The slope over all sizes, and seconds and peak memory of the largest."""
    found: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="artlas-giant-") as folder:
        for power in range(SMALLEST, largest + 1):
            path = Path(folder) / "graph.npz"
            save(path, 10**power)
            rounds = str(1 if power == LARGEST else ROUNDS)
            words = [sys.executable, "-m", "benchmarks.giant", str(path), representation, rounds]
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
            found[power] = json.loads(done.stdout.splitlines()[-1])
    powers = list(found)
    figures = []
    for stage in ("embed", "total"):
        times = [found[p][stage] for p in powers]
        slope = float(np.polyfit(powers, np.log10(times), 1)[0])
        note = ", ".join(f"10^{p}: {t:.3g} s" for p, t in zip(powers, times, strict=True))
        what = "in memory" if stage == "embed" else "file to vector"
        name = f"one graph of 10^4 ... 10^{largest} nodes, {representation}, {what}: log-log slope"
        figures.append(
            Figure(
                name,
                slope,
                slope,
                slope,
                bar=SLOPE_BAR,
                at_most=True,
                note=note,
                raw={"powers": powers, "seconds": times},
            )
        )
    peak = found[largest]["peak"] / 2**30
    seconds = found[largest]["total"]
    name = f"one graph of 10^{largest} nodes, 4 edges a node, 16 features, {representation}"
    peaks = ", ".join(f"10^{p}: {found[p]['peak'] / 2**30:.2f} GiB" for p in powers)
    figures.append(
        Figure(
            f"{name}: peak memory",
            peak,
            peak,
            peak,
            bar=MEMORY_BAR,
            at_most=True,
            unit=" GiB",
            note=peaks,
        )
    )
    figures.append(Figure(f"{name}: seconds", seconds, seconds, seconds, unit=" s"))
    return figures


if __name__ == "__main__":
    path_, representation_, rounds_ = sys.argv[1:]
    print(json.dumps(worker(Path(path_), representation_, int(rounds_))))
