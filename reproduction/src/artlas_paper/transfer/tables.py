"""Tables made from records: means and standard errors by target, averages, paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from artlas_paper import figures
from artlas_paper.transfer.folds import PAPER, Level, targets_of
from artlas_paper.transfer.records import Record

Row = tuple[str, str]  # method and variant
# Shown beside the others, and left out of averages: one leaks its label, the other has not the
# paper's features.
ASIDE = ("COLORS-3", "ogbn-arxiv-structural")


def targets_in(records: Sequence[Record], level: Level) -> list[str]:
    """The targets of records, in the order of the paper's tables."""
    order = targets_of(level)
    found = {record["target"] for record in records}
    return sorted(found, key=lambda name: order.index(name.removesuffix("-structural")))


def rows_of(records: Sequence[Record]) -> list[Row]:
    """What was evaluated: the model's variants, then the rest."""
    order = {"art": 0, "control": 2}
    found = {(r["method"], r["variant"]) for r in records}
    return sorted(found, key=lambda row: (order.get(row[0], 1), row))


def accuracies(
    records: Sequence[Record], row: Row, target: str, shots: int | str
) -> NDArray[np.float64] | None:
    """Percent correct in every episode, averaged over the seeds; None where there is nothing."""
    found = [
        r["accuracies"]
        for r in records
        if (r["method"], r["variant"]) == row and r["target"] == target and r["shots"] == shots
    ]
    return 100 * np.mean(np.array(found, dtype=np.float64), axis=0) if found else None


def table(records: Sequence[Record], targets: Sequence[str], shots: int | str = 5) -> str:
    """A Markdown table: mean (standard error over episodes) by target, and the average.

    The average leaves out what stands ASIDE, unless there is nothing else.
    """
    counted = averaged(targets)
    lines = ["| | " + " | ".join(targets) + f" | average of {len(counted)} |"]
    lines.append("|---" * (len(targets) + 2) + "|")
    if shots == 5:
        values = [PAPER.get(target.removesuffix("-clean")) for target in targets]
        cells = ["-" if value is None else f"{value:.2f}" for value in values]
        known = [
            PAPER[t.removesuffix("-clean")] for t in counted if t.removesuffix("-clean") in PAPER
        ]
        cells.append(f"{np.mean(known):.2f}" if len(known) == len(counted) else "-")
        lines.append("| paper | " + " | ".join(cells) + " |")
    for row in rows_of(records):
        cells, means = [], []
        for target in targets:
            found = accuracies(records, row, target, shots)
            if found is None:
                cells.append("-")
                continue
            error = found.std() / len(found) ** 0.5
            if target in counted:
                means.append(found.mean())
            cells.append(f"{found.mean():.2f} ({error:.2f})")
        average = f"{np.mean(means):.2f}" if len(means) == len(counted) else "-"
        lines.append(f"| {row[0]} {row[1]} | " + " | ".join(cells) + f" | {average} |")
    return "\n".join(lines)


def averaged(targets: Sequence[str]) -> list[str]:
    """The targets that an average is taken over."""
    return [target for target in targets if target not in ASIDE] or list(targets)


PAIRS: list[tuple[Row, Row]] = [
    (("art", "plus"), ("art", "paper")),
    (("art", "plus"), ("art", "released")),
    (("art", "plus"), ("control", "plus-no-roles")),
    (("art", "plus"), ("art", "plus-untrained")),
    (("art", "plus"), ("control", "plus-independent")),
    (("art", "plus"), ("control", "plus-random-roles")),
    (("art", "paper"), ("control", "sum")),
]


def report(records: Sequence[Record], targets: Sequence[str], shots: Sequence[int | str]) -> str:
    """Every table in Markdown: accuracies, and paired differences over the targets they share."""
    parts = []
    for count in shots:
        here = {r["target"] for r in records if r["shots"] == count}
        names = [name for name in targets if name in here]
        own = [r for r in records if r["shots"] == count]
        if not names:
            continue
        seeds = sorted({r["seed"] for r in own if r["seed"] is not None})
        commits = sorted({r["commit"] for r in own})
        parts.append(
            f"## {count} examples a class\n\nPercent correct (standard error over episodes); "
            f"seeds {seeds}, commits {', '.join(commits)}.\n\n{table(own, names, count)}"
        )
        counted, lines = averaged(names), []
        for first, second in PAIRS:
            try:
                mean, error = difference(own, first, second, counted, count)
            except ValueError:
                continue
            lines.append(f"| {' '.join(first)} - {' '.join(second)} | {mean:+.2f} ({error:.2f}) |")
        if lines:
            head = f"| paired difference, mean of {', '.join(counted)} | points |\n|---|---|"
            parts.append("\n".join([head, *lines]))
    return "\n\n".join(parts)


def difference(
    records: Sequence[Record], first: Row, second: Row, targets: Sequence[str], shots: int | str = 5
) -> tuple[float, float]:
    """The mean difference of two rows over targets, paired by episode, and its standard error."""
    parts = []
    for target in targets:
        a, b = (accuracies(records, row, target, shots) for row in (first, second))
        if a is None or b is None:
            raise ValueError(f"There is no pair of {first} and {second} on {target}.")
        parts.append(a - b)
    mean = float(np.mean([part.mean() for part in parts]))
    variance = sum((part.std() / len(part) ** 0.5) ** 2 for part in parts)
    return mean, float(variance**0.5 / len(parts))


def summary(
    records: Sequence[Record], row: Row, target: str, shots: int | str = 5
) -> tuple[float, float] | None:
    """Mean and standard error over episodes of a row on a target."""
    found = accuracies(records, row, target, shots)
    return None if found is None else (float(found.mean()), float(found.std() / len(found) ** 0.5))


def draw(
    records: Sequence[Record], targets: Sequence[str], rows: Sequence[Row], path: Path
) -> None:
    """The figure of a task level at 5 shots, the paper's values beside ours."""
    lines: dict[str, list[tuple[float, float] | None]] = {
        " ".join(row): [summary(records, row, target) for target in targets] for row in rows
    }
    lines["paper"] = [(PAPER[name], 0.0) if name in PAPER else None for name in targets]
    figures.draw_transfer(targets, lines, path)


def draw_shots(
    records: Sequence[Record], targets: Sequence[str], rows: Sequence[Row], path: Path
) -> None:
    """The figure of accuracy against shots."""
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
