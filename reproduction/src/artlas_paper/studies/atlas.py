"""How the bases of an atlas are used: the paper's table "Utilization and response differentiation".

Every target is seen by the model that never saw it: as it was learned, as it was before training,
and as it is when its bases, and nothing else, are replaced by random ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.method import checkpoint
from artlas.method.model import ART
from artlas_paper import figures
from artlas_paper.protocol import SEEDS
from artlas_paper.studies.study import Job, Report, Setting, Study, ordered, rows
from artlas_paper.transfer.records import Record

TOP = 8  # objects of the largest responsibility that are kept of a base
VARIANTS = ("learned", "untrained", "random-bases")
MEASURES = ("effective", "jaccard", "unique", "tv")
# N_eff, top-8 Jaccard, Unique, Max TV
PAPER = {
    "BZR": (16.000, 0.053, 73, 0.0004),
    "COLLAB": (15.998, 0.046, 74, 0.0140),
    "Cora": (16.000, 0.075, 60, 0.0023),
    "Computers": (15.996, 0.059, 71, 0.0051),
}
FORMATS = ("{:.4f}", "{:.3f}", "{:.1f}", "{:.4f}")
RANDOM = 1_000_003  # added to a model's seed for the bases that replace its own

PROTOCOL = f"""\
128 objects of each target, stratified by class (seed 42), are aligned with the K = 16 bases of a
frozen model whose sources leave the target out; w(G) are responsibilities at temperature 0.1.
N_eff is the exponential of the entropy of their mean over the objects; Jaccard is the mean overlap
of the sets of {TOP} objects with the largest w_k, over pairs of bases; Unique is the size of their
union; Max TV is the largest total variation distance, over bases, between the class composition
weighted by w_k and that of the objects. "learned" is the model, "untrained" the weights it began
with, "random-bases" the model with random bases, never trained, in the place of its own; "chance"
is what independent random sets of {TOP} objects would give. The smallest and the largest w_k of any
object say how far one object's responsibilities are from 1/16 = 0.0625; densities are the smallest
and the largest mean relation of a base. Values are means over seeds (standard deviation over
seeds)."""


def effective(mean: NDArray[np.float64]) -> float:
    r""":math:`N_{eff} = \exp(-\sum_k \bar w_k \log \bar w_k)` of mean responsibilities [K]."""
    positive = mean[mean > 0]
    return float(np.exp(-(positive * np.log(positive)).sum()))


def top_sets(weights: NDArray[np.float64], top: int = TOP) -> list[set[int]]:
    """The objects of the largest responsibility of every base; ties: lower number; w is [n, K]."""
    order = np.argsort(-weights, axis=0, kind="stable")[:top]
    return [set(column.tolist()) for column in order.T]


def mean_jaccard(sets: Sequence[set[int]]) -> float:
    """The mean over pairs of sets of the share that both have of what either has."""
    return float(np.mean([len(a & b) / len(a | b) for a, b in itertools.combinations(sets, 2)]))


def chance(objects: int, bases: int, top: int = TOP) -> tuple[float, float]:
    """The expected Jaccard overlap and union of independent random sets, one a base."""
    ways = math.comb(objects, top)
    jaccard = sum(
        math.comb(top, both) * math.comb(objects - top, top - both) / ways * both / (2 * top - both)
        for both in range(top + 1)
    )
    return jaccard, objects * (1 - (1 - top / objects) ** bases)


def largest_shift(weights: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The largest total variation distance of a base's class composition from all objects'.

    weights w [n, K]; labels from 0 [n].
    """
    member = np.eye(labels.max() + 1)[labels]
    by_base = weights.T @ member / weights.sum(0)[:, None]
    return float((np.abs(by_base - member.mean(0)).sum(1) / 2).max())


