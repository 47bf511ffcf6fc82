"""Measure one giant graph from file to vector, each size in a fresh process.

The graphs are random, of n nodes, 4 n undirected edges and 16 features for n = 10^4 ... 10^7.
Random edges are the worst case for a processor's caches.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.fresh_process import run_module
from benchmarks.report import Measurement

SMALLEST, LARGEST = 4, 7  # powers of ten
DEGREE, FEATURES = 8, 16
SLOPE_BAR, MEMORY_BAR = 1.05, 20.0
ROUNDS, BUDGET = 9, 10.0  # rounds of the smaller sizes, and seconds of all rounds of a size


def write_graph(path: Path, nodes: int) -> None:
    """Write the graph with this number of nodes, the same every time."""
    rng = np.random.default_rng(nodes)
    edges = rng.integers(0, nodes, (2, nodes * DEGREE // 2), dtype=np.int32)
    x = rng.standard_normal((nodes, FEATURES), dtype=np.float32)
    np.savez(path, edge_index=edges, num_nodes=nodes, x=x)


def worker(path: Path, representation: str, rounds: int) -> dict[str, float]:
    """Measure the best seconds of each stage over rounds, and the peak memory of this process."""
    import warnings

    import artlas

    warnings.simplefilter("ignore", artlas.GraphCleaningWarning)
    model = artlas.load("graph")
    best = {"read": float("inf"), "embed": float("inf")}
    began = time.perf_counter()
    for _ in range(rounds):
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


def measure(largest: int, representation: str) -> list[Measurement]:
    """Measure the slope over all sizes, and the seconds and peak memory of the largest."""
    results: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="artlas-giant-") as folder:
        for power in range(SMALLEST, largest + 1):
            path = Path(folder) / "graph.npz"
            write_graph(path, 10**power)
            rounds = 1 if power == LARGEST else ROUNDS
            results[power] = run_module("benchmarks.giant_graph", path, representation, rounds)
    powers = list(results)
    measurements = []
    for stage in ("embed", "total"):
        times = [results[p][stage] for p in powers]
        slope = float(np.polyfit(powers, np.log10(times), 1)[0])
        note = ", ".join(f"10^{p}: {t:.3g} s" for p, t in zip(powers, times, strict=True))
        what = "in memory" if stage == "embed" else "file to vector"
        name = f"one graph of 10^4 ... 10^{largest} nodes, {representation}, {what}: log-log slope"
        measurements.append(
            Measurement.single(
                name,
                slope,
                bar=SLOPE_BAR,
                at_most=True,
                note=note,
                raw={"powers": powers, "seconds": times},
            )
        )
    peak = results[largest]["peak"] / 2**30
    seconds = results[largest]["total"]
    name = f"one graph of 10^{largest} nodes, 4 edges a node, 16 features, {representation}"
    peaks = ", ".join(f"10^{p}: {results[p]['peak'] / 2**30:.2f} GiB" for p in powers)
    measurements.append(
        Measurement.single(
            f"{name}: peak memory", peak, bar=MEMORY_BAR, at_most=True, unit=" GiB", note=peaks
        )
    )
    measurements.append(Measurement.single(f"{name}: seconds", seconds, unit=" s"))
    return measurements


if __name__ == "__main__":
    path_, representation_, rounds_ = sys.argv[1:]
    print(json.dumps(worker(Path(path_), representation_, int(rounds_))))
