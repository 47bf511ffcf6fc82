"""Which part of the representation, and which kind of atlas, does transfer depend on?

Makes the paper's figure of components. q, vec H and z are read from the same model; learned bases
are compared with bases that stay random and with one relation shared by all slots.

    artlas-paper study components --root ROOT --out DIR
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from artlas_paper import figures
from artlas_paper.protocol import SEEDS
from artlas_paper.studies.plots import finish_panel, panel_row
from artlas_paper.studies.short_training import (
    EPOCHS,
    config_with_atlas,
    level_of,
    score_parts,
    train_briefly,
)
from artlas_paper.studies.study import Job, ReportProgress, Setting, Study
from artlas_paper.studies.tables import distinct, markdown_table, mean_deviation, where
from artlas_paper.transfer.records import Record

ATLASES = ("learned", "frozen", "tied")
PARTS = ("q", "H", "z")
SHOWN = (("learned", "q"), ("learned", "H"), ("learned", "z"), ("frozen", "z"), ("tied", "z"))
# Given in the paper's text, or derived from the averages and differences in it.
PAPER = {
    "BZR": {"q": 56.35, "H": 63.30, "z": 63.36, "tied": 61.31},
    "PROTEINS": {"q": 63.04, "H": 60.26, "z": 61.28, "tied": 62.05},
}
PAPER_AVERAGES = {
    "graph": {"H": 61.78, "z": 62.32, "frozen": 61.54, "tied": 61.68},
    "node": {"z": 72.16, "frozen": 72.19},
}
PROTOCOL = f"""\
Leave-one-dataset-out models, 50 episodes at five shots with at most 50 queries a class, by seed;
prototype head for graphs, linear for nodes; features as in the paper. q, H and z are read from the
same learned model. "frozen" keeps the bases random and trains the rest, "tied" has one relation in
all 16 slots. All models of a level are trained equally briefly here, {EPOCHS["graph"]} epochs for
graphs and {EPOCHS["node"]} for nodes, instead of 60; fully trained ones are in the tables of
`artlas-paper transfer`. Values are percent correct, mean over seeds (standard deviation over
seeds)."""


def jobs(setting: Setting) -> Iterable[Job]:
    """List a job for every seed, target and kind of atlas."""
    for seed, target, atlas in itertools.product(setting.seeds, setting.targets, ATLASES):
        identity = {"target": target, "atlas": atlas, "seed": seed}
        yield Job(identity, partial(_measure, setting, target, atlas, seed))


def _measure(
    setting: Setting, target: str, atlas: str, seed: int, report: ReportProgress
) -> Mapping[str, Any]:
    model = train_briefly(setting, target, atlas, config_with_atlas(atlas), seed, report)
    return score_parts(setting, target, model)


def accuracies_by_seed(
    records: Sequence[Record], target: str, atlas: str, part: str
) -> list[float]:
    """List the percent correct of every seed."""
    own = where(records, target=target, atlas=atlas)
    return [r["accuracy"][part] for r in sorted(own, key=lambda r: r["seed"])]


def _paper_value(target: str, atlas: str, part: str) -> float | None:
    return PAPER.get(target, {}).get(part if atlas == "learned" else atlas)


def table(records: Sequence[Record]) -> str:
    """Compare our accuracies with the paper's, by target and averaged over each level."""
    targets = distinct(records, "target", STUDY.targets)
    head = ["atlas", "part", *(f"{t} | paper" for t in targets)]
    body = []
    for atlas, part in SHOWN:
        cells = []
        for target in targets:
            values = accuracies_by_seed(records, target, atlas, part)
            ours = f"{mean_deviation(values)}, n = {len(values)}" if values else "-"
            paper = _paper_value(target, atlas, part)
            cells.append(f"{ours} | {'-' if paper is None else f'{paper:.2f}'}")
        body.append([atlas, part, *cells])
    lines = [
        markdown_table(head, body).replace("|---" * len(head), "|---" * (2 + 2 * len(targets)))
    ]
    for level in ("graph", "node"):
        own = [t for t in targets if level_of(t) == level]
        if own:
            lines.append(_averages(records, level, own))
    return "\n\n".join(lines)


def _averages(records: Sequence[Record], level: str, targets: Sequence[str]) -> str:
    """Average over targets, and pair each seed's average with that of z of the learned atlas."""

    def by_seed(atlas: str, part: str) -> dict[int, float]:
        values: dict[int, list[float]] = {}
        for r in where(records, atlas=atlas):
            if r["target"] in targets:
                values.setdefault(r["seed"], []).append(r["accuracy"][part])
        return {s: float(np.mean(v)) for s, v in values.items() if len(v) == len(targets)}

    base, body = by_seed("learned", "z"), []
    for atlas, part in SHOWN:
        own = by_seed(atlas, part)
        shared = sorted(set(own) & set(base))
        if not shared:
            continue
        paper = PAPER_AVERAGES[level].get(part if atlas == "learned" else atlas)
        body.append(
            [
                atlas,
                part,
                mean_deviation([own[s] for s in shared]),
                mean_deviation([own[s] - base[s] for s in shared]),
                len(shared),
                "-" if paper is None else f"{paper:.2f}",
            ]
        )
    names = " and ".join(targets)
    head = ["atlas", "part", f"average of {names}", "minus learned z, paired", "seeds", "paper"]
    return markdown_table(head, body)


def figure(records: Sequence[Record]) -> Any:
    """Draw bars of accuracy with the deviation over seeds, one panel per target."""
    targets = distinct(records, "target", STUDY.targets)
    drawing, panels = panel_row(len(targets), 2.6 * len(targets) + 0.6, 3.4)
    for panel, target in zip(panels, targets, strict=True):
        for i, (atlas, part) in enumerate(SHOWN):
            values = accuracies_by_seed(records, target, atlas, part)
            if not values:
                continue
            deviation = np.std(values, ddof=1) if len(values) > 1 else 0
            panel.bar(
                i,
                np.mean(values),
                yerr=deviation,
                color=figures.COLOURS[i],
                capsize=3,
                width=0.7,
                error_kw={"lw": 1},
            )
            paper = _paper_value(target, atlas, part)
            if paper is not None:
                panel.plot([i - 0.35, i + 0.35], [paper, paper], color=figures.INK, lw=1.5)
        panel.set_xticks(
            range(len(SHOWN)), [p if a == "learned" else a for a, p in SHOWN], fontsize=8
        )
        finish_panel(panel, target)
    panels[0].set_ylabel("percent correct (line: paper)", color=figures.INK)
    return drawing


STUDY = Study(
    name="components",
    title="Parts of the representation and kinds of atlas",
    protocol=PROTOCOL,
    keys=("target", "atlas", "seed"),
    targets=("BZR", "PROTEINS", "Cora", "Computers"),
    seeds=SEEDS,
    jobs=jobs,
    table=table,
    figure=figure,
)
