"""Measure how inference time on one graph grows with its number of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import torch

import artlas
from benchmarks.data import random_batch
from benchmarks.report import Measurement
from benchmarks.subject import build
from benchmarks.timing import Call, Rounds, interleave

SLOPE_BAR = 1.05
SMALLEST = 10  # powers of two


def measure(largest: int, degree: float, rounds: Rounds, headline: bool) -> Measurement:
    """Fit the slope of log2 time over log2 nodes, for 2^10 ... 2^largest nodes."""
    model = build(random_batch("scaling", 1, 2**SMALLEST, degree), sharp=True).model
    exponents = range(SMALLEST, largest + 1)
    calls = {str(e): _inference_call(model, 2**e, degree) for e in exponents}
    times = interleave(calls, rounds)
    best = [min(times[str(e)]) for e in exponents]
    round_slopes = [_slope(exponents, own) for own in zip(*times.values(), strict=True)]
    name = f"inference on one graph of 2^{SMALLEST} ... 2^{largest} nodes: log-log slope"
    note = f"{best[0] * 1e3:.2f} ms to {best[-1]:.2f} s, best of {len(round_slopes)} rounds"
    return Measurement(
        name,
        _slope(exponents, best),
        min(round_slopes),
        max(round_slopes),
        bar=SLOPE_BAR if headline else None,
        at_most=True,
        note=note,
        raw={"exponents": list(exponents), "seconds": times},
    )


def _slope(exponents: Iterable[int], times: Iterable[float]) -> float:
    """Fit the least-squares slope of log2 time over log2 nodes."""
    return float(np.polyfit(list(exponents), np.log2(list(times)), 1)[0])


def _inference_call(model: artlas.ART, nodes: int, degree: float) -> Call:
    """Prepare inference on one random graph."""
    batch = random_batch("scaling", 1, nodes, degree)
    graphs = artlas.Graphs.from_edges(batch.edge_lists())
    return partial(_infer, model, graphs)


@torch.no_grad()
def _infer(model: artlas.ART, graphs: artlas.Graphs) -> torch.Tensor:
    """Compute the energies of a batch with the native kernels."""
    with artlas.kernels.use("native"):
        return model.energies(graphs)
