"""Which part of the representation, and which kind of atlas, transfer owes to: the paper's figure.

q, vec H and z are read from the same model; learned bases are compared with bases that stay random
and with one relation in all slots.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from artlas_paper import figures
from artlas_paper.protocol import SEEDS
from artlas_paper.studies.short_training import (
    EPOCHS,
    accuracies,
    level_of,
    spread,
    train,
    with_atlas,
)
from artlas_paper.studies.study import Job, Report, Setting, Study, ordered, rows
from artlas_paper.transfer.records import Record

ATLASES = ("learned", "frozen", "tied")
PARTS = ("q", "H", "z")
SHOWN = (("learned", "q"), ("learned", "H"), ("learned", "z"), ("frozen", "z"), ("tied", "z"))
# What the paper's text gives, or what follows from the averages and differences in it.
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
graphs and {EPOCHS["node"]} for nodes, in the place of 60; fully trained ones are in the tables of
`artlas-paper transfer`. Values are percent correct, mean over seeds (standard deviation over seeds)."""


def jobs(setting: Setting) -> Iterable[Job]:
    """Every atlas of every target and seed, seed by seed."""
    for seed, target, atlas in itertools.product(setting.seeds, setting.targets, ATLASES):
        of = {"target": target, "atlas": atlas, "seed": seed}
        yield Job(of, partial(_measure, setting, target, atlas, seed))


def _measure(
    setting: Setting, target: str, atlas: str, seed: int, report: Report
) -> Mapping[str, Any]:
    model = train(setting, target, atlas, with_atlas(atlas), seed, report)
    return accuracies(setting, target, model)


def values(records: Sequence[Record], target: str, atlas: str, part: str) -> list[float]:
    """Percent correct by seed."""
    own = [r for r in records if r["target"] == target and r["atlas"] == atlas]
    return [r["accuracy"][part] for r in sorted(own, key=lambda r: r["seed"])]


def _paper(target: str, atlas: str, part: str) -> str:
    found = PAPER.get(target, {}).get(part if atlas == "learned" else atlas)
    return "-" if found is None else f"{found:.2f}"


def table(records: Sequence[Record]) -> str:
    """Accuracies, ours and the paper's, and the averages of a level over the seeds all share."""
    targets = ordered(records, "target", STUDY.targets)
    head = ["atlas", "part", *(f"{t} | paper" for t in targets)]
    body = []
    for atlas, part in SHOWN:
        cells = []
        for target in targets:
            found = values(records, target, atlas, part)
            ours = f"{spread(found)}, n = {len(found)}" if found else "-"
            cells.append(f"{ours} | {_paper(target, atlas, part)}")
        body.append([atlas, part, *cells])
    lines = [rows(head, body).replace("|---" * len(head), "|---" * (2 + 2 * len(targets)))]
    for level in ("graph", "node"):
        own = [t for t in targets if level_of(t) == level]
        if own:
            lines.append(_averages(records, level, own))
    return "\n\n".join(lines)


def _averages(records: Sequence[Record], level: str, targets: Sequence[str]) -> str:
    """Averages over the targets, and the paired difference to z of the learned atlas by seed."""

    def by_seed(atlas: str, part: str) -> dict[int, float]:
        found: dict[int, list[float]] = {}
        for r in records:
            if r["target"] in targets and r["atlas"] == atlas:
                found.setdefault(r["seed"], []).append(r["accuracy"][part])
        return {s: float(np.mean(v)) for s, v in found.items() if len(v) == len(targets)}

    base, body = by_seed("learned", "z"), []
    for atlas, part in SHOWN:
        own = by_seed(atlas, part)
        shared = sorted(set(own) & set(base))
        if not shared:
            continue
        apart = [own[s] - base[s] for s in shared]
        paper = PAPER_AVERAGES[level].get(part if atlas == "learned" else atlas)
        body.append(
            [
                atlas,
                part,
                spread([own[s] for s in shared]),
                spread(apart),
                len(shared),
                "-" if paper is None else f"{paper:.2f}",
            ]
        )
    names = " and ".join(targets)
    head = ["atlas", "part", f"average of {names}", "minus learned z, paired", "seeds", "paper"]
    return rows(head, body)


def figure(records: Sequence[Record]) -> Any:
    """Bars of accuracy, a panel a target, with the deviation over seeds."""
    targets = ordered(records, "target", STUDY.targets)
    made = figures.blank(2.6 * len(targets) + 0.6, 3.4)
    panels = made.subplots(1, len(targets), squeeze=False)[0]
    for panel, target in zip(panels, targets, strict=True):
        for i, (atlas, part) in enumerate(SHOWN):
            found = values(records, target, atlas, part)
            if not found:
                continue
            deviation = np.std(found, ddof=1) if len(found) > 1 else 0
            panel.bar(
                i,
                np.mean(found),
                yerr=deviation,
                color=figures.COLOURS[i],
                capsize=3,
                width=0.7,
                error_kw={"lw": 1},
            )
            paper = PAPER.get(target, {}).get(part if atlas == "learned" else atlas)
            if paper is not None:
                panel.plot([i - 0.35, i + 0.35], [paper, paper], color=figures.INK, lw=1.5)
        panel.set_xticks(
            range(len(SHOWN)), [p if a == "learned" else a for a, p in SHOWN], fontsize=8
        )
        panel.set_title(target, fontsize=10, color=figures.INK)
        figures.plain_axes(panel)
    panels[0].set_ylabel("percent correct (line: paper)", color=figures.INK)
    return made


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
