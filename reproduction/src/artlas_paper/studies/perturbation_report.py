"""Make the tables and the figure of the study of perturbation, beside the paper's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artlas_paper import figures
from artlas_paper.studies.atlas import VARIANTS
from artlas_paper.studies.plots import finish_panel, legend_above, panel_row
from artlas_paper.studies.tables import distinct, markdown_table, where
from artlas_paper.transfer.records import Record

# Delta_T and half its interval at the largest ratio
PAPER = {
    "BZR": (1.197, 0.011),
    "COLLAB": (0.468, 0.044),
    "Cora": (0.841, 0.033),
    "Computers": (0.847, 0.015),
}
LARGEST = 0.6
PAPER_Q = 6e-6  # upper bound on Delta_q, on every target and at every ratio

PROTOCOL = """\
128 objects of each target, stratified by class (seed 42), are rewired by undirected double-edge
swaps that keep every degree and every attribute: round(p |E| / 2) swaps at the requested ratio p,
fewer where 100 attempts a swap do not find them, three repeats (seeds 42, 43, 44). The realised
ratio is the share of the original edges that are gone. The frozen model never saw the target.
Repeats are averaged within an object; intervals (±) are 95 % by Student's t over the objects, and
values and intervals are averaged over the seeds of pretraining. Delta_q and Delta_H are 1 - cosine,
Delta_T is the mean over bases of the relative Frobenius change, as the paper defines them; "most"
is the largest Delta_q of any object and repeat. Pooling is the largest change of mean-pooled
attributes, which do not depend on structure. "q moved" is the distance of a graph from its rewired
self in coordinates standardised per base over the objects, as a share of the root mean square
distance of two objects; "q relative" is the mean of |q_k' / q_k - 1|. The gain is the share of the
independent coupling's energy that the coupling saves, averaged over bases; its change is the mean
of the absolute differences. Permuted roles: the rows of T_mix / mu are permuted among the nodes of
a graph (20 times); the share is the part of the total variance that permutations within a graph
account for, averaged over the standardised columns of H; the departure is the squared distance of
the true H from the mean over permutations, in the same unit. Accuracies are of z = [q, vec H] at 5
shots, on the episodes of `artlas-paper transfer`; permuted ones are the mean of 3 draws, and
differences have standard errors over episodes. At the largest ratio the model is also measured
before training ("untrained") and with random, untrained bases in place of its own
("random-bases")."""


def table(records: Sequence[Record]) -> str:
    """Make a table of every metric that has records, then one of the model variants."""
    metric_tables = {
        "paper": _paper_table,
        "standardised": _standardised_table,
        "energy": _energy_table,
        "permuted": _permuted_table,
    }
    parts = []
    for metric, make in metric_tables.items():
        own = where(records, variant="learned", metric=metric)
        if own:
            parts.append(make(own))
    return "\n\n".join([*parts, _variant_table(records)])


def _variant_table(records: Sequence[Record]) -> str:
    """Compare the model variants at the largest ratio."""
    shown = {
        "Delta_T": ("paper", "delta_t", ".3f"),
        "Delta_H": ("paper", "delta_h", ".4f"),
        "Delta_q": ("paper", "delta_q", ".1e"),
        "q moved": ("standardised", "moved", ".3f"),
        "gain before": ("energy", "gain_before", "z.4f"),
    }
    body = []
    for target in distinct(records, "target", list(PAPER)):
        own = where(records, target=target, ratio=LARGEST)
        for variant in distinct(own, "variant", VARIANTS):
            cells = []
            for metric, name, form in shown.values():
                chosen = where(own, variant=variant, metric=metric)
                cells.append(_with_interval(chosen, name, form) if chosen else "-")
            body.append([target, variant, *cells])
    return f"### What training changes, at p = {LARGEST}\n\n" + markdown_table(
        ["target", "model", *shown], body
    )


def _by_target_and_ratio(records: Sequence[Record]) -> list[tuple[str, float, list[Record]]]:
    """Group records by target, in the paper's order, and ratio."""
    groups = []
    for target in distinct(records, "target", list(PAPER)):
        own = where(records, target=target)
        for ratio in sorted({r["ratio"] for r in own}):
            groups.append((target, ratio, where(own, ratio=ratio)))
    return groups


def mean(records: Sequence[Record], name: str) -> float:
    """Average a value over the seeds."""
    return float(np.mean([r[name] for r in records]))


def _with_interval(records: Sequence[Record], name: str, form: str) -> str:
    return f"{mean(records, name):{form}} ± {mean(records, f'{name}_half'):{form}}"