def describe(weights: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[str, Any]:
    """Every measure of responsibilities w [n, K], and their means."""
    mean, sets = weights.mean(0), top_sets(weights)
    return {
        "effective": effective(mean),
        "jaccard": mean_jaccard(sets),
        "unique": len(set().union(*sets)),
        "tv": largest_shift(weights, labels),
        "least": float(weights.min()),
        "most": float(weights.max()),
        "mean": [round(float(value), 8) for value in mean],
    }


def with_random_bases(model: ART, seed: int) -> ART:
    """The same model with random bases that were never trained."""
    other = ART(model.config)
    other.load_state_dict(model.state_dict())
    drawn = torch.randn(other.atlas.logits.shape, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        other.atlas.logits.copy_(drawn)
    return other.eval()


def variant_of(model: ART, variant: str) -> ART:
    """The model as it was learned, before that, or with random bases."""
    if variant == "untrained":
        return ART(model.config).eval()
    return with_random_bases(model, model.config.seed + RANDOM) if variant != "learned" else model


def jobs(setting: Setting) -> Iterable[Job]:
    """Every variant of the model of every target and seed."""
    for target, seed, variant in itertools.product(setting.targets, setting.seeds, VARIANTS):
        of = {"target": target, "variant": variant, "seed": seed}
        yield Job(of, partial(_measure, setting, target, seed, variant))


def _measure(
    setting: Setting, target: str, seed: int, variant: str, report: Report
) -> Mapping[str, Any]:
    sample, model = setting.sample(target), setting.model(target, seed, report)
    model = variant_of(model, variant)
    weights = model.align(sample.graphs).responsibilities.double().numpy()
    return {
        **describe(weights, sample.labels),
        "density": [round(float(v), 6) for v in model.atlas.relations().detach().mean((1, 2))],
        "objects": len(sample.labels),
        "weights": checkpoint.weights_hash(model)[:16],
    }


def table(records: Sequence[Record]) -> str:
    """The paper's table, its values above ours."""
    head = ["target", "atlas", "N_eff", "Top-8 Jaccard", "Unique", "Max TV", "w", "densities"]
    body = []
    for target in ordered(records, "target", list(PAPER)):
        if target in PAPER:
            cells = [f.format(v) for f, v in zip(FORMATS, PAPER[target], strict=True)]
            cells[0], cells[2] = f"{PAPER[target][0]:.3f}", str(PAPER[target][2])
            body.append([target, "paper", *cells, "-", "-"])
        own = [r for r in records if r["target"] == target]
        for variant in ordered(own, "variant", VARIANTS):
            made = [r for r in own if r["variant"] == variant]
            cells = [
                _spread([r[name] for r in made], form)
                for name, form in zip(MEASURES, FORMATS, strict=True)
            ]
            least, most = min(r["least"] for r in made), max(r["most"] for r in made)
            densities = [value for r in made for value in r["density"]]
            cells += [f"{least:.4f} to {most:.4f}", f"{min(densities):.2f} to {max(densities):.2f}"]
            body.append([target, variant, *cells])
        overlap, union = chance(own[0]["objects"], len(own[0]["mean"]))
        body.append([target, "chance", "-", f"{overlap:.3f}", f"{union:.1f}", "-", "-", "-"])
    return rows(head, body)


def _spread(values: Sequence[float], form: str) -> str:
    mean = form.format(np.mean(values))
    return mean if len(values) == 1 else f"{mean} ({form.format(np.std(values, ddof=1))})"


def figure(records: Sequence[Record]) -> Any:
    """Mean responsibilities of every base: a panel a target, a line a variant, all seeds.

    The bases of an atlas have no order, so they are sorted by mean responsibility.
    """
    targets = ordered(records, "target", list(PAPER))
    made = figures.blank(3.1 * len(targets) + 0.6, 3.6)
    panels = made.subplots(1, len(targets), squeeze=False)[0]
    for panel, target in zip(panels, targets, strict=True):
        own = [r for r in records if r["target"] == target]
        for i, variant in enumerate(ordered(own, "variant", VARIANTS)):
            lines = [sorted(r["mean"], reverse=True) for r in own if r["variant"] == variant]
            for j, line in enumerate(lines):
                panel.plot(
                    range(1, len(line) + 1),
                    line,
                    figures.MARKERS[i],
                    ls="-",
                    ms=3,
                    lw=1,
                    color=figures.COLOURS[i],
                    alpha=0.8,
                    label=variant if panel is panels[0] and j == 0 else None,
                )
        even = 1 / len(own[0]["mean"])
        label = "1 / K" if panel is panels[0] else None
        panel.axhline(even, color=figures.MUTED, lw=0.8, ls=":", label=label)
        panel.set_title(target, fontsize=10, color=figures.INK)
        panel.set_xticks([1, *range(4, len(own[0]["mean"]) + 1, 4)])
        panel.set_xlabel("base, largest first", fontsize=9, color=figures.MUTED)
        figures.plain_axes(panel)
    panels[0].set_ylabel("mean responsibility", color=figures.INK)
    made.legend(ncols=4, fontsize=8, loc="outside upper center", frameon=False)
    return made


STUDY = Study(
    name="atlas",
    title="Utilization and response differentiation of the atlas",
    protocol=PROTOCOL,
    keys=("target", "variant", "seed"),
    targets=tuple(PAPER),
    seeds=SEEDS[:3],
    jobs=jobs,
    table=table,
    figure=figure,
)
