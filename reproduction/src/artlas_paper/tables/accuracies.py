"""Look up accuracies in records: by row and target, averaged over seeds, paired by episode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from artlas_paper.protocol import SHOTS, Level
from artlas_paper.transfer import beyond
from artlas_paper.transfer.folds import targets_of
from artlas_paper.transfer.records import Record

Row = tuple[str, str]  # method and variant
# Targets that are shown and left out of averages: one leaks its label, the other lacks the paper's
# features.
NOT_AVERAGED = ("COLORS-3", "ogbn-arxiv-structural")


def targets_in(records: Sequence[Record], level: Level) -> list[str]:
    """Return the targets of records, in the order of the paper's tables."""
    order = targets_of(level)
    targets = {record["target"] for record in records}
    return sorted(targets, key=lambda name: order.index(name.removesuffix("-structural")))


def averaged(targets: Sequence[str]) -> list[str]:
    """Return the targets that an average is taken over; all of them if none is left."""
    return [target for target in targets if target not in NOT_AVERAGED] or list(targets)


def rows_of(records: Sequence[Record]) -> list[Row]:
    """Return the rows of records: SCGFM-ART's variants first, controls, rows beyond the paper."""
    order = {"art": 0, "control": 2, beyond.METHOD: 3}
    rows = {(r["method"], r["variant"]) for r in records}
    return sorted(rows, key=lambda row: (order.get(row[0], 1), row))


def accuracies(
    records: Sequence[Record], row: Row, target: str, shots: int | str = SHOTS
) -> NDArray[np.float64] | None:
    """Return the percent correct in every episode, averaged over seeds; None without records."""
    by_seed = [
        r["accuracies"]
        for r in records
        if (r["method"], r["variant"]) == row and r["target"] == target and r["shots"] == shots
    ]
    return 100 * np.mean(np.array(by_seed, dtype=np.float64), axis=0) if by_seed else None


def standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of the mean over episodes."""
    return float(values.std() / len(values) ** 0.5)


def summary(
    records: Sequence[Record], row: Row, target: str, shots: int | str = SHOTS
) -> tuple[float, float] | None:
    """Return mean and standard error over episodes of a row on a target; None without records."""
    values = accuracies(records, row, target, shots)
    return None if values is None else (float(values.mean()), standard_error(values))


def difference(
    records: Sequence[Record],
    first: Row,
    second: Row,
    targets: Sequence[str],
    shots: int | str = SHOTS,
) -> tuple[float, float]:
    """Return the mean difference of two rows, paired by episode, and its standard error."""
    pairs = []
    for target in targets:
        a, b = (accuracies(records, row, target, shots) for row in (first, second))
        if a is None or b is None:
            raise ValueError(f"There is no pair of {first} and {second} on {target}.")
        pairs.append(a - b)
    mean = float(np.mean([pair.mean() for pair in pairs]))
    variance = sum(standard_error(pair) ** 2 for pair in pairs)
    return mean, float(variance**0.5 / len(pairs))


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""

    def line(cells: Sequence[str]) -> str:
        return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)

    return "\n".join([line(head), "|---" * len(head) + "|", *map(line, body)])
