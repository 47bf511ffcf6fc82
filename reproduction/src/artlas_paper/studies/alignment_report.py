"""Make the tables and the figure of the study of alignment, beside the paper's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artlas_paper import entropic_gw
from artlas_paper.studies.plots import finish_panel, legend_above, panel_row, plot_series
from artlas_paper.studies.tables import distinct, markdown_table, where
from artlas_paper.transfer.records import Record

TARGETS = ("BZR", "COLLAB", "Cora", "Computers")
STEPS = 10
REFINED = f"ART + {STEPS} steps"
ENTROPIC = f"ART + {STEPS} entropic steps", "entropic reference"
SCHEMES = ("ART", REFINED, "from ART", "from product", "from degrees", "reference", *ENTROPIC)
# rho, top-1 in percent, accuracy, ms a pair, speedup: averages of the four targets
PAPER = {
    "ART": (0.703, 41.0, 68.30, 3.04, 24.3),
    REFINED: (0.997, 99.4, 67.09, 4.49, 16.4),
    "reference": (1.0, 100.0, 67.09, 73.79, 1.0),
}
# the values of a scheme in a record, and the heading of each
COLUMNS = {
    "rho": "rho",
    "top": "top-1 %",
    "same_rho": "same start: rho",
    "same_top": "top-1 %",
    "entropic_rho": "entropic: rho",
    "entropic_top": "top-1 %",
    "energy": "energy",
    "gain": "gain %",
    "accuracy": "accuracy %",
    "ms": "ms a pair",
}
PANELS = {"rho": "Spearman rho", "top": "same nearest base", "ms": "ms a pair"}
PROTOCOL = f"""\
128 objects of each target, stratified by class (seed 42), against the K = 16 bases of the frozen
model whose sources leave the target out. "ART" is the direct prediction, "ART + {STEPS} steps" its
couplings after {STEPS} conditional-gradient steps each. The reference solves every pair from three
deterministic starts: ART's couplings, the product, and nodes joined with roles by degree (up to 20
mirror steps of at most 500 Sinkhorn iterations for the last two, then up to 200 exact steps). It
keeps the lowest energy; "from ART", "from product" and "from degrees" are its three runs taken
separately. All are local optima: their energies are upper bounds on the minimum. The entropic
reference has the same starts and keeps the lowest energy of at most 200 steps of at most 500
Sinkhorn iterations each, at a fixed strength of {entropic_gw.EPSILON}; its first {STEPS} steps from
ART's couplings are "ART + {STEPS} entropic steps". The paper does not say which kind of reference
it uses. rho is the mean over objects of Spearman's correlation between the 16 energies and the
reference's; top-1 is the share of objects with the same nearest base. "same start" compares with
the run from ART's couplings instead, "entropic" with the entropic reference.
Accuracy is of z made from the scheme's energies and couplings, over 50 episodes at five shots among
the 128 objects. Times are of one run, with all schemes on the same graphs and threads."""


def table(records: Sequence[Record]) -> str:
    """Make the paper's table, averaged over the targets, and one table per target."""
    parts = []
    for target in ["all", *distinct(records, "target", TARGETS)]:
        own = list(records) if target == "all" else where(records, target=target)
        means = {
            scheme: {n: float(np.mean([r["schemes"][scheme][n] for r in own])) for n in COLUMNS}
            for scheme in SCHEMES
        }
        body = []
        for scheme in SCHEMES:
            if target == "all" and scheme in PAPER:
                body.append(_paper_row(scheme))
            body.append(_row(scheme, means[scheme], means["reference"]["ms"]))
        title = f"{target}, {len(own)} runs" if target == "all" else target
        wins = np.mean([r["wins"] for r in own], axis=0)
        shares = ", ".join(f"{100 * share:.0f} %" for share in wins)
        deviation = np.mean([r["spread"] for r in own])
        note = (
            f"The reference's energy is from ART, product, degrees in {shares} of the pairs; its "
            f"deviation over the bases of an object is {deviation:.5f}."
        )
        rows = markdown_table(["", *COLUMNS.values(), "speedup"], body)
        parts.append(f"### {title}\n\n{rows}\n\n{note}")
    return "\n\n".join(parts)


def _row(scheme: str, values: Mapping[str, float], reference_ms: float) -> list[str]:
    *agreement, energy, gain, accuracy, ms = (values[name] for name in COLUMNS)
    return [
        scheme,
        *(f"{100 * v:.1f}" if i % 2 else f"{v:.3f}" for i, v in enumerate(agreement)),
        f"{energy:.5f}",
        f"{100 * gain:.1f}",
        f"{accuracy:.2f}",
        f"{ms:.3f}",
        f"{reference_ms / ms:,.1f}",
    ]


def _paper_row(scheme: str) -> list[str]:
    rho, top, accuracy, ms, speedup = PAPER[scheme]
    known = [f"{rho:.3f}", f"{top:.1f}"], [f"{accuracy:.2f}", f"{ms:.2f}", f"{speedup:.1f}"]
    return [f"paper: {scheme}", *known[0], *"------", *known[1]]


def figure(records: Sequence[Record]) -> Any:
    """Plot agreement with the reference and time per pair, by target and scheme."""
    targets = distinct(records, "target", TARGETS)
    drawing, panels = panel_row(len(PANELS), 10, 3.4)
    for panel, (name, title) in zip(panels, PANELS.items(), strict=True):
        for i, scheme in enumerate(SCHEMES):
            means = [
                np.mean([r["schemes"][scheme][name] for r in where(records, target=target)])
                for target in targets
            ]
            label = scheme if name == "rho" else None
            plot_series(panel, i, range(len(targets)), means, ms=6, ls="none", label=label)
        panel.set_xticks(range(len(targets)), targets, fontsize=8)
        if name == "ms":
            panel.set_yscale("log")
        finish_panel(panel, title)
    legend_above(drawing, 6)
    return drawing
