"""The tables that ``artlas demo`` prints."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from artlas import evaluation
from artlas.datasets import Dataset
from artlas.evaluation.controls import CONTROLS

TRAINED, UNTRAINED = "ART z, trained", "ART z, untrained"


def print_alignment(console: Console, alignment: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print coverage and gain of the unseen graphs before and after training."""
    for name, fits in alignment.items():
        coverage = " -> ".join(f"{fit['coverage']:.4f}" for fit in fits.values())
        gain = " -> ".join(f"{fit['gain']:z.2%}" for fit in fits.values())
        console.print(f"[bold]{name}[/], unseen: coverage {coverage}, gain {gain} by training")
    console.print(
        "[dim]coverage is the loss; gain is the share of the independent coupling's energy\n"
        "that alignment saves; at 0 the couplings do not distinguish nodes.[/]\n"
    )


def print_accuracy(
    console: Console, tests: dict[str, Dataset], accuracy: dict[str, dict[str, evaluation.Accuracy]]
) -> None:
    """Print the accuracy of every representation, and whether it beats the controls."""
    best = {name: max(rows, key=lambda row: rows[row].mean) for name, rows in accuracy.items()}
    cells = []
    for row in next(iter(accuracy.values())):
        cells.append([f"control: {row}" if row in CONTROLS else row])
        for name, rows in accuracy.items():
            text = f"{100 * rows[row].mean:.1f} ± {100 * rows[row].std:.1f}"
            cells[-1].append(f"[bold green]{text}[/]" if row == best[name] else text)
    heads = [f"{name}, {len(data.names)} classes" for name, data in tests.items()]
    title = "5-shot accuracy, %: mean ± deviation over 50 episodes, nearest class mean"
    _print_table(console, title, ["representation", *heads], cells)
    for name, rows in accuracy.items():
        change, error = rows[TRAINED].difference_from(rows[UNTRAINED])
        console.print(
            f"[bold]{name}[/]: {evaluation.compare_with_controls(rows, CONTROLS)} "
            f"Training changed z by {100 * change:+.1f} points ({100 * error:.1f})."
        )
    console.print()


def print_networks(console: Console, networks: dict[str, dict[str, Any]], neighbours: int) -> None:
    """Print each real network's size, fit, and the family of most of its nearest graphs."""
    rows = []
    for name, row in networks.items():
        family, votes = max(row["neighbours"].items(), key=lambda item: item[1])
        sizes = [f"{row['nodes']}", f"{row['edges']}", f"{row['coverage']:.3f}"]
        rows.append([name, *sizes, f"{row['gain']:z.1%}", f"{family} {votes}/{neighbours}"])
    heads = ["network", "nodes", "edges", "coverage", "gain", "nearest family"]
    title = f"Real networks, and their {neighbours} nearest family graphs by z"
    _print_table(console, title, heads, rows)


def _print_table(console: Console, title: str, heads: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for head in heads:
        table.add_column(head, justify="left" if head in (heads[0], "nearest family") else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
