"""A certificate: intervals per graph and pair, and the statements judged from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
TOLERANCE = 1e-6  # rounding of energies in single precision, and the largest marginal error
HOLDS, UNDECIDED, VIOLATED = "holds", "not decided by these bounds", "violated"


class Interval(NamedTuple):
    """Lower and upper ends of unknown values, of any shape."""

    low: Array
    high: Array


@dataclass(frozen=True)
class Statement:
    """An inequality of the theory, and for how many graphs or pairs it holds.

    violated: names of the graphs or pairs that violate it; slack: the least margin by which it
    certainly holds, None where there is nothing to judge.
    """

    name: str
    formula: str
    holds: int
    undecided: int
    violated: tuple[str, ...]
    slack: float | None

    @property
    def verdict(self) -> str:
        if self.violated:
            return VIOLATED
        return UNDECIDED if self.undecided else HOLDS


@dataclass(frozen=True, eq=False)
class Certificate:
    r"""Measured values and intervals for G graphs and P pairs of them.

    names [G]; sizes [G, 2]: nodes and edges; energies [G, K] of the model; residuals [G]: the
    largest marginal error or negative entry of their couplings; least_energies [G, K]:
    :math:`e^*`; nearest_energy [G]: :math:`m^*`; amortisation_error [G]: :math:`\eta`; excess [G]:
    :math:`\Delta`; coverage [G]; coverage_bound [G]: :math:`m^* + \Delta + \tau_m \log K`;
    covering_radius []: of the atlas over these graphs; pairs [P, 2]; distances [P]: intervals of d;
    coordinate_distances [P]: :math:`\|q - q'\|_\infty`; graphs_given: how many G were drawn from.
    """

    names: tuple[str, ...]
    sizes: NDArray[np.int64]
    energies: Array
    residuals: Array
    least_energies: Interval
    nearest_energy: Interval
    amortisation_error: Interval
    excess: Interval
    coverage_bound: Interval
    coverage: Array
    covering_radius: Interval
    pairs: NDArray[np.int64]
    distances: Interval
    coordinate_distances: Array
    statements: tuple[Statement, ...]
    weights: str
    seed: int
    graphs_given: int

    @property
    def verdict(self) -> str:
        """The verdict of the worst statement."""
        verdicts = {statement.verdict for statement in self.statements}
        return next(verdict for verdict in (VIOLATED, UNDECIDED, HOLDS) if verdict in verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON; an interval becomes [low, high]."""
        return {
            "verdict": self.verdict,
            "statements": [asdict(s) | {"verdict": s.verdict} for s in self.statements],
            "radius": [float(end) for end in self.covering_radius],
            "tolerance": TOLERANCE,
            "weights": self.weights,
            "seed": self.seed,
            "graphs_given": self.graphs_given,
            "graphs": _records(
                name=self.names,
                nodes=self.sizes[:, 0],
                edges=self.sizes[:, 1],
                residual=self.residuals,
                eta=self.amortisation_error,
                delta=self.excess,
                nearest=self.nearest_energy,
                coverage=self.coverage,
                ceiling=self.coverage_bound,
                energies=self.energies,
                least_energies=self.least_energies,
            ),
            "pairs": _records(graphs=self.pairs, d=self.distances, apart=self.coordinate_distances),
        }


def _records(**columns: ArrayLike | Interval) -> list[dict[str, Any]]:
    """Turn columns into one dictionary per row; an interval becomes [low, high]."""
    arrays = (
        np.stack(v, 1) if isinstance(v, Interval) else np.asarray(v) for v in columns.values()
    )
    rows = zip(*(array.tolist() for array in arrays), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def judge_statements(
    certificate: Certificate, recomputed: Array, relaxation: float
) -> tuple[Statement, ...]:
    r"""Judge every statement for every graph or pair.

    recomputed [G, K]: energies of the model's couplings in double precision; relaxation:
    :math:`\tau_m \log K`.
    """
    c = certificate
    difference = np.abs(c.energies - recomputed).max(1)
    least_energies, coverage, ceiling = c.least_energies, c.coverage, c.coverage_bound
    apart, d, radius = c.coordinate_distances, c.distances, c.covering_radius
    i, j = c.pairs.T
    errors = Interval(*(end[i] + end[j] for end in c.amortisation_error))
    # Ends of d - 2 radius - errors: each subtracted term contributes its opposite end.
    least = Interval(d.low - 2 * radius.high - errors.high, d.high - 2 * radius.low - errors.low)
    most = Interval(d.low + errors.low, d.high + errors.high)
    # radius^2 is never below a graph's own m*, so the previous bound on coverage also applies.
    consistent = Interval(
        np.maximum(radius.low**2 + c.excess.low + relaxation, ceiling.low),
        radius.high**2 + c.excess.high + relaxation,
    )
    graphs, pairs = c.names, [f"{c.names[a]} and {c.names[b]}" for a, b in c.pairs]
    bounded, consistency = "lower bound <= solver", "l <= radius^2 + Delta + tau log K"
    return (
        judge("couplings are feasible", "marginal residual = 0", c.residuals, 0.0, graphs),
        judge("energies are those of the couplings", "e = E(A, B; T)", difference, 0.0, graphs),
        judge("the bounds agree, energies", bounded, *least_energies, graphs),
        judge("the bounds agree, pairs", bounded, d.low**2, d.high**2, pairs),
        judge("no coupling beats the least energy", "e* <= e", least_energies, c.energies, graphs),
        judge("coverage from below", "m* <= l", c.nearest_energy, coverage, graphs),
        judge("coverage from above", "l <= m* + Delta + tau log K", coverage, ceiling, graphs),
        judge("coverage is consistent", consistency, coverage, consistent, graphs),
        judge("fidelity from below", "d - 2 radius - eta - eta' <= |q - q'|", least, apart, pairs),
        judge("fidelity from above", "|q - q'| <= d + eta + eta'", apart, most, pairs),
    )


def judge(
    name: str,
    formula: str,
    smaller: Interval | ArrayLike,
    larger: Interval | ArrayLike,
    labels: Sequence[str],
) -> Statement:
    """Judge smaller <= larger up to TOLERANCE per label; values of shape [len(labels), ...]."""
    if not labels:
        return Statement(name, formula, 0, 0, (), None)
    smallest, largest = smaller if isinstance(smaller, Interval) else (smaller, smaller)
    least, most = larger if isinstance(larger, Interval) else (larger, larger)
    certain = np.subtract(least, largest).reshape(len(labels), -1)
    possible = np.subtract(most, smallest).reshape(len(labels), -1)
    violated = ~(possible >= -TOLERANCE).all(1)  # NaN is a violation
    holds = (certain >= -TOLERANCE).all(1) & ~violated
    undecided = int((~holds & ~violated).sum())
    violating = tuple(labels[n] for n in np.flatnonzero(violated).tolist())
    return Statement(name, formula, int(holds.sum()), undecided, violating, float(certain.min()))
