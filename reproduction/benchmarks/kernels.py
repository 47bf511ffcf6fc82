"""Time a pretraining step of every baseline with and without the compiled baseline kernels.

    python reproduction/benchmarks/kernels.py --root DATA [--methods gcn,gat] [--steps 5]

Prints one Markdown row per method and level: seconds per step and peak memory with the compiled
kernels, in PyTorch, and their ratio. Steps of the two alternate, each with a batch of the size that
the paper trains with; the library's own kernels are compiled in both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from artlas.kernels import native_for
from artlas.training import glibc_malloc
from artlas_paper import datasets, kernels
from artlas_paper.kernels import graphacl_loss
from artlas_paper.methods.registry import METHODS, Level, find

SOURCES: dict[Level, str] = {"graph": "PROTEINS", "node": "Cora"}


@contextmanager
def baseline_kernels(compiled: bool) -> Iterator[None]:
    """Use the compiled baseline kernels, or PyTorch in their place."""
    chosen = native_for if compiled else (lambda tensor: None)
    kernels.native_for = graphacl_loss.native_for = chosen  # type: ignore[attr-defined]
    try:
        yield
    finally:
        kernels.native_for = graphacl_loss.native_for = native_for  # type: ignore[attr-defined]


def measure(name: str, level: Level, graphs, steps: int) -> str:
    """Time one method on one source."""
    entry = find(name)
    batch = graphs[list(range(min(entry.training[level].batch, len(graphs))))]
    sides = {}
    for compiled in (True, False):
        model = entry.make(level, {"source": batch})
        sides[compiled] = model.stepper({"source": batch}, entry.training[level])
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for step in range(steps + 1):
        for compiled in (True, False) if step % 2 else (False, True):
            with baseline_kernels(compiled):
                torch.manual_seed(step)
                start = time.perf_counter()
                sides[compiled]()
                if step:  # the first one warms up
                    seconds[compiled].append(time.perf_counter() - start)
    ours, torchs = statistics.median(seconds[True]), statistics.median(seconds[False])
    ratio = statistics.median(b / a for a, b in zip(seconds[True], seconds[False], strict=True))
    return f"| {name} | {level} | {ours:.3f} | {torchs:.3f} | {ratio:.2f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", required=True, help="folder of the raw datasets")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--levels", default="graph,node")
    parser.add_argument("--steps", type=int, default=5)
    given = parser.parse_args()
    print("| method | source | compiled, s/step | PyTorch, s/step | ratio |\n|---|---|---|---|---|")
    for level in given.levels.split(","):
        source = SOURCES[level]
        if level == "graph":
            graphs = datasets.load(source, given.root, verbose=False)
        else:
            graphs = datasets.load_egos(source, given.root, verbose=False)
        with glibc_malloc.kept():
            for name in given.methods.split(","):
                print(measure(name, level, graphs, given.steps), flush=True)


if __name__ == "__main__":
    main()
