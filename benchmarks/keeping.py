"""What it gains to keep the memory of large tensors: training steps with and without `heap.kept`.

`python -m benchmarks.keeping SHARE ROUNDS` measures batches of the paper's size divided by SHARE in
this process, whose malloc must be as glibc has it, and prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
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
from benchmarks.report import ROOT, Figure
from benchmarks.timing import Seconds, ratio

METHODS = ("gcn", "gat", "graphmae", "mdgmix")
NODES, FEATURES = 350, 256  # of ego-graphs
WARM, TIMED = 2, 4  # steps: the heap grows in the first ones of thousands


def measure(share: int, rounds: int) -> Iterable[Figure]:
    """Seconds of a step without over with, and the peaks of memory, in a fresh process."""
    words = [sys.executable, "-m", "benchmarks.keeping", str(share), str(rounds)]
    plain = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    done = subprocess.run(words, cwd=ROOT, env=plain, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[2:])} failed:\n{done.stderr[-2000:]}")
    for name, found in json.loads(done.stdout.splitlines()[-1]).items():
        peaks = {kind: max(values) / 2**20 for kind, values in found["peaks"].items()}
        note = f"{found['graphs']} graphs of {NODES} nodes; peak memory " + ", ".join(
            f"{kind} {peak:,.0f} MiB" for kind, peak in peaks.items()
        )
        title = f"{find(name).title}, training step on ego-graphs, blocks mapped anew / kept"
        spread = ratio(found["seconds"], "mapped", "kept")
        yield Figure.of(title, spread, note=note, raw=found)


def worker(share: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Both ways in turn, round by round."""
    made = {}
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
        made[name] = {"graphs": graphs, "seconds": seconds, "peaks": peaks}
    return made


if __name__ == "__main__":
    print(json.dumps(worker(*map(int, sys.argv[1:]))))
