"""Time inference and training of the reference, the native kernels and the twin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.arithmetic import GEMM_MULTIPLY_ADDS, gemm_call, multiply_adds
from benchmarks.data import Batch
from benchmarks.report import Measurement
from benchmarks.subject import Energies, Subject, agreement, build, executed_steps, shape_of
from benchmarks.timing import Call, Rounds, Seconds, Spread, interleave, ratio

TWIN_BAR = 2.0
GEMM_BAR = 3.0


@dataclass(frozen=True)
class Bars:
    """The speedups that the native kernels must reach on one data set."""

    inference: float
    training: float


@dataclass(frozen=True)
class Case:
    """Batches with one kind of weights that are timed together, and how to time them."""

    subjects: list[Subject]
    label: str
    facts: dict[str, Any]
    bars: Bars | None
    rounds: Rounds


def measure(
    batches: list[Batch], sharp: bool, bars: Bars | None, rounds: Rounds
) -> Iterator[Measurement]:
    """Measure the speed on batches of one data set."""
    subjects = [build(batch, sharp) for batch in batches]
    label = f"{batches[0].name}, {'sharp' if sharp else 'fresh'} weights"
    case = Case(subjects, label, _describe_case(batches, subjects), bars, rounds)
    yield from _inference(case)
    yield from _training(case)
    yield _preparation(case)


CONTENDERS: dict[str, Callable[[Subject], Energies]] = {
    "reference": lambda subject: subject.reference_energies,
    "native": lambda subject: partial(subject.our_energies, "native"),
    "twin": lambda subject: partial(subject.our_energies, "twin"),
}


def _inference(case: Case) -> Iterator[Measurement]:
    """Measure inference ratios, and native time over GEMM time of the same arithmetic."""
    calls: dict[str, Call] = {
        name: partial(_each, [partial(s.infer, energies(s)) for s in case.subjects])
        for name, energies in CONTENDERS.items()
    }
    times = interleave({**calls, "gemm": gemm_call()}, case.rounds)
    yield _headline("inference", case, times, case.bars.inference if case.bars else None)
    yield _twin("inference", case, times, None)
    yield from _against_gemm(case, times)


def _training(case: Case) -> Iterator[Measurement]:
    """Measure the ratios of one training step, forward and backward."""
    calls: dict[str, Call] = {}
    for name, energies in CONTENDERS.items():
        kernels = name if name in ("native", "twin") else None
        steps = [partial(s.train, energies(s), kernels) for s in case.subjects]
        calls[name] = partial(_each, steps)
    times = interleave(calls, case.rounds)
    yield _headline("training step", case, times, case.bars.training if case.bars else None)
    yield _twin("training step", case, times, TWIN_BAR if case.bars else None)


def _preparation(case: Case) -> Measurement:
    """Time what both prepare once from the graphs alone, outside the other timings."""
    makers = {"reference": Subject.prepare_reference, "native": Subject.prepare_native}
    calls: dict[str, Call] = {
        name: partial(_each, [partial(make, s) for s in case.subjects])
        for name, make in makers.items()
    }
    times = interleave(calls, case.rounds)
    medians = {n: Spread.of(times[n]).median / len(case.subjects) for n in times}
    note = ", ".join(f"{n} {1e3 * t:,.2f} ms a batch" for n, t in medians.items())
    name = f"made once for a batch (padding or joining), reference / native: {case.label}"
    return Measurement.of(
        name, ratio(times, "reference", "native"), note=note, raw={"seconds": times}
    )


def _each(calls: Sequence[Call]) -> None:
    """Run every call."""
    for call in calls:
        call()


def _headline(kind: str, case: Case, times: Seconds, bar: float | None) -> Measurement:
    """Make the measurement of the reference's time over ours, with all timings."""
    name = f"{kind}, reference / native: {case.label}"
    count = len(case.subjects)
    medians = {n: Spread.of(times[n]).median / count for n in ("reference", "native")}
    note = ", ".join(f"{n} {1e3 * t:,.1f} ms a batch" for n, t in medians.items())
    note = f"{note}; {case.facts['origin']}"
    raw = {**case.facts, "seconds": times}
    return Measurement.of(name, ratio(times, "reference", "native"), bar=bar, note=note, raw=raw)


def _twin(kind: str, case: Case, times: Seconds, bar: float | None) -> Measurement:
    """Make the measurement of the reference's time over the twin's."""
    name = f"{kind}, reference / twin: {case.label}"
    return Measurement.of(name, ratio(times, "reference", "twin"), bar=bar)


def _against_gemm(case: Case, times: Seconds) -> Iterator[Measurement]:
    """Compare native inference time with the time of its multiply-adds at the GEMM rate.

    Multiply-adds are counted on the graphs, as the method states them, and as executed, after
    equivalent nodes are merged; both with the Sinkhorn iterations actually run.
    """
    rate = GEMM_MULTIPLY_ADDS / Spread.of(times["gemm"]).median
    for words, joined in {"the method's": False, "the executed": True}.items():
        work, steps = 0, 0.0
        for subject in case.subjects:
            executed = executed_steps(subject)
            stages = multiply_adds(*subject.size(joined), shape_of(subject.model), executed)
            work += sum(stages.values())
            steps += executed / len(case.subjects)
        pairs = zip(times["native"], times["gemm"], strict=True)
        values = [native / (gemm * work / GEMM_MULTIPLY_ADDS) for native, gemm in pairs]
        note = (
            f"{work / 1e6:,.0f} M multiply-adds, {steps:.1f} Sinkhorn iterations; "
            f"GEMM {rate / 1e9:,.0f} G/s"
        )
        raw = {"multiply_adds": work, "steps": steps, "gemm_multiply_adds_per_second": rate}
        name = f"inference, native / GEMM time of {words} multiply-adds: {case.label}"
        bar = GEMM_BAR if case.bars and not joined else None
        yield Measurement.of(name, Spread.of(values), bar=bar, at_most=True, note=note, raw=raw)


def _describe_case(batches: list[Batch], subjects: list[Subject]) -> dict[str, Any]:
    """Describe what is timed; raise if the contenders disagree."""
    gaps = {k: max(agreement(s, k) for s in subjects) for k in ("native", "twin")}
    plain, joined = ([s.size(j) for s in subjects] for j in (False, True))
    return {
        "origin": f"{len(batches)} x {batches[0].origin}",
        "graphs": [len(s.graphs) for s in subjects],
        "nodes": [nodes for nodes, _ in plain],
        "entries": [entries for _, entries in plain],
        "joined_nodes": [nodes for nodes, _ in joined],
        "joined_entries": [entries for _, entries in joined],
        "widest": [s.padded.widest for s in subjects],
        "query_scale": [s.query_scale for s in subjects],
        "largest_energy_gap": gaps,
    }
