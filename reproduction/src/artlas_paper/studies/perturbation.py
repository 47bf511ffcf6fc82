r"""What rewiring changes: coordinates, couplings and transported features at the same degrees.

With q, T_k and H of a graph and those of the rewired one, marked (p), the paper measures

.. math:: \Delta_q = 1 - \cos(q, q^{(p)}), \quad
    \Delta_T = \frac 1 K \sum_k \frac{\|T_k - T_k^{(p)}\|_F}{\|T_k\|_F + \epsilon}, \quad
    \Delta_H = 1 - \cos(\mathrm{vec} H, \mathrm{vec} H^{(p)}).

Past the paper, three more metrics. ``standardised``: the coordinates of nearly constant positive
vectors hide change from a cosine, so q is standardised per base over the objects, and the distance
of a graph from its rewired self is divided by the root mean square distance of two objects.
``energy``: the share of the independent coupling's energy that alignment saves,
:math:`(E_{\mu\nu^\top} - e_k) / E_{\mu\nu^\top}`, and how much rewiring changes it. ``permuted``:
:mod:`artlas_paper.studies.role_permutation`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.evaluation import controls
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.method.energy import coordinates
from artlas.method.model import ART
from artlas_paper.protocol import SEED, SEEDS
from artlas_paper.studies import role_permutation
from artlas_paper.studies.atlas import VARIANTS, variant_of
from artlas_paper.studies.perturbation_report import PROTOCOL, figure, table
from artlas_paper.studies.rewire import rewire
from artlas_paper.studies.study import Job, Report, Setting, Study

Values = NDArray[np.float64]
RATIOS = (0.0, 0.1, 0.2, 0.4, 0.6)
REPEATS = 3
EPSILON = 1e-12
METRICS = ("paper", "standardised", "energy", "permuted")


@dataclass(frozen=True, eq=False)
class View:
    """What a model makes of n graphs.

    energies, gain: [n, K]; features vec H: [n, M d]; couplings: [K, N_g, M] of each; pooled: the
    mean of attributes [n, d], which no structure enters.
    """

    energies: Values
    gain: Values
    features: Values
    couplings: list[NDArray[np.float32]]
    pooled: Values

    @classmethod
    def of(cls, model: ART, graphs: Graphs) -> View:
        """See graphs by a frozen model."""
        alignment = model.align(graphs)
        return cls(
            alignment.energies.double().numpy(),
            alignment.gain.double().numpy(),
            model.embed(graphs, "features").double().numpy(),
            [model.couplings(graph).numpy() for graph in graphs],
            controls.mean_pool(graphs),
        )

    @property
    def coordinates(self) -> Values:
        """q, [n, K]."""
        found: Values = coordinates(torch.from_numpy(self.energies)).numpy()
        return found


@dataclass(frozen=True, eq=False)
class Change:
    """What REPEATS rewirings at one ratio did to n objects, [REPEATS, n] or [REPEATS, n, K]."""

    realised: Values
    coordinates: Values
    gain: Values
    couplings: Values
    features: Values
    pooled: Values


def cosine_distance(first: Values, second: Values) -> Values:
    """1 - cos of rows, [n], without the cancellation: half the squared distance of unit vectors."""
    units = []
    for rows in (first, second):
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        units.append(rows / np.where(length > 0, length, 1))
    return ((units[0] - units[1]) ** 2).sum(1) / 2


def coupling_change(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The mean over bases of the relative change of couplings [K, N, M]."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    moved, whole = (np.sqrt((part**2).sum((1, 2))) for part in (a - b, a))
    return float((moved / (whole + EPSILON)).mean())


def standardised_distance(before: Values, after: Values) -> Values:
    """How far q [n, K] moved, as a share of the root mean square distance of two objects, [n].

    Both are standardised per base by the mean and deviation of ``before``; bases without any
    deviation do not count.
    """
    spread = before.std(0)
    kept = spread > 1e-12 * np.abs(before).max(initial=1e-300)
    moved = np.sqrt((((after - before)[:, kept] / spread[kept]) ** 2).sum(1))
    count = len(before)
    typical = np.sqrt(2 * kept.sum() * count / (count - 1))
    return moved / typical if kept.any() else moved


def interval(values: Values) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval by Student's t."""
    from scipy.stats import t as student  # slow to import

    count = len(values)
    error = values.std(ddof=1) / count**0.5
    return float(values.mean()), float(student.ppf(0.975, count - 1) * error)


def jobs(setting: Setting) -> Iterable[Job]:
    """Every metric of every target, seed and ratio; permuted roles know no ratio.

    The untrained model, and the one with random bases, are seen at the largest ratio alone.
    """
    wanted = setting.parts or METRICS
    for target, seed, variant in itertools.product(setting.targets, setting.seeds, VARIANTS):
        of = {"target": target, "variant": variant, "seed": seed}
        ratios = RATIOS if variant == "learned" else RATIOS[-1:]
        for ratio, metric in itertools.product(ratios, MEASURES):
            if metric in wanted:
                make = partial(_measure, setting, target, variant, metric, ratio, seed)
                yield Job({**of, "metric": metric, "ratio": ratio}, make)
        if "permuted" in wanted and variant == "learned":
            make = partial(_permuted, setting, target, seed)
            yield Job({**of, "metric": "permuted", "ratio": None}, make)


