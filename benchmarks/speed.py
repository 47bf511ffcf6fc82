"""Inference and training of the reference, the native kernels and the twin, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.data import Batch
from benchmarks.report import Figure
from benchmarks.subject import Energies, Subject, agreement, build, executed_steps, shape_of
from benchmarks.timing import Call, Rounds, Seconds, Spread, interleave, ratio
from benchmarks.work import GEMM_MULTIPLY_ADDS, executed_multiply_adds, gemm_call

TWIN_BAR = 2.0
GEMM_BAR = 3.0


@dataclass(frozen=True)
class Bars:
    """What the native kernels must reach on one data set."""

    inference: float
    training: float


@dataclass(frozen=True)
class Case:
    """One batch with one kind of weights, and how to time it."""

    subject: Subject
    label: str
    facts: dict[str, Any]
    bars: Bars | None
    rounds: Rounds
    tuned: bool


def measure(batch: Batch, sharp: bool, bars: Bars | None, rounds: Rounds) -> Iterator[Figure]:
    """All speed figures of one batch; with bars also over the reference's tuned form."""
    subject = build(batch, sharp)
    gaps = {kernels: agreement(subject, kernels) for kernels in ("native", "twin")}
    label = f"{batch.name}, {'sharp' if sharp else 'fresh'} weights"
    facts = _facts(batch, subject, gaps)
    case = Case(subject, label, facts, bars, rounds, tuned=bars is not None)
    yield from _inference(case)
    yield from _training(case)


def _inference(case: Case) -> Iterator[Figure]:
    """Inference ratios, and the native time over the GEMM time of the same arithmetic."""
    calls: dict[str, Call] = {
        name: partial(case.subject.infer, energies) for name, energies in _contenders(case)
    }
    times = interleave({**calls, "gemm": gemm_call()}, case.rounds)
    yield _headline("inference", case, times, case.bars.inference if case.bars else None)
    yield from _others("inference", case, times, twin_bar=None)
    yield _against_gemm(case, times)


def _training(case: Case) -> Iterator[Figure]:
    """Ratios of one training step, forward and backward."""
    calls: dict[str, Call] = {}
    for name, energies in _contenders(case):
        kernels = name if name in ("native", "twin") else None
        calls[name] = partial(case.subject.train, energies, kernels)
    times = interleave(calls, case.rounds)
    yield _headline("training step", case, times, case.bars.training if case.bars else None)
    yield from _others("training step", case, times, twin_bar=TWIN_BAR if case.bars else None)


def _headline(kind: str, case: Case, times: Seconds, bar: float | None) -> Figure:
    """The reference's time over ours, with the timings of every contender."""
    name = f"{kind}, reference / native: {case.label}"
    medians = {n: Spread.of(times[n]).median for n in ("reference", "native")}
    note = ", ".join(f"{n} {1e3 * t:,.1f} ms" for n, t in medians.items())
    note = f"{note}; {case.facts['origin']}"
    raw = {**case.facts, "seconds": times}
    return Figure.of(name, ratio(times, "reference", "native"), bar=bar, note=note, raw=raw)


def _contenders(case: Case) -> list[tuple[str, Energies]]:
    """Everything that computes the energies, by name."""
    subject = case.subject
    contenders: list[tuple[str, Energies]] = [
        ("reference", subject.reference_energies),
        ("native", partial(subject.our_energies, "native")),
        ("twin", partial(subject.our_energies, "twin")),
    ]
    if case.tuned:
        contenders.append(("contiguous", partial(subject.reference_energies, contiguous=True)))
    return contenders


def _others(kind: str, case: Case, times: Seconds, twin_bar: float | None) -> Iterator[Figure]:
    """The twin's ratio, and the native ratio over the tuned reference if it was timed."""
    name = f"{kind}, reference / twin: {case.label}"
    yield Figure.of(name, ratio(times, "reference", "twin"), bar=twin_bar)
    if "contiguous" in times:
        name = f"{kind}, reference on contiguous logits / native: {case.label}"
        yield Figure.of(name, ratio(times, "contiguous", "native"))


def _against_gemm(case: Case, times: Seconds) -> Figure:
    """Native inference time over the time of its multiply-adds at the GEMM rate."""
    subject, steps = case.subject, executed_steps(case.subject)
    work = executed_multiply_adds(subject.graphs, shape_of(subject.model), steps)
    pairs = zip(times["native"], times["gemm"], strict=True)
    values = [native / (gemm * work / GEMM_MULTIPLY_ADDS) for native, gemm in pairs]
    rate = GEMM_MULTIPLY_ADDS / Spread.of(times["gemm"]).median
    note = (
        f"{work / 1e6:,.0f} M multiply-adds with {steps:.1f} Sinkhorn iterations executed; "
        f"GEMM {rate / 1e9:,.0f} G/s"
    )
    raw = {"multiply_adds": work, "steps": steps, "gemm_multiply_adds_per_second": rate}
    name = f"inference, native / GEMM time of its multiply-adds: {case.label}"
    bar = GEMM_BAR if case.bars else None
    return Figure.of(name, Spread.of(values), bar=bar, at_most=True, note=note, raw=raw)


def _facts(batch: Batch, subject: Subject, gaps: dict[str, float]) -> dict[str, Any]:
    """What the timings of a batch belong to."""
    return {
        "origin": batch.origin,
        "graphs": len(batch.graphs),
        "nodes": int(subject.graphs.node_ptr[-1]),
        "entries": int(subject.graphs.col.numel()),
        "widest": subject.padded.widest,
        "query_scale": subject.query_scale,
        "largest_energy_gap": gaps,
    }
