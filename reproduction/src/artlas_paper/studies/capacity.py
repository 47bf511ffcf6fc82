"""How does transfer depend on the number of bases and of roles?

Makes the paper's figure of capacity.

    artlas-paper study capacity --root ROOT --out DIR
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from artlas.method.config import ArtConfig
from artlas_paper import figures
from artlas_paper.protocol import ART_CONFIG, SEED
from artlas_paper.studies.plots import finish_panel, legend_above, panel_row, plot_series
from artlas_paper.studies.short_training import EPOCHS, score_parts, train_briefly
from artlas_paper.studies.study import Job, ReportProgress, Setting, Study
from artlas_paper.studies.tables import distinct, markdown_table, mean_deviation, where
from artlas_paper.transfer.records import Record

DEFAULT = ART_CONFIG
SIZES = {"K": (2, 4, 8, 16, 32), "M": (8, 16, 32, 64)}
NAMES = {"K": "bases", "M": "roles"}
PROTOCOL = f"""\
Leave-one-dataset-out models with K = 2 ... 32 bases at M = 32 roles, and with M = 8 ... 64 roles at
K = 16 bases; the protocol is that of `artlas-paper study components`: {EPOCHS["graph"]} epochs for
graphs and {EPOCHS["node"]} for nodes, 50 episodes at five shots. Values are percent correct of z,
with those of q and of H in brackets. The paper gives its values only in a figure, and says that a
larger K helps PROTEINS and leaves the others unchanged, that BZR is best at a medium M and PROTEINS
falls with M, and that both node-level targets hardly change."""


def config_of(dimension: str, size: int) -> tuple[str, ArtConfig]:
    """Return the folder name and the configuration of a size; the default size is shared."""
    if size == getattr(DEFAULT, NAMES[dimension]):
        return "learned", DEFAULT
    changes: dict[str, Any] = {NAMES[dimension]: size}
    return f"{dimension}{size}", dataclasses.replace(DEFAULT, **changes)


def jobs(setting: Setting) -> Iterable[Job]:
    """List a job for every seed, target and size."""
    sizes = [(d, s) for d, all_ in SIZES.items() for s in (all_[:2] if setting.quick else all_)]
    for seed, target, (dimension, size) in itertools.product(setting.seeds, setting.targets, sizes):
        identity = {"target": target, "dimension": dimension, "size": size, "seed": seed}
        yield Job(identity, partial(_measure, setting, target, dimension, size, seed))


def _measure(
    setting: Setting, target: str, dimension: str, size: int, seed: int, report: ReportProgress
) -> Mapping[str, Any]:
    name, config = config_of(dimension, size)
    model = train_briefly(setting, target, name, config, seed, report)
    return score_parts(setting, target, model)


def accuracies_by_size(
    records: Sequence[Record], target: str, dimension: str, part: str
) -> list[tuple[int, list[float]]]:
    """List sizes with the percent correct of every seed."""
    own = where(records, target=target, dimension=dimension)
    return [
        (size, [r["accuracy"][part] for r in where(own, size=size)])
        for size in sorted({r["size"] for r in own})
    ]


def table(records: Sequence[Record]) -> str:
    """Make one table per dimension."""
    parts = []
    for dimension in distinct(records, "dimension", list(SIZES)):
        own = where(records, dimension=dimension)
        sizes = sorted({r["size"] for r in own})
        body = []
        for target in distinct(own, "target", STUDY.targets):
            cells = []
            for size in sizes:
                values = [
                    mean_deviation(found)
                    for part in ("z", "q", "H")
                    for at, found in accuracies_by_size(own, target, dimension, part)
                    if at == size
                ]
                cells.append(f"{values[0]} [{values[1]}, {values[2]}]" if values else "-")
            body.append([target, *cells])
        parts.append(markdown_table([f"{dimension}, {NAMES[dimension]}", *map(str, sizes)], body))
    return "\n\n".join(parts)


def figure(records: Sequence[Record]) -> Any:
    """Plot the accuracy of z against size: one panel per dimension, one line per target."""
    drawing, panels = panel_row(len(SIZES), 8, 3.6)
    for panel, dimension in zip(panels, SIZES, strict=True):
        for i, target in enumerate(distinct(records, "target", STUDY.targets)):
            points = accuracies_by_size(records, target, dimension, "z")
            sizes, means = [size for size, _ in points], [sum(v) / len(v) for _, v in points]
            label = target if panel is panels[0] else None
            plot_series(panel, i, sizes, means, ls="-", ms=4, lw=1.2, label=label)
        panel.set_xscale("log", base=2)
        panel.set_xticks(SIZES[dimension], list(map(str, SIZES[dimension])))
        panel.axvline(getattr(DEFAULT, NAMES[dimension]), color=figures.MUTED, lw=0.8, ls=":")
        finish_panel(panel, xlabel=f"{NAMES[dimension]} {dimension}")
    panels[0].set_ylabel("percent correct", color=figures.INK)
    legend_above(drawing, 4)
    return drawing


STUDY = Study(
    name="capacity",
    title="Atlas capacity",
    protocol=PROTOCOL,
    keys=("target", "dimension", "size", "seed"),
    targets=("BZR", "PROTEINS", "Cora", "Computers"),
    seeds=(SEED,),
    jobs=jobs,
    table=table,
    figure=figure,
)
