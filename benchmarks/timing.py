"""Interleave timings: every contender runs once per round, and is compared within the round."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LONG_CALL = 1.0  # seconds; longer calls are warmed up only once
Call = Callable[[], object]
Seconds = dict[str, list[float]]


@dataclass(frozen=True)
class Rounds:
    """How often to repeat: `least` rounds, then more until `budget` seconds or `most` rounds."""

    least: int
    most: int
    budget: float
    shortest: float = 0.03


@dataclass(frozen=True)
class Spread:
    """The median and range of values, one per round."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Summarise values."""
        return cls(statistics.median(values), min(values), max(values))


def seconds(call: Call, repeats: int = 1) -> float:
    """Measure the mean wall time of a call over back-to-back repeats."""
    gc.collect()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def repeats_for(call: Call, shortest: float) -> int:
    """Warm a call up, and return how often to repeat it for a timing of `shortest` seconds."""
    once = seconds(call)
    if once < LONG_CALL:
        once = seconds(call)
    return max(1, round(shortest / max(once, 1e-7)))


def interleave(calls: Mapping[str, Call], rounds: Rounds) -> Seconds:
    """Time every call once per round, in rotating order; repeat short calls."""
    names = list(calls)
    repeats = {n: repeats_for(calls[n], rounds.shortest) for n in names}
    measured: Seconds = {n: [] for n in names}
    start = time.perf_counter()
    for index in range(rounds.most):
        if index >= rounds.least and time.perf_counter() - start > rounds.budget:
            break
        shift = index % len(names)
        for name in names[shift:] + names[:shift]:
            measured[name].append(seconds(calls[name], repeats[name]))
    return measured


def ratio(measured: Seconds, above: str, below: str) -> Spread:
    """Summarise the ratio of one contender's time to another's, round by round."""
    pairs = zip(measured[above], measured[below], strict=True)
    return Spread.of([a / b for a, b in pairs])
