"""What a study is told on the command line."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.accuracy.rows import SHORT

Value = TypeVar("Value")


@dataclass(frozen=True)
class Options:
    """The data, which datasets and rows to measure, and where to.

    folds: the most folds of trained networks; busy: beside other processes too; again: measure
    even what is there.
    """

    data: Path
    out: Path
    command: str
    only: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    folds: int = 10
    again: bool = False
    busy: bool = False

    def chosen(self, rows: Mapping[str, Value]) -> dict[str, Value]:
        """Return the rows that were named, by their short names or in full, or all."""
        wanted = [SHORT.get(name, name) for name in self.rows]
        _check(wanted, [*rows], "row")
        return {name: value for name, value in rows.items() if not wanted or name in wanted}

    def chosen_datasets(self, names: Sequence[str]) -> list[str]:
        """Return the datasets that were named, or all."""
        _check(self.only, names, "dataset")
        return [name for name in names if not self.only or name in self.only]


def _check(wanted: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in wanted:
        if name not in known:
            sys.exit(f"There is no {what} {name!r}. To fix this: choose among {', '.join(known)}.")
