r"""Certificates: what the paper's theory says of given graphs, checked with bounds from both sides.

The least energies :math:`e_k^*(G) = d^2(G, \beta_k)` are not known. Any coupling bounds them from
above, so do those of the solver (:mod:`artlas.gw`), which are local optima; from below they are
bounded by :mod:`artlas.gw.bounds`. Hence every figure is an interval that has the true value in it:

- :math:`e^*, d(G, G')`, the nearest-base energy :math:`m^*` and the covering radius grow with the
  energies, so the solver's value is their **upper** end;
- :math:`\eta(G) = \max_k |\sqrt{e_k} - \sqrt{e_k^*}|` falls with them, so the solver's value is its
  **lower** end;
- :math:`\Delta(G) = \min_{k \in \mathcal K^*} [e_k - e_k^*]` depends on which bases are the ideal
  nearest ones, too. Any base may be whose lower bound is not above the least upper bound: its ends
  are the least and the largest excess over all of these.

The covering radius is that over the graphs given: they are the support that the statements speak
of. Of an inequality x <= y it is said that it *holds* if no values in the intervals break it, that
it is *violated* if all do, and that it is *not decided* otherwise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artlas.errors import GraphError
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure
from artlas.gw import solver
from artlas.gw.bounds import discrepancy_bounds, energy_bounds
from artlas.io.reading import as_graphs
from artlas.method import refinement
from artlas.method.checkpoint import weights_hash
from artlas.method.energy import coverage
from artlas.method.model import ART

Array = NDArray[np.float64]
Report = Callable[[int, int], None]  # steps done, and of how many
TOLERANCE = 1e-6  # rounding of energies in single precision, and the largest marginal error
MOST_NODES = 5000  # of a graph: the solver takes a dense relation between two graphs
HOLDS, OPEN, VIOLATED = "holds", "not decided by these bounds", "violated"


class Interval(NamedTuple):
    """Lower and upper ends of values that are not known, of any shape."""

    low: Array
    high: Array


@dataclass(frozen=True)
class Statement:
    """An inequality of the theory, and for how many graphs or pairs it holds.

    violated: what it is violated for, in words; slack: the least by which it surely holds, None
    where there is nothing to judge.
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
        return OPEN if self.undecided else HOLDS