def _paper_table(records: Sequence[Record]) -> str:
    head = ["target", "p", "realised", "Delta_T", "Delta_H", "Delta_q", "most", "pooling"]
    body: list[list[str]] = []
    for target, ratio, own in _by_target_and_ratio(records):
        body.append(
            [
                target,
                f"{ratio:g}",
                f"{mean(own, 'realised'):.3f}",
                _with_interval(own, "delta_t", ".3f"),
                _with_interval(own, "delta_h", ".4f"),
                _with_interval(own, "delta_q", ".1e"),
                f"{max(r['delta_q_most'] for r in own):.1e}",
                f"{max(r['pooling'] for r in own):g}",
            ]
        )
        if ratio == LARGEST and target in PAPER:
            value, half = PAPER[target]
            below = f"< {PAPER_Q:.0e}"
            body.append(
                [target, "paper, largest", "-", f"{value:.3f} ± {half:.3f}", "-", below, "-", "0"]
            )
    return f"### The paper's measures\n\n{markdown_table(head, body)}"


def _standardised_table(records: Sequence[Record]) -> str:
    columns = {"q moved": ("moved", ".3f"), "q relative": ("relative", ".4f")}
    return f"### Standardised coordinates\n\n{_interval_table(records, columns)}"


def _energy_table(records: Sequence[Record]) -> str:
    columns = {
        "gain before": ("gain_before", "z.4f"),
        "gain after": ("gain", "z.4f"),
        "change of gain": ("gain_change", ".4f"),
    }
    title = "### Energy saved against the independent coupling"
    return f"{title}\n\n{_interval_table(records, columns)}"


def _interval_table(records: Sequence[Record], columns: dict[str, tuple[str, str]]) -> str:
    """Tabulate values with their intervals by target and ratio; columns: heading to (key, form)."""
    body = [
        [
            target,
            f"{ratio:g}",
            f"{mean(own, 'realised'):.3f}",
            *(_with_interval(own, name, form) for name, form in columns.values()),
        ]
        for target, ratio, own in _by_target_and_ratio(records)
    ]
    return markdown_table(["target", "p", "realised", *columns], body)


def _permuted_table(records: Sequence[Record]) -> str:
    head = [
        "target",
        "share",
        "departure",
        "share, raw columns",
        "accuracy",
        "permuted",
        "difference",
    ]
    body = []
    for target in distinct(records, "target", list(PAPER)):
        own = where(records, target=target)
        body.append(
            [
                target,
                *(f"{mean(own, name):.3f}" for name in ("share", "departure", "share_raw")),
                f"{mean(own, 'accuracy'):.2f}",
                f"{mean(own, 'accuracy_permuted'):.2f}",
                f"{mean(own, 'difference'):+.2f} ({mean(own, 'difference_error'):.2f})",
            ]
        )
    return f"### Permuted roles\n\n{markdown_table(head, body)}"


PANELS = (
    ("paper", "delta_t", "$\\Delta_T$, couplings"),
    ("paper", "delta_h", "$\\Delta_H$, transported features"),
    ("paper", "delta_q", "$\\Delta_q$, coordinates (cosine)"),
    ("standardised", "moved", "q moved, share of a typical distance"),
)


def figure(records: Sequence[Record]) -> Any:
    """Plot each measure against the realised ratio, averaged over seeds: one line per target."""
    drawing, panels = panel_row(len(PANELS), 13.6, 3.9)
    targets = distinct(records, "target", list(PAPER))
    for panel, (metric, name, title) in zip(panels, PANELS, strict=True):
        groups = _by_target_and_ratio(where(records, variant="learned", metric=metric))
        for i, target in enumerate(targets):
            points = [own for of, _, own in groups if of == target]
            colour = figures.COLOURS[i % len(figures.COLOURS)]
            ratios = [mean(own, "realised") for own in points]
            panel.errorbar(
                ratios,
                [mean(own, name) for own in points],
                [mean(own, f"{name}_half") for own in points],
                marker=figures.MARKERS[i],
                ms=4,
                lw=1.2,
                color=colour,
                label=target if panel is panels[0] else None,
            )
            if name == "delta_t" and target in PAPER and ratios:
                panel.plot(max(ratios), PAPER[target][0], "*", ms=11, mec=colour, mfc="white")
        if name == "delta_t":
            panel.plot([], [], "*", ms=11, mec=figures.INK, mfc="white", label="paper, largest")
        if name == "delta_q":
            panel.axhline(PAPER_Q, color=figures.MUTED, ls=":", lw=1, label="paper, bound")
            panel.set_yscale("symlog", linthresh=1e-8)
            panel.set_ylim(bottom=0)
        finish_panel(panel, title, "realised ratio")
    legend_above(drawing, 6)
    return drawing
