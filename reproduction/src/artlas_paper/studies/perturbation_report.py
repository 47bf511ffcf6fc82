"""The tables and the figure of rewiring, with the paper's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artlas_paper import figures
from artlas_paper.studies.atlas import VARIANTS
from artlas_paper.studies.study import ordered, rows
from artlas_paper.transfer.records import Record

# Delta_T and half its interval at the largest perturbation
PAPER = {
    "BZR": (1.197, 0.011),
    "COLLAB": (0.468, 0.044),
    "Cora": (0.841, 0.033),
    "Computers": (0.847, 0.015),
}
LARGEST = 0.6
PAPER_Q = 6e-6  # Delta_q stays below it, on every target and at every ratio

PROTOCOL = """\
128 objects of each target, stratified by class (seed 42), are rewired by undirected double-edge
swaps that keep every degree and every attribute: round(p |E| / 2) swaps at the requested ratio p,
fewer where 100 attempts a swap do not find them, three repeats (seeds 42, 43, 44). The realised
ratio is the share of the original edges that are gone. The frozen model never saw the target.
Repeats are averaged within an object; intervals (±) are 95 % by Student's t over the objects, and
values and intervals are averaged over the seeds of pretraining. Delta_q and Delta_H are 1 - cosine,
Delta_T is the mean over bases of the relative Frobenius change, as the paper defines them; "most"
is the largest Delta_q of any object and repeat. Pooling is the largest change of mean-pooled
attributes, which no structure enters. "q moved" is the distance of a graph from its rewired self in
coordinates standardised per base over the objects, as a share of the root mean square distance of
two objects; "q relative" is the mean of |q_k' / q_k - 1|. The gain is the share of the independent
coupling's energy that the coupling saves, averaged over bases; its change is the mean of the
absolute differences. Permuted roles: the rows of T_mix / mu are permuted among the nodes of a graph
(20 times); the share is the variance over permutations within a graph in the total variance, mean
over the standardised columns of H; the departure is the squared distance of the true H from the
mean over permutations in the same unit; accuracies are of z = [q, vec H], 5 shots, on the episodes
of `artlas-paper transfer`, permuted ones the mean of 3 draws, differences with standard errors over
episodes. At the largest ratio the model is also seen before training ("untrained") and with random
bases, never trained, in the place of its own ("random-bases")."""


def table(records: Sequence[Record]) -> str:
    """Every metric that there are records of."""
    makers = {
        "paper": _paper,
        "standardised": _standardised,
        "energy": _energy,
        "permuted": _permuted,
    }
    parts = []
    for metric, make in makers.items():
        own = [r for r in learned(records) if r["metric"] == metric]
        if own:
            parts.append(make(own))
    return "\n\n".join([*parts, _variants(records)])


def learned(records: Sequence[Record]) -> list[Record]:
    """The records of the models as they were learned."""
    return [r for r in records if r["variant"] == "learned"]


def _variants(records: Sequence[Record]) -> str:
    """Every variant at the largest ratio, the measures that there are of it."""
    shown = {
        "Delta_T": ("paper", "delta_t", ".3f"),
        "Delta_H": ("paper", "delta_h", ".4f"),
        "Delta_q": ("paper", "delta_q", ".1e"),
        "q moved": ("standardised", "moved", ".3f"),
        "gain before": ("energy", "gain_before", "z.4f"),
    }
    body = []
    for target in ordered(records, "target", list(PAPER)):
        own = [r for r in records if r["target"] == target and r["ratio"] == LARGEST]
        for variant in ordered(own, "variant", VARIANTS):
            cells = []
            for metric, name, form in shown.values():
                found = [r for r in own if (r["variant"], r["metric"]) == (variant, metric)]
                cells.append(_with_half(found, name, form) if found else "-")
            body.append([target, variant, *cells])
    return f"### What training changes, at p = {LARGEST}\n\n" + rows(
        ["target", "model", *shown], body
    )


def _cells(records: Sequence[Record]) -> list[tuple[str, float, list[Record]]]:
    """Records of a target and a ratio together, in the paper's order."""
    found = []
    for target in ordered(records, "target", list(PAPER)):
        own = [r for r in records if r["target"] == target]
        for ratio in sorted({r["ratio"] for r in own}):
            found.append((target, ratio, [r for r in own if r["ratio"] == ratio]))
    return found


def mean(records: Sequence[Record], name: str) -> float:
    """The mean over seeds."""
    return float(np.mean([r[name] for r in records]))


