"""Time a pretraining step of every baseline.

    python reproduction/benchmarks/steps.py --root DATA [--methods gcn,gat] [--steps 9]

Prints a Markdown row per method and source: seconds of CPU time per step, the median over the steps
after the first one, and the peak memory of the process so far. A step has as many graphs as in the
paper. Set OMP_NUM_THREADS=1 where other processes are busy.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from typing import Any

import torch

from artlas_paper import datasets
from artlas_paper.methods.registry import METHODS, Level, find

SOURCES: dict[Level, str] = {"graph": "PROTEINS", "node": "Cora"}


def seconds_per_step(name: str, level: Level, graphs: Any, steps: int) -> float:
    """Train an untrained method on one batch of these graphs."""
    entry = find(name)
    batch = graphs[list(range(min(entry.training[level].batch, len(graphs))))]
    step = entry.make(level, {"source": batch}).stepper({"source": batch}, entry.training[level])
    seconds = []
    for number in range(steps + 1):
        torch.manual_seed(number)
        start = time.process_time()
        step()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds[1:])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time a pretraining step of every baseline.")
    parser.add_argument("--root", required=True, help="folder of the raw datasets")
    parser.add_argument("--methods", default=",".join(METHODS), help="names, comma-separated")
    parser.add_argument("--levels", default="graph,node", help="graph, node, or both")
    parser.add_argument("--steps", type=int, default=9, help="steps after the first one")
    options = parser.parse_args()
    print("| method | source | s/step | peak MB |\n|---|---|---|---|")
    for level in options.levels.split(","):
        load = datasets.load if level == "graph" else datasets.load_egos
        graphs = load(SOURCES[level], options.root, verbose=False)
        for name in options.methods.split(","):
            seconds = seconds_per_step(name, level, graphs, options.steps)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"| {name} | {level} | {seconds:.3f} | {peak} |", flush=True)


if __name__ == "__main__":
    main()