def _measure(
    setting: Setting,
    target: str,
    variant: str,
    metric: str,
    ratio: float,
    seed: int,
    report: Report,
) -> Mapping[str, Any]:
    sample = setting.sample(target)
    model = setting.once(
        ("variant", target, variant, seed),
        lambda: variant_of(setting.model(target, seed, report), variant),
    )
    before = _view(model, sample.graphs)
    after = setting.once(
        ("change", target, variant, seed, ratio),
        lambda: _change(setting, target, ratio, model, before, report),
    )
    realised = after.realised.mean(0)
    return {
        "realised": float(realised.mean()),
        "realised_least": float(realised.min()),
        "realised_most": float(realised.max()),
        **MEASURES[metric](before, after),
        "objects": len(sample.labels),
        "weights": checkpoint.weights_hash(model)[:16],
    }


@lru_cache(maxsize=1)  # one: the couplings of ego-graphs take 100 MB
def _view(model: ART, graphs: Graphs) -> View:
    return View.of(model, graphs)


def _change(
    setting: Setting, target: str, ratio: float, model: ART, before: View, report: Report
) -> Change:
    """What the rewirings of a ratio do; the rewired graphs are the same for every seed."""
    graphs = setting.sample(target).graphs
    columns: dict[str, list[Values]] = {name: [] for name in Change.__dataclass_fields__}
    for repeat in range(REPEATS):
        report(repeat, REPEATS)
        made = setting.once(
            ("rewired", target, ratio, repeat), partial(rewire, graphs, ratio, SEED + repeat)
        )
        after = View.of(model, made.graphs)
        pairs = zip(before.couplings, after.couplings, strict=True)
        columns["realised"].append(made.realised)
        columns["coordinates"].append(after.coordinates)
        columns["gain"].append(after.gain)
        columns["couplings"].append(np.array([coupling_change(a, b) for a, b in pairs]))
        columns["features"].append(cosine_distance(before.features, after.features))
        columns["pooled"].append(cosine_distance(before.pooled, after.pooled))
    return Change(**{name: np.stack(parts) for name, parts in columns.items()})


def _summary(name: str, values: Values) -> dict[str, float]:
    """Repeats [REPEATS, n] averaged within an object, then the interval over objects."""
    mean, half = interval(values.mean(0))
    return {name: mean, f"{name}_half": half}


def _paper(before: View, after: Change) -> dict[str, float]:
    moved = np.stack([cosine_distance(before.coordinates, q) for q in after.coordinates])
    return {
        **_summary("delta_q", moved),
        "delta_q_most": float(moved.max()),
        **_summary("delta_t", after.couplings),
        **_summary("delta_h", after.features),
        "pooling": float(after.pooled.max()),
    }


def _standardised(before: View, after: Change) -> dict[str, float]:
    moved = [standardised_distance(before.coordinates, q) for q in after.coordinates]
    relative = [np.abs(q / before.coordinates - 1).mean(1) for q in after.coordinates]
    return {**_summary("moved", np.stack(moved)), **_summary("relative", np.stack(relative))}


def _energy(before: View, after: Change) -> dict[str, float]:
    mean, half = interval(before.gain.mean(1))
    return {
        "gain_before": mean,
        "gain_before_half": half,
        **_summary("gain", after.gain.mean(2)),
        **_summary("gain_change", np.abs(after.gain - before.gain).mean(2)),
    }


MEASURES: dict[str, Callable[[View, Change], dict[str, float]]] = {
    "paper": _paper,
    "standardised": _standardised,
    "energy": _energy,
}


def _permuted(setting: Setting, target: str, seed: int, report: Report) -> Mapping[str, Any]:
    model, sample = setting.model(target, seed, report), setting.sample(target)
    draws = 5 if setting.quick else role_permutation.PERMUTATIONS
    share = role_permutation.shares(model, sample.graphs, draws, report)
    folds = setting.folds(sample.level)
    times = 1 if setting.quick else role_permutation.EVALUATIONS
    return {
        **share,
        **role_permutation.accuracies(folds, model, target, times, report),
        "objects": len(sample.labels),
        "weights": checkpoint.weights_hash(model)[:16],
    }


STUDY = Study(
    name="perturbation",
    title="What degree-preserving rewiring changes",
    protocol=PROTOCOL,
    keys=("target", "variant", "metric", "ratio", "seed"),
    targets=("BZR", "COLLAB", "Cora", "Computers"),
    seeds=SEEDS[:3],
    jobs=jobs,
    table=table,
    figure=figure,
)
