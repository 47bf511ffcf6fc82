r"""What does rewiring change: coordinates, couplings and transported features at equal degrees?

Makes the paper's figure of perturbation. With q, T_k and H of a graph and those of the rewired
graph, marked (p), the paper measures

.. math:: \Delta_q = 1 - \cos(q, q^{(p)}), \quad
    \Delta_T = \frac 1 K \sum_k \frac{\|T_k - T_k^{(p)}\|_F}{\|T_k\|_F + \epsilon}, \quad
    \Delta_H = 1 - \cos(\mathrm{vec} H, \mathrm{vec} H^{(p)}).

We add three metrics. ``standardised``: the cosine between nearly constant positive vectors hides
change, so q is standardised per base over the objects, and the distance of a graph from its rewired
self is divided by the root mean square distance of two objects. ``energy``: the share of the
independent coupling's energy that alignment saves,
:math:`(E_{\mu\nu^\top} - e_k) / E_{\mu\nu^\top}`, and how much rewiring changes it. ``permuted``:
see :mod:`artlas_paper.studies.role_permutation`.

    artlas-paper study perturbation --root ROOT --out DIR [--metric paper,energy]
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
from artlas_paper.studies.rewiring_measures import (
    Values,
    cosine_distance,
    coupling_change,
    interval,
    standardised_distance,
)
from artlas_paper.studies.study import Job, ReportProgress, Setting, Study

RATIOS = (0.0, 0.1, 0.2, 0.4, 0.6)
REPEATS = 3
METRICS = ("paper", "standardised", "energy", "permuted")


@dataclass(frozen=True, eq=False)
class Alignment:
    """A model's alignment of n graphs, and what it makes of their attributes.

    energies, gain: [n, K]; features vec H: [n, M d]; couplings: [K, N_g, M] of each graph; pooled:
    the mean of the attributes [n, d], which does not depend on structure.
    """

    energies: Values
    gain: Values
    features: Values
    couplings: list[NDArray[np.float32]]
    pooled: Values

    @classmethod
    def of(cls, model: ART, graphs: Graphs) -> Alignment:
        """Align graphs by a frozen model."""
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
        """The coordinates q, [n, K]."""
        q: Values = coordinates(torch.from_numpy(self.energies)).numpy()
        return q


@dataclass(frozen=True, eq=False)
class Change:
    """The effect of REPEATS rewirings at one ratio on n objects: [REPEATS, n(, K)]."""

    realised: Values
    coordinates: Values
    gain: Values
    couplings: Values
    features: Values
    pooled: Values


def jobs(setting: Setting) -> Iterable[Job]:
    """List a job for every target, seed, model variant, ratio and metric.

    Permuted roles have no ratio. The untrained model and the one with random bases are measured
    only at the largest ratio.
    """
    wanted = setting.metrics or METRICS
    for target, seed, variant in itertools.product(setting.targets, setting.seeds, VARIANTS):
        identity = {"target": target, "variant": variant, "seed": seed}
        ratios = RATIOS if variant == "learned" else RATIOS[-1:]
        for ratio, metric in itertools.product(ratios, MEASURES):
            if metric in wanted:
                measure = partial(_measure, setting, target, variant, metric, ratio, seed)
                yield Job({**identity, "metric": metric, "ratio": ratio}, measure)
        if "permuted" in wanted and variant == "learned":
            measure = partial(_measure_permuted, setting, target, seed)
            yield Job({**identity, "metric": "permuted", "ratio": None}, measure)


def _measure(
    setting: Setting,
    target: str,
    variant: str,
    metric: str,
    ratio: float,
    seed: int,
    report: ReportProgress,
) -> Mapping[str, Any]:
    sample = setting.sample(target)
    model = setting.cached(
        ("variant", target, variant, seed),
        lambda: variant_of(setting.model(target, seed, report), variant),
    )
    before = _alignment(model, sample.graphs)
    after = setting.cached(
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


@lru_cache(maxsize=1)  # only one, because the couplings of ego-graphs take 100 MB
def _alignment(model: ART, graphs: Graphs) -> Alignment:
    return Alignment.of(model, graphs)


def _change(
    setting: Setting,
    target: str,
    ratio: float,
    model: ART,
    before: Alignment,
    report: ReportProgress,
) -> Change:
    """Rewire at a ratio and measure the change; rewired graphs are the same for every seed."""
    graphs = setting.sample(target).graphs
    columns: dict[str, list[Values]] = {name: [] for name in Change.__dataclass_fields__}
    for repeat in range(REPEATS):
        report(repeat, REPEATS)
        rewired = setting.cached(
            ("rewired", target, ratio, repeat), partial(rewire, graphs, ratio, SEED + repeat)
        )
        after = Alignment.of(model, rewired.graphs)
        pairs = zip(before.couplings, after.couplings, strict=True)
        columns["realised"].append(rewired.realised)
        columns["coordinates"].append(after.coordinates)
        columns["gain"].append(after.gain)
        columns["couplings"].append(np.array([coupling_change(a, b) for a, b in pairs]))
        columns["features"].append(cosine_distance(before.features, after.features))
        columns["pooled"].append(cosine_distance(before.pooled, after.pooled))
    return Change(**{name: np.stack(parts) for name, parts in columns.items()})


def _summary(name: str, values: Values) -> dict[str, float]:
    """Average repeats [REPEATS, n] within each object; give the mean and interval over objects."""
    mean, half = interval(values.mean(0))
    return {name: mean, f"{name}_half": half}


def _paper_metric(before: Alignment, after: Change) -> dict[str, float]:
    moved = np.stack([cosine_distance(before.coordinates, q) for q in after.coordinates])
    return {
        **_summary("delta_q", moved),
        "delta_q_most": float(moved.max()),
        **_summary("delta_t", after.couplings),
        **_summary("delta_h", after.features),
        "pooling": float(after.pooled.max()),
    }


def _standardised_metric(before: Alignment, after: Change) -> dict[str, float]:
    moved = [standardised_distance(before.coordinates, q) for q in after.coordinates]
    relative = [np.abs(q / before.coordinates - 1).mean(1) for q in after.coordinates]
    return {**_summary("moved", np.stack(moved)), **_summary("relative", np.stack(relative))}


def _energy_metric(before: Alignment, after: Change) -> dict[str, float]:
    mean, half = interval(before.gain.mean(1))
    return {
        "gain_before": mean,
        "gain_before_half": half,
        **_summary("gain", after.gain.mean(2)),
        **_summary("gain_change", np.abs(after.gain - before.gain).mean(2)),
    }


MEASURES: dict[str, Callable[[Alignment, Change], dict[str, float]]] = {
    "paper": _paper_metric,
    "standardised": _standardised_metric,
    "energy": _energy_metric,
}


def _measure_permuted(
    setting: Setting, target: str, seed: int, report: ReportProgress
) -> Mapping[str, Any]:
    model, sample = setting.model(target, seed, report), setting.sample(target)
    draws = 5 if setting.quick else role_permutation.PERMUTATIONS
    shares = role_permutation.variance_shares(model, sample.graphs, draws, report)
    folds = setting.folds(sample.level)
    times = 1 if setting.quick else role_permutation.EVALUATIONS
    return {
        **shares,
        **role_permutation.permuted_accuracies(folds, model, target, times, report),
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
