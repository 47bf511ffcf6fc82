"""How evenly are the bases of an atlas used, and do they respond to different graphs?

Makes the paper's table "Utilization and response differentiation". Each target is aligned with the
model that never saw it: as learned, as initialised ("untrained"), and with its bases alone replaced
by random ones.

    artlas-paper study atlas --root ROOT --out DIR
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
from artlas_paper.studies.plots import finish_panel, legend_above, panel_row, plot_series
from artlas_paper.studies.study import Job, ReportProgress, Setting, Study
from artlas_paper.studies.tables import distinct, markdown_table, mean_deviation, where
from artlas_paper.transfer.records import Record

TOP = 8  # objects with the largest responsibility, of each base
VARIANTS = ("learned", "untrained", "random-bases")
MEASURES = ("effective", "jaccard", "unique", "tv")
# N_eff, top-8 Jaccard, Unique, Max TV
PAPER = {
    "BZR": (16.000, 0.053, 73, 0.0004),
    "COLLAB": (15.998, 0.046, 74, 0.0140),
    "Cora": (16.000, 0.075, 60, 0.0023),
    "Computers": (15.996, 0.059, 71, 0.0051),
}
FORMATS = (".4f", ".3f", ".1f", ".4f")
RANDOM_BASES_SEED = 1_000_003  # added to a model's seed to draw the bases that replace its own

PROTOCOL = f"""\
128 objects of each target, stratified by class (seed 42), are aligned with the K = 16 bases of a
frozen model whose sources leave the target out; w(G) are responsibilities at temperature 0.1.
N_eff is the exponential of the entropy of their mean over the objects; Jaccard is the mean overlap
of the sets of {TOP} objects with the largest w_k, over pairs of bases; Unique is the size of their
union; Max TV is the largest total variation distance, over bases, between the class composition
weighted by w_k and that of the objects. "learned" is the trained model, "untrained" its initial
weights, "random-bases" the trained model with random, untrained bases in place of its own; "chance"
is the expectation for independent random sets of {TOP} objects. The smallest and the largest w_k of
any object show how far a single object's responsibilities are from 1/16 = 0.0625; densities are the
smallest and the largest mean relation of a base. Values are means over seeds (standard deviation
over seeds)."""


def jobs(setting: Setting) -> Iterable[Job]:
    """List a job for every target, seed and variant of the model."""
    for target, seed, variant in itertools.product(setting.targets, setting.seeds, VARIANTS):
        identity = {"target": target, "variant": variant, "seed": seed}
        yield Job(identity, partial(_measure, setting, target, seed, variant))


def _measure(
    setting: Setting, target: str, seed: int, variant: str, report: ReportProgress
) -> Mapping[str, Any]:
    sample, model = setting.sample(target), setting.model(target, seed, report)
    model = variant_of(model, variant)
    weights = model.align(sample.graphs).responsibilities.double().numpy()
    return {
        **responsibility_measures(weights, sample.labels),
        "density": [round(float(v), 6) for v in model.atlas.relations().detach().mean((1, 2))],
        "objects": len(sample.labels),
        "weights": checkpoint.weights_hash(model)[:16],
    }


def with_random_bases(model: ART, seed: int) -> ART:
    """Copy a model, with random, untrained bases in place of its own."""
    other = ART(model.config)
    other.load_state_dict(model.state_dict())
    drawn = torch.randn(other.atlas.logits.shape, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        other.atlas.logits.copy_(drawn)
    return other.eval()


def variant_of(model: ART, variant: str) -> ART:
    """Return the model as learned, as initialised, or with random bases."""
    if variant == "untrained":
        return ART(model.config).eval()
    return (
        with_random_bases(model, model.config.seed + RANDOM_BASES_SEED)
        if variant != "learned"
        else model
    )


def effective_bases(mean: NDArray[np.float64]) -> float:
    r"""Count the bases in effective use, from mean responsibilities [K].

    .. math:: N_{eff} = \exp(-\sum_k \bar w_k \log \bar w_k)
    """
    positive = mean[mean > 0]
    return float(np.exp(-(positive * np.log(positive)).sum()))


def top_sets(weights: NDArray[np.float64], top: int = TOP) -> list[set[int]]:
    """Find the objects with the largest responsibility [n, K] for each base; ties: lower index."""
    order = np.argsort(-weights, axis=0, kind="stable")[:top]
    return [set(column.tolist()) for column in order.T]


def mean_jaccard(sets: Sequence[set[int]]) -> float:
    """Average the Jaccard overlap over all pairs of sets."""
    return float(np.mean([len(a & b) / len(a | b) for a, b in itertools.combinations(sets, 2)]))


def overlap_by_chance(objects: int, bases: int, top: int = TOP) -> tuple[float, float]:
    """Compute the expected Jaccard overlap and union of independent random sets, one per base."""
    ways = math.comb(objects, top)
    jaccard = sum(
        math.comb(top, both) * math.comb(objects - top, top - both) / ways * both / (2 * top - both)
        for both in range(top + 1)
    )
    return jaccard, objects * (1 - (1 - top / objects) ** bases)


def largest_class_shift(weights: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Find the largest total variation distance, over bases, of class compositions from overall.

    A base's composition weights objects by its responsibility. weights w [n, K]; labels from 0 [n].
    """
    member = np.eye(labels.max() + 1)[labels]
    by_base = weights.T @ member / weights.sum(0)[:, None]
    return float((np.abs(by_base - member.mean(0)).sum(1) / 2).max())


