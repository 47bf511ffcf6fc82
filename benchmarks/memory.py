"""Measure the peak extra memory of one pass, each in a fresh process."""

from __future__ import annotations

import json
import sys
from functools import partial

from artlas_paper.process_memory import memory_bytes, reset_peak
from benchmarks.fresh_process import run_module
from benchmarks.report import Measurement

MEMORY_BAR = 12.0
NODE_BAR = 1500.0
KINDS = ("reference", "native", "twin")


def measure_training(graphs: int, nodes: int, degree: float) -> list[Measurement]:
    """Measure the peak extra memory of a training step: the reference over ours."""
    peaks = {kind: peak("training", kind, graphs, nodes, degree) for kind in KINDS}
    sizes = ", ".join(f"{kind} {peaks[kind] / 2**20:,.0f} MiB" for kind in KINDS)
    what = f"{graphs} graphs of {nodes:,} nodes, degree {degree:g}"
    values = {kind: peaks["reference"] / peaks[kind] for kind in ("native", "twin")}
    native, twin = values["native"], values["twin"]
    raw = {"peak_extra_bytes": peaks}
    name = f"training memory, reference / native: {what}"
    return [
        Measurement.single(name, native, bar=MEMORY_BAR, note=sizes, raw=raw),
        Measurement.single(f"training memory, reference / twin: {what}", twin),
    ]


def measure_inference(nodes: int, degree: float, headline: bool) -> Measurement:
    """Measure the peak extra bytes per node of inference on one large graph."""
    extra = peak("inference", "native", 1, nodes, degree)
    name = f"inference on one graph of {nodes:,} nodes: peak extra bytes per node"
    bar, value = NODE_BAR if headline else None, extra / nodes
    raw = {"peak_extra_bytes": extra}
    return Measurement.single(name, value, bar=bar, at_most=True, unit=" B", raw=raw)


def peak(task: str, kind: str, graphs: int, nodes: int, degree: float) -> int:
    """Measure the peak extra bytes of one pass in a fresh process."""
    return int(run_module("benchmarks.memory", task, kind, graphs, nodes, degree)["extra"])


def worker(task: str, kind: str, graphs: int, nodes: int, degree: float) -> int:
    """Measure the extra bytes of one pass in this process, after a warm-up on two small graphs."""
    from benchmarks.data import random_batch
    from benchmarks.subject import Energies, Subject, build

    def run(subject: Subject) -> None:
        kernels = None if kind == "reference" else kind
        energies: Energies = subject.reference_energies
        if kernels is not None:
            energies = partial(subject.our_energies, kernels)
        if task == "training":
            subject.train(energies, kernels)
        else:
            subject.infer(energies)

    run(build(random_batch("warm-up", 2, 32, 4), sharp=False))
    subject = build(random_batch(task, graphs, nodes, degree), sharp=False)
    before = reset_peak()
    run(subject)
    return memory_bytes("VmHWM") - before


if __name__ == "__main__":
    task_, kind_, *numbers = sys.argv[1:]
    extra_ = worker(task_, kind_, int(numbers[0]), int(numbers[1]), float(numbers[2]))
    print(json.dumps({"extra": extra_}))
