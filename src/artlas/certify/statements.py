"""The statements of the theory, judged from a certificate's intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artlas.certify.certificate import TOLERANCE, Array, Certificate, Interval, Statement

STATEMENTS = (
    ("couplings are feasible", "marginal residual = 0"),
    ("energies are those of the couplings", "e = E(A, B; T)"),
    ("the bounds agree, energies", "lower bound <= solver"),
    ("the bounds agree, pairs", "lower bound <= solver"),
    ("no coupling beats the least energy", "e* <= e"),
    ("coverage from below", "m* <= l"),
    ("coverage from above", "l <= m* + Delta + tau log K"),
    ("coverage is consistent", "l <= radius^2 + Delta + tau log K"),
    ("fidelity from below", "d - 2 radius - eta - eta' <= |q - q'|"),
    ("fidelity from above", "|q - q'| <= d + eta + eta'"),
)


def judge_statements(
    certificate: Certificate, recomputed: Array, relaxation: float
) -> tuple[Statement, ...]:
    r"""Judge every statement for every graph or pair.

    recomputed [G, K]: energies of the model's couplings in double precision; relaxation:
    :math:`\tau_m \log K`.
    """
    c = certificate
    zero, energies, coverage = _exactly(0.0), _exactly(c.energies), _exactly(c.coverage)
    difference = _exactly(np.abs(c.energies - recomputed).max(1))
    between, d, radius = _exactly(c.coordinate_distances), c.distances, c.covering_radius
    i, j = c.pairs.T
    errors = Interval(*(end[i] + end[j] for end in c.amortisation_error))
    # Ends of d - 2 radius - errors: each subtracted term contributes its opposite end.
    least = Interval(d.low - 2 * radius.high - errors.high, d.high - 2 * radius.low - errors.low)
    most = Interval(d.low + errors.low, d.high + errors.high)
    # radius^2 is never below a graph's own m*, so the previous bound on coverage also applies.
    consistent = Interval(
        np.maximum(radius.low**2 + c.excess.low + relaxation, c.coverage_bound.low),
        radius.high**2 + c.excess.high + relaxation,
    )
    squared = Interval(d.low**2, d.high**2)
    graphs, pairs = c.names, [f"{c.names[a]} and {c.names[b]}" for a, b in c.pairs]
    sides: tuple[tuple[Interval, Interval, Sequence[str]], ...] = (
        (_exactly(c.residuals), zero, graphs),
        (difference, zero, graphs),
        (*_ends(c.least_energies), graphs),
        (*_ends(squared), pairs),
        (c.least_energies, energies, graphs),
        (c.nearest_energy, coverage, graphs),
        (coverage, c.coverage_bound, graphs),
        (coverage, consistent, graphs),
        (least, between, pairs),
        (between, most, pairs),
    )
    return tuple(
        judge(name, formula, smaller, larger, labels)
        for (name, formula), (smaller, larger, labels) in zip(STATEMENTS, sides, strict=True)
    )


def judge(
    name: str, formula: str, smaller: Interval, larger: Interval, labels: Sequence[str]
) -> Statement:
    """Judge smaller <= larger up to TOLERANCE per label; intervals of shape [len(labels), ...]."""
    if not labels:
        return Statement(name, formula, 0, 0, (), None)
    certain = (larger.low - smaller.high).reshape(len(labels), -1)
    possible = (larger.high - smaller.low).reshape(len(labels), -1)
    violated = ~(possible >= -TOLERANCE).all(1)  # NaN is a violation
    holds = (certain >= -TOLERANCE).all(1) & ~violated
    return Statement(
        name,
        formula,
        int(holds.sum()),
        int((~holds & ~violated).sum()),
        tuple(labels[n] for n in np.flatnonzero(violated).tolist()),
        float(certain.min()),
    )


def _exactly(values: Any) -> Interval:
    known = np.asarray(values, dtype=np.float64)
    return Interval(known, known)


def _ends(interval: Interval) -> tuple[Interval, Interval]:
    return _exactly(interval.low), _exactly(interval.high)
