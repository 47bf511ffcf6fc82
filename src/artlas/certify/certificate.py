"""What a certificate holds: intervals per graph and pair, and statements with their verdicts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
        per_graph: dict[str, Array | Interval] = {
            "residual": self.residuals,
            "eta": self.amortisation_error,
            "delta": self.excess,
            "nearest": self.nearest_energy,
            "coverage": self.coverage,
            "ceiling": self.coverage_bound,
            "energies": self.energies,
            "least_energies": self.least_energies,
        }
        graphs = [
            {
                "name": name,
                "nodes": int(self.sizes[g, 0]),
                "edges": int(self.sizes[g, 1]),
                **{key: _plain(value, g) for key, value in per_graph.items()},
            }
            for g, name in enumerate(self.names)
        ]
        pairs = [
            {
                "graphs": pair,
                "d": _plain(self.distances, p),
                "apart": float(self.coordinate_distances[p]),
            }
            for p, pair in enumerate(self.pairs.tolist())
        ]
        statements = [
            {**dataclasses.asdict(statement), "verdict": statement.verdict}
            for statement in self.statements
        ]
        return {
            "verdict": self.verdict,
            "statements": statements,
            "radius": [float(end) for end in self.covering_radius],
            "tolerance": TOLERANCE,
            "weights": self.weights,
            "seed": self.seed,
            "graphs_given": self.graphs_given,
            "graphs": graphs,
            "pairs": pairs,
        }


def _plain(value: Array | Interval, index: int) -> Any:
    if isinstance(value, Interval):
        return [value.low[index].tolist(), value.high[index].tolist()]
    return value[index].tolist()
