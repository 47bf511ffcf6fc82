"""Markdown tables of accuracies, and the head of a page that says how it was made."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch

from benchmarks.accuracy.records import Record


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table, its first column to the left and the others to the right."""
    lines = [f"| {' | '.join(head)} |", f"|---{'|---:' * (len(head) - 1)}|"]
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"A row has {len(row)} cells, and the head {len(head)}.")
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def bold_best(cells: Mapping[str, str], values: Mapping[str, float]) -> dict[str, str]:
    """Set the cells of the highest value in bold, by row; rows without a value are left alone."""
    if not values:
        return dict(cells)
    best = max(values.values())
    return {
        row: f"**{cell}**" if row in values and values[row] >= best - 5e-4 else cell
        for row, cell in cells.items()
    }


def page(title: str, command: str, records: Sequence[Record], sections: Iterable[str]) -> str:
    """Put a page together: what made it, and its sections."""
    commits, threads = set(), set()
    for record in records:
        for settings in record.rows.values():
            for results in settings.values():
                commits.add(results["commit"])
                threads.add(str(results["threads"]))
    made = (
        f"`{command}`; commits {', '.join(f'`{each}`' for each in sorted(commits))} (a plus: with "
        f"uncommitted changes); {' or '.join(sorted(threads))} threads of {_processor()}, torch "
        f"{torch.__version__}. Every row's own commit, seconds and accuracy of every split are in "
        f"`benchmarks/results/accuracy/`."
    )
    return "\n\n".join([f"# {title}", made, *sections]) + "\n"


def write(path: Path, text: str) -> None:
    """Write a page atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)
    print(path)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        return f"{os.cpu_count()} x {names[0]}"
    except (OSError, IndexError):
        return platform.processor() or platform.machine()
