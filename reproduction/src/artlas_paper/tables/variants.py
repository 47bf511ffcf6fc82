"""Tables and figures of SCGFM-ART's variants and the controls, beside the paper's values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from artlas_paper import figures
from artlas_paper.protocol import SHOTS
from artlas_paper.published_results import ART_ACCURACY
from artlas_paper.tables.accuracies import (
    Row,
    averaged,
    difference,
    markdown_table,
    rows_of,
    summary,
)
from artlas_paper.transfer import beyond
from artlas_paper.transfer.records import Record

PAIRS: list[tuple[Row, Row]] = [
    (("art", "plus"), ("art", "paper")),
    (("art", "plus"), ("art", "released")),
    (("art", "plus"), ("control", "plus-no-roles")),
    (("art", "plus"), ("art", "plus-untrained")),
    (("art", "plus"), ("control", "plus-independent")),
    (("art", "plus"), ("control", "plus-random-roles")),
    (("art", "paper"), ("control", "sum")),
    ((beyond.METHOD, "blocks"), ("art", "plus")),
    ((beyond.METHOD, "blocks-kernel"), ("art", "plus")),
]


def table(records: Sequence[Record], targets: Sequence[str], shots: int | str = SHOTS) -> str:
    """Return a Markdown table: mean (standard error over episodes) by target, and the average."""
    counted = averaged(targets)
    body = [_published(targets, counted)] if shots == SHOTS else []
    for row in rows_of(records):
        values = {target: summary(records, row, target, shots) for target in targets}
        cells = ["-" if v is None else f"{v[0]:.2f} ({v[1]:.2f})" for v in values.values()]
        means = [value[0] for target in counted if (value := values[target]) is not None]
        average = f"{np.mean(means):.2f}" if len(means) == len(counted) else "-"
        body.append([" ".join(row), *cells, average])
    return markdown_table(["", *targets, f"average of {len(counted)}"], body)


def _published(targets: Sequence[str], counted: Sequence[str]) -> list[str]:
    """Return the row of the paper's values; COLORS-3-clean is compared with COLORS-3."""
    values = {target: ART_ACCURACY.get(target.removesuffix("-clean")) for target in targets}
    cells = ["-" if value is None else f"{value:.2f}" for value in values.values()]
    known = [value for target in counted if (value := values[target]) is not None]
    return ["paper", *cells, f"{np.mean(known):.2f}" if len(known) == len(counted) else "-"]


def report(records: Sequence[Record], targets: Sequence[str], shots: Sequence[int | str]) -> str:
    """Return in Markdown, for every number of shots, the table and the paired differences."""
    parts = []
    for count in shots:
        own = [r for r in records if r["shots"] == count]
        here = {r["target"] for r in own}
        names = [name for name in targets if name in here]
        if not names:
            continue
        seeds = sorted({r["seed"] for r in own if r["seed"] is not None})
        commits = sorted({r["commit"] for r in own})
        parts.append(
            f"## {count} examples a class\n\nPercent correct (standard error over episodes); "
            f"seeds {seeds}, commits {', '.join(commits)}.\n\n{table(own, names, count)}"
        )
        counted, body = averaged(names), []
        for first, second in PAIRS:
            try:
                mean, error = difference(own, first, second, counted, count)
            except ValueError:
                continue
            body.append([f"{' '.join(first)} - {' '.join(second)}", f"{mean:+.2f} ({error:.2f})"])
        if body:
            head = [f"paired difference, mean of {', '.join(counted)}", "points"]
            parts.append(markdown_table(head, body))
    return "\n\n".join(parts)


def draw(
    records: Sequence[Record], targets: Sequence[str], rows: Sequence[Row], path: Path
) -> None:
    """Draw the figure of a task level at the paper's shots, its values beside ours."""
    lines: dict[str, list[tuple[float, float] | None]] = {
        " ".join(row): [summary(records, row, target) for target in targets] for row in rows
    }
    lines["paper"] = [
        (ART_ACCURACY[name], 0.0) if name in ART_ACCURACY else None for name in targets
    ]
    figures.draw_transfer(targets, lines, path)


def draw_shots(
    records: Sequence[Record], targets: Sequence[str], rows: Sequence[Row], path: Path
) -> None:
    """Draw the figure of accuracy against shots, a panel a target."""
    counts = sorted({r["shots"] for r in records}, key=lambda s: (isinstance(s, str), s))
    panels: dict[str, dict[str, list[tuple[str, float, float]]]] = {}
    for target in targets:
        panels[target] = {}
        for row in rows:
            points = [(str(n), summary(records, row, target, n)) for n in counts]
            panels[target][" ".join(row)] = [
                (n, *value) for n, value in points if value is not None
            ]
    figures.draw_shots(panels, path)