def _with_half(records: Sequence[Record], name: str, form: str) -> str:
    return f"{mean(records, name):{form}} ± {mean(records, f'{name}_half'):{form}}"


def _paper(records: Sequence[Record]) -> str:
    head = ["target", "p", "realised", "Delta_T", "Delta_H", "Delta_q", "most", "pooling"]
    body: list[list[str]] = []
    for target, ratio, own in _cells(records):
        body.append(
            [
                target,
                f"{ratio:g}",
                f"{mean(own, 'realised'):.3f}",
                _with_half(own, "delta_t", ".3f"),
                _with_half(own, "delta_h", ".4f"),
                _with_half(own, "delta_q", ".1e"),
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
    return f"### The paper's measures\n\n{rows(head, body)}"


def _standardised(records: Sequence[Record]) -> str:
    head = ["target", "p", "realised", "q moved", "q relative"]
    body = [
        [
            target,
            f"{ratio:g}",
            f"{mean(own, 'realised'):.3f}",
            _with_half(own, "moved", ".3f"),
            _with_half(own, "relative", ".4f"),
        ]
        for target, ratio, own in _cells(records)
    ]
    return f"### Standardised coordinates\n\n{rows(head, body)}"


def _energy(records: Sequence[Record]) -> str:
    head = ["target", "p", "realised", "gain before", "gain after", "change of gain"]
    body = [
        [
            target,
            f"{ratio:g}",
            f"{mean(own, 'realised'):.3f}",
            _with_half(own, "gain_before", "z.4f"),
            _with_half(own, "gain", "z.4f"),
            _with_half(own, "gain_change", ".4f"),
        ]
        for target, ratio, own in _cells(records)
    ]
    return f"### Energy saved against the independent coupling\n\n{rows(head, body)}"


def _permuted(records: Sequence[Record]) -> str:
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
    for target in ordered(records, "target", list(PAPER)):
        own = [r for r in records if r["target"] == target]
        body.append(
            [
                target,
                *(f"{mean(own, name):.3f}" for name in ("share", "departure", "share_raw")),
                f"{mean(own, 'accuracy'):.2f}",
                f"{mean(own, 'accuracy_permuted'):.2f}",
                f"{mean(own, 'difference'):+.2f} ({mean(own, 'difference_error'):.2f})",
            ]
        )
    return f"### Permuted roles\n\n{rows(head, body)}"


PANELS = (
    ("paper", "delta_t", "$\\Delta_T$, couplings"),
    ("paper", "delta_h", "$\\Delta_H$, transported features"),
    ("paper", "delta_q", "$\\Delta_q$, coordinates (cosine)"),
    ("standardised", "moved", "q moved, share of a typical distance"),
)


def figure(records: Sequence[Record]) -> Any:
    """Every measure against the realised ratio, a line a target, means over seeds."""
    made = figures.blank(13.6, 3.9)
    axes = made.subplots(1, len(PANELS))
    targets = ordered(records, "target", list(PAPER))
    for panel, (metric, name, title) in zip(axes, PANELS, strict=True):
        cells = _cells([r for r in learned(records) if r["metric"] == metric])
        for i, target in enumerate(targets):
            points = [own for at, _, own in cells if at == target]
            colour = figures.COLOURS[i % len(figures.COLOURS)]
            at = [mean(own, "realised") for own in points]
            panel.errorbar(
                at,
                [mean(own, name) for own in points],
                [mean(own, f"{name}_half") for own in points],
                marker=figures.MARKERS[i],
                ms=4,
                lw=1.2,
                color=colour,
                label=target if panel is axes[0] else None,
            )
            if name == "delta_t" and target in PAPER and at:
                panel.plot(max(at), PAPER[target][0], "*", ms=11, mec=colour, mfc="white")
        if name == "delta_t":
            panel.plot([], [], "*", ms=11, mec=figures.INK, mfc="white", label="paper, largest")
        if name == "delta_q":
            panel.axhline(PAPER_Q, color=figures.MUTED, ls=":", lw=1, label="paper, bound")
            panel.set_yscale("symlog", linthresh=1e-8)
            panel.set_ylim(bottom=0)
        panel.set_title(title, fontsize=10, color=figures.INK)
        panel.set_xlabel("realised ratio", fontsize=9, color=figures.MUTED)
        figures.plain_axes(panel)
    made.legend(ncols=6, fontsize=8, loc="outside upper center", frameon=False)
    return made