def responsibility_measures(
    weights: NDArray[np.float64], labels: NDArray[np.int64]
) -> dict[str, Any]:
    """Compute every measure of responsibilities w [n, K], and their means."""
    mean, sets = weights.mean(0), top_sets(weights)
    return {
        "effective": effective_bases(mean),
        "jaccard": mean_jaccard(sets),
        "unique": len(set().union(*sets)),
        "tv": largest_class_shift(weights, labels),
        "least": float(weights.min()),
        "most": float(weights.max()),
        "mean": [round(float(value), 8) for value in mean],
    }


def table(records: Sequence[Record]) -> str:
    """Make the paper's table, its values above ours."""
    head = ["target", "atlas", "N_eff", "Top-8 Jaccard", "Unique", "Max TV", "w", "densities"]
    body = []
    for target in distinct(records, "target", list(PAPER)):
        if target in PAPER:
            cells = [f"{v:{form}}" for form, v in zip(FORMATS, PAPER[target], strict=True)]
            cells[0], cells[2] = f"{PAPER[target][0]:.3f}", str(PAPER[target][2])
            body.append([target, "paper", *cells, "-", "-"])
        own = where(records, target=target)
        for variant in distinct(own, "variant", VARIANTS):
            runs = where(own, variant=variant)
            cells = [
                mean_deviation([r[name] for r in runs], form)
                for name, form in zip(MEASURES, FORMATS, strict=True)
            ]
            least, most = min(r["least"] for r in runs), max(r["most"] for r in runs)
            densities = [value for r in runs for value in r["density"]]
            cells += [f"{least:.4f} to {most:.4f}", f"{min(densities):.2f} to {max(densities):.2f}"]
            body.append([target, variant, *cells])
        overlap, union = overlap_by_chance(own[0]["objects"], len(own[0]["mean"]))
        body.append([target, "chance", "-", f"{overlap:.3f}", f"{union:.1f}", "-", "-", "-"])
    return markdown_table(head, body)


def figure(records: Sequence[Record]) -> Any:
    """Plot mean responsibilities of the bases: one panel per target, one line per run.

    The bases of an atlas have no order, so they are sorted by mean responsibility.
    """
    targets = distinct(records, "target", list(PAPER))
    drawing, panels = panel_row(len(targets), 3.1 * len(targets) + 0.6, 3.6)
    for panel, target in zip(panels, targets, strict=True):
        own, first = where(records, target=target), panel is panels[0]
        for i, variant in enumerate(distinct(own, "variant", VARIANTS)):
            lines = [sorted(r["mean"], reverse=True) for r in where(own, variant=variant)]
            for j, line in enumerate(lines):
                label = variant if first and j == 0 else None
                ranks = range(1, len(line) + 1)
                plot_series(panel, i, ranks, line, ls="-", ms=3, lw=1, alpha=0.8, label=label)
        bases = len(own[0]["mean"])
        label = "1 / K" if first else None
        panel.axhline(1 / bases, color=figures.MUTED, lw=0.8, ls=":", label=label)
        panel.set_xticks([1, *range(4, bases + 1, 4)])
        finish_panel(panel, target, "base, largest first")
    panels[0].set_ylabel("mean responsibility", color=figures.INK)
    legend_above(drawing, 4)
    return drawing


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
