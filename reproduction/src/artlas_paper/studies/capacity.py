"""How transfer depends on the number of bases and of roles: the paper's figure of capacity."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from artlas.method.config import ArtConfig
from artlas_paper import figures
from artlas_paper.protocol import ART_CONFIG, SEED
from artlas_paper.studies.short_training import EPOCHS, accuracies, spread, train
from artlas_paper.studies.study import Job, Report, Setting, Study, ordered, rows
from artlas_paper.transfer.records import Record

DEFAULT = ART_CONFIG
SIZES = {"K": (2, 4, 8, 16, 32), "M": (8, 16, 32, 64)}
NAMES = {"K": "bases", "M": "roles"}
PROTOCOL = f"""\
Leave-one-dataset-out models with K = 2 ... 32 bases at M = 32 roles, and with M = 8 ... 64 roles at
K = 16 bases; the protocol is that of `artlas-paper study components`: {EPOCHS["graph"]} epochs for graphs
and {EPOCHS["node"]} for nodes, 50 episodes at five shots. Values are percent correct of z, in
brackets of q and of H; the paper gives its values in a figure alone, and says that K helps PROTEINS
and leaves the others unchanged, that M is best in between on BZR and falls on PROTEINS, and that
both node-level targets hardly change."""


def config_of(dimension: str, size: int) -> tuple[str, ArtConfig]:
    """The name of a folder of models, and their settings; the default atlas is shared."""
    if size == getattr(DEFAULT, NAMES[dimension]):
        return "learned", DEFAULT
    changes: dict[str, Any] = {NAMES[dimension]: size}
    return f"{dimension}{size}", dataclasses.replace(DEFAULT, **changes)


def jobs(setting: Setting) -> Iterable[Job]:
    """Every size of every target and seed."""
    sizes = [(d, s) for d, all_ in SIZES.items() for s in (all_[:2] if setting.quick else all_)]
    for seed, target, (dimension, size) in itertools.product(setting.seeds, setting.targets, sizes):
        of = {"target": target, "dimension": dimension, "size": size, "seed": seed}
        yield Job(of, partial(_measure, setting, target, dimension, size, seed))


def _measure(
    setting: Setting, target: str, dimension: str, size: int, seed: int, report: Report
) -> Mapping[str, Any]:
    name, config = config_of(dimension, size)
    return accuracies(setting, target, train(setting, target, name, config, seed, report))


def points(
    records: Sequence[Record], target: str, dimension: str, part: str
) -> list[tuple[int, list[float]]]:
    """Sizes, and percent correct by seed at each."""
    own = [r for r in records if r["target"] == target and r["dimension"] == dimension]
    return [
        (size, [r["accuracy"][part] for r in own if r["size"] == size])
        for size in sorted({r["size"] for r in own})
    ]


def table(records: Sequence[Record]) -> str:
    """A table a dimension."""
    made = []
    for dimension in ordered(records, "dimension", list(SIZES)):
        own = [r for r in records if r["dimension"] == dimension]
        sizes = sorted({r["size"] for r in own})
        body = []
        for target in ordered(own, "target", STUDY.targets):
            cells = []
            for size in sizes:
                parts = [
                    spread(found)
                    for part in ("z", "q", "H")
                    for at, found in points(own, target, dimension, part)
                    if at == size
                ]
                cells.append(f"{parts[0]} [{parts[1]}, {parts[2]}]" if parts else "-")
            body.append([target, *cells])
        made.append(rows([f"{dimension}, {NAMES[dimension]}", *map(str, sizes)], body))
    return "\n\n".join(made)


def figure(records: Sequence[Record]) -> Any:
    """Accuracy of z against size: a panel a dimension, a line a target."""
    made = figures.blank(8, 3.6)
    panels = made.subplots(1, len(SIZES), squeeze=False)[0]
    for panel, dimension in zip(panels, SIZES, strict=True):
        for i, target in enumerate(ordered(records, "target", STUDY.targets)):
            found = points(records, target, dimension, "z")
            panel.plot(
                [size for size, _ in found],
                [sum(v) / len(v) for _, v in found],
                figures.MARKERS[i],
                ls="-",
                ms=4,
                lw=1.2,
                color=figures.COLOURS[i],
                label=target if panel is panels[0] else None,
            )
        panel.set_xscale("log", base=2)
        panel.set_xticks(SIZES[dimension], list(map(str, SIZES[dimension])))
        panel.axvline(getattr(DEFAULT, NAMES[dimension]), color=figures.MUTED, lw=0.8, ls=":")
        panel.set_xlabel(f"{NAMES[dimension]} {dimension}", fontsize=9, color=figures.MUTED)
        figures.plain_axes(panel)
    panels[0].set_ylabel("percent correct", color=figures.INK)
    made.legend(ncols=4, fontsize=8, loc="outside upper center", frameon=False)
    return made


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
