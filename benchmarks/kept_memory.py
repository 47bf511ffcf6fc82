"""Time training steps of baselines with and without `artlas.training.glibc_malloc.kept`.

`python -m benchmarks.kept_memory SHARE ROUNDS` measures batches of the paper's size divided by
SHARE in this process, whose malloc must have glibc's defaults, and prints JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from artlas.training import glibc_malloc
from artlas_paper.methods.registry import find
from artlas_paper.process_memory import memory_bytes, reset_peak
from artlas_paper.studies.efficiency_worker import sparse_graphs
from benchmarks.fresh_process import run_module
from benchmarks.report import Measurement
from benchmarks.timing import Seconds, ratio

METHODS = ("gcn", "gat", "graphmae", "mdgmix")
NODES, FEATURES = 350, 256  # those of ego-graphs
WARM, TIMED = 2, 4  # steps; the heap grows in the first few


def measure(share: int, rounds: int) -> Iterable[Measurement]:
    """Measure the time of a step without over with kept memory, in a fresh process."""
    results = run_module("benchmarks.kept_memory", share, rounds, default_malloc=True)
    for name, result in results.items():
        peaks = {kind: max(values) / 2**20 for kind, values in result["peaks"].items()}
        note = f"{result['graphs']} graphs of {NODES} nodes; peak memory " + ", ".join(
            f"{kind} {peak:,.0f} MiB" for kind, peak in peaks.items()
        )
        title = f"{find(name).title}, training step on ego-graphs, blocks mapped anew / kept"
        spread = ratio(result["seconds"], "mapped", "kept")
        yield Measurement.of(title, spread, note=note, raw=result)


def worker(share: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Measure steps with and without kept memory in turn, round by round."""
    results = {}
    for name in METHODS:
        entry = find(name)
        training = entry.training["node"]
        graphs = training.batch // share
        sample = sparse_graphs(np.random.default_rng(0), [NODES] * graphs, FEATURES)
        sample = sample.with_labels(torch.arange(graphs) % 2)
        step = entry.make("node", {"graphs": sample}).stepper(sample, training)
        seconds: Seconds = {"mapped": [], "kept": []}
        peaks: Seconds = {"mapped": [], "kept": []}
        for _ in range(rounds):
            for kind, keeping in (
                ("mapped", nullcontext()),
                ("kept", glibc_malloc.reuse_large_blocks()),
            ):
                before = reset_peak()
                with keeping:
                    for _ in range(WARM):
                        step()
                    began = time.perf_counter()
                    for _ in range(TIMED):
                        step()
                    seconds[kind].append((time.perf_counter() - began) / TIMED)
                peaks[kind].append(memory_bytes("VmHWM") - before)
        results[name] = {"graphs": graphs, "seconds": seconds, "peaks": peaks}
    return results


if __name__ == "__main__":
    print(json.dumps(worker(*map(int, sys.argv[1:]))))