@dataclass(frozen=True, eq=False)
class Certificate:
    r"""What is known of G graphs and P pairs of them.

    names [G]: what the graphs are called; sizes [G, 2]: nodes and edges; energies [G, K] of the
    model; residuals [G]: the largest error of a marginal, or entry below zero, of their couplings;
    least [G, K], nearest [G], eta [G], excess [G], ceiling [G]: intervals of :math:`e^*, m^*, \eta,
    \Delta` and :math:`m^* + \Delta + \tau_m \log K`; coverage [G]; radius: of the atlas over these
    graphs, []; pairs [P, 2]; distances [P]: intervals of d; apart [P]: of the coordinates.
    """

    names: tuple[str, ...]
    sizes: NDArray[np.int64]
    energies: Array
    residuals: Array
    least: Interval
    nearest: Interval
    eta: Interval
    excess: Interval
    ceiling: Interval
    coverage: Array
    radius: Interval
    pairs: NDArray[np.int64]
    distances: Interval
    apart: Array
    statements: tuple[Statement, ...]
    weights: str
    seed: int
    given: int

    @property
    def verdict(self) -> str:
        """That of the worst statement."""
        found = {statement.verdict for statement in self.statements}
        return next(verdict for verdict in (VIOLATED, OPEN, HOLDS) if verdict in found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an interval is [low, high]."""
        per_graph: dict[str, Array | Interval] = {
            "residual": self.residuals,
            "eta": self.eta,
            "delta": self.excess,
            "nearest": self.nearest,
            "coverage": self.coverage,
            "ceiling": self.ceiling,
            "energies": self.energies,
            "least_energies": self.least,
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
            {"graphs": pair, "d": _plain(self.distances, p), "apart": float(self.apart[p])}
            for p, pair in enumerate(self.pairs.tolist())
        ]
        statements = [
            {**dataclasses.asdict(statement), "verdict": statement.verdict}
            for statement in self.statements
        ]
        return {
            "verdict": self.verdict,
            "statements": statements,
            "radius": [float(end) for end in self.radius],
            "tolerance": TOLERANCE,
            "weights": self.weights,
            "seed": self.seed,
            "graphs_given": self.given,
            "graphs": graphs,
            "pairs": pairs,
        }


def _plain(value: Array | Interval, at: int) -> Any:
    if isinstance(value, Interval):
        return [value.low[at].tolist(), value.high[at].tolist()]
    return value[at].tolist()


def certify(
    model: ART,
    graphs: Any,
    names: Sequence[str] | None = None,
    most: int = 64,
    pairs: int = 100,
    seed: int = 0,
    report: Report | None = None,
) -> Certificate:
    """Certify a model on graphs: at most so many of them, and of their pairs, drawn by the seed."""
    graphs = as_graphs(graphs)
    rng = np.random.default_rng(seed)
    known = [f"graph {g}" for g in range(len(graphs))] if names is None else list(names)
    if len(known) != len(graphs):
        raise ValueError(f"{len(known)} names for {len(graphs)} graphs: give one for each.")
    chosen = np.arange(len(graphs))
    if len(graphs) > most:
        chosen = np.sort(rng.choice(len(graphs), most, replace=False))
    labels, given, graphs = tuple(known[g] for g in chosen), len(graphs), graphs[chosen]
    _check_sizes(labels, graphs)
    drawn = _pairs(len(graphs), pairs, rng)
    epsilon, relations = model.config.measure_epsilon, model.atlas.relations().detach()
    steps = len(graphs) + len(drawn)

    found = model.align(graphs)
    energies = found.energies.cpu().double().numpy()
    own, residuals = _from_couplings(model, graphs)
    upper = np.empty_like(energies)
    for g, graph in enumerate(graphs):
        upper[g] = refinement.reference(model, graph).energies[0]
        if report is not None:
            report(g + 1, steps)
    solved = np.empty(len(drawn))
    for p, pair in enumerate(drawn):
        solved[p] = solver.discrepancies(graphs[pair], [(0, 1)], epsilon)[0]
        if report is not None:
            report(len(graphs) + p + 1, steps)
    least = Interval(energy_bounds(graphs, relations, epsilon), upper.clip(0))
    distances = Interval(discrepancy_bounds(graphs, drawn, epsilon), solved)

    q = np.sqrt(energies.clip(0))
    apart = np.abs(q[drawn[:, 0]] - q[drawn[:, 1]]).max(1) if len(drawn) else np.empty(0)
    soft = coverage(found.energies.cpu().double(), model.config.coverage_temperature).numpy()
    relaxed = model.config.coverage_temperature * math.log(energies.shape[1])
    excess, ideal = _excess(energies, least)
    made = Certificate(
        names=labels,
        sizes=np.array([[graph.num_nodes, graph.num_edges] for graph in graphs]),
        energies=energies,
        residuals=residuals,
        least=least,
        nearest=Interval(least.low.min(1), least.high.min(1)),
        eta=_eta(q, least),
        excess=excess,
        ceiling=Interval(ideal.low + relaxed, ideal.high + relaxed),
        coverage=soft,
        radius=Interval(*(np.sqrt(end.min(1).max()) for end in least)),
        pairs=drawn,
        distances=distances,
        apart=apart,
        statements=(),
        weights=weights_hash(model),
        seed=seed,
        given=given,
    )
    return dataclasses.replace(made, statements=tuple(_statements(made, own, relaxed)))


def _check_sizes(names: Sequence[str], graphs: Graphs) -> None:
    largest = int(graphs.sizes.argmax())
    if int(graphs.sizes[largest]) > MOST_NODES:
        raise GraphError(
            f"{names[largest]}: this graph is too large to be solved by iteration; got "
            f"{int(graphs.sizes[largest]):,} nodes. To fix this, leave out graphs of more than "
            f"{MOST_NODES:,} nodes, or give neighbourhoods in them (artlas.ego_graphs)."
        )


def _pairs(graphs: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """All pairs of different graphs, or so many drawn from them, [P, 2]."""
    every = np.stack(np.triu_indices(graphs, 1), axis=1).astype(np.int64)
    if len(every) <= most:
        return every
    return every[np.sort(rng.choice(len(every), most, replace=False))]


def _from_couplings(model: ART, graphs: Graphs) -> tuple[Array, Array]:
    """Energies [G, K] and largest infeasibility [G] of a model's couplings, in double precision."""
    relations = model.atlas.relations().detach().cpu().double().numpy()
    measures = degree_measure(graphs, model.config.measure_epsilon).split(graphs.sizes.tolist())
    energies, residuals = np.empty((len(graphs), len(relations))), np.empty(len(graphs))
    for g, mu in enumerate(measures):
        A = graphs.to_scipy(g).astype(np.float64)
        couplings = model.couplings(graphs[g]).cpu().double().numpy()
        rows, columns = couplings.sum(2), couplings.sum(1)
        errors = rows - mu.numpy(), columns - 1 / columns.shape[1], couplings.clip(max=0)
        residuals[g] = max(np.abs(error).max() for error in errors)
        for k, (T, B) in enumerate(zip(couplings, relations, strict=True)):
            constant = rows[k] @ (A @ rows[k]) + columns[k] @ B**2 @ columns[k]
            energies[g, k] = constant - 2 * ((A @ T) * (T @ B)).sum()
    return energies, residuals


def _eta(q: Array, least: Interval) -> Interval:
    """The largest distance of coordinates q [G, K] from ideal ones, [G]."""
    low, high = np.sqrt(least.low), np.sqrt(least.high)
    nearest = np.maximum(np.maximum(q - high, low - q), 0)
    return Interval(nearest.max(1), np.maximum(np.abs(q - low), np.abs(q - high)).max(1))


def _excess(energies: Array, least: Interval) -> tuple[Interval, Interval]:
    r"""Intervals of :math:`\Delta` and of :math:`m^* + \Delta = \min_{k \in \mathcal K^*} e_k`."""
    best = least.high.min(1, keepdims=True)
    maybe = least.low <= best + TOLERANCE
    low = np.where(maybe, energies - best, np.inf).min(1)
    high = np.where(maybe, energies - least.low, -np.inf).max(1)
    ideal = np.where(maybe, energies, np.inf).min(1), np.where(maybe, energies, -np.inf).max(1)
    return Interval(low.clip(0), high.clip(0)), Interval(*ideal)


def _exactly(values: Any) -> Interval:
    known = np.asarray(values, dtype=np.float64)
    return Interval(known, known)


def _statements(made: Certificate, own: Array, relaxed: float) -> list[Statement]:
    soft, energies = _exactly(made.coverage), _exactly(made.energies)
    apart, eta, radius = _exactly(made.apart), made.eta, made.radius
    i, j = made.pairs.T
    errors = Interval(eta.low[i] + eta.low[j], eta.high[i] + eta.high[j])
    d = made.distances
    # ends of d - 2 radius - errors: what is subtracted counts with its other end
    below = Interval(d.low - 2 * radius.high - errors.high, d.high - 2 * radius.low - errors.low)
    above = Interval(d.low + errors.low, d.high + errors.high)
    # radius^2 is never below a graph's own m*, so that the ceiling of the theorem bounds it too
    consistent = Interval(
        np.maximum(radius.low**2 + made.excess.low + relaxed, made.ceiling.low),
        radius.high**2 + made.excess.high + relaxed,
    )
    both = [f"{made.names[a]} and {made.names[b]}" for a, b in made.pairs]
    zero, mistake = _exactly(0.0), _exactly(np.abs(made.energies - own).max(1))
    return [
        _judge(
            "couplings are feasible",
            "marginal residual = 0",
            _exactly(made.residuals),
            zero,
            made.names,
        ),
        _judge("energies are those of the couplings", "e = E(A, B; T)", mistake, zero, made.names),
        _judge(
            "the bounds agree, energies",
            "lower bound <= solver",
            _exactly(made.least.low),
            _exactly(made.least.high),
            made.names,
        ),
        _judge(
            "the bounds agree, pairs",
            "lower bound <= solver",
            _exactly(d.low**2),
            _exactly(d.high**2),
            both,
        ),
        _judge("no coupling beats the least energy", "e* <= e", made.least, energies, made.names),
        _judge("coverage from below", "m* <= l", made.nearest, soft, made.names),
        _judge(
            "coverage from above", "l <= m* + Delta + tau log K", soft, made.ceiling, made.names
        ),
        _judge(
            "coverage is consistent",
            "l <= radius^2 + Delta + tau log K",
            soft,
            consistent,
            made.names,
        ),
        _judge("fidelity from below", "d - 2 radius - eta - eta' <= |q - q'|", below, apart, both),
        _judge("fidelity from above", "|q - q'| <= d + eta + eta'", apart, above, both),
    ]


def _judge(
    name: str, formula: str, smaller: Interval, larger: Interval, of: Sequence[str]
) -> Statement:
    """Judge smaller <= larger up to TOLERANCE, for every graph or pair: arrays [len(of), ...]."""
    if not of:
        return Statement(name, formula, 0, 0, (), None)
    sure = (larger.low - smaller.high).reshape(len(of), -1)
    at_best = (larger.high - smaller.low).reshape(len(of), -1)
    violated = ~(at_best >= -TOLERANCE).all(1)  # NaN is a violation
    holds = (sure >= -TOLERANCE).all(1) & ~violated
    return Statement(
        name,
        formula,
        int(holds.sum()),
        int((~holds & ~violated).sum()),
        tuple(of[n] for n in np.flatnonzero(violated).tolist()),
        float(sure.min()),
    )
