"""``artlas certify``: the paper's bounds, checked on given graphs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from artlas.certify import HOLDS, TOLERANCE, VIOLATED, Certificate
from artlas.certify import certify as certify_graphs
from artlas.cli.common import Format, Inputs, Model, error_console, exit_on_errors
from artlas.cli.table_runs import find_inputs
from artlas.errors import GraphError, raise_graph_error
from artlas.files import stored
from artlas.graphs.collection import Graphs
from artlas.io.reading import read
from artlas.method import checkpoint

NOTE = (
    "Each interval contains the true value. The solver finds local optima, so it gives the upper "
    "ends of e*, m*, d and the radius; Mémoli's third lower bound gives the lower ends. eta "
    "decreases as e* grows: its lower end comes from the solver, its upper end from the bound."
)
ENDS = "{:.3f} to {:.3f}"
COLUMNS = {  # head and format of each key of a graph's record
    "nodes": ("nodes", "{:,}"),
    "edges": ("edges", "{:,}"),
    "eta": ("eta", ENDS),
    "delta": ("Delta", ENDS),
    "residual": ("residual", "{:.0e}"),
    "nearest": ("m*", ENDS),
    "coverage": ("coverage l", "{:.4f}"),
    "ceiling": ("m*+Delta+tau log K", ENDS),
}


def certify(
    inputs: Inputs,
    model: Model = "graph",
    most: Annotated[int, typer.Option(min=1, help="Check at most this many graphs.")] = 64,
    pairs: Annotated[int, typer.Option(min=0, help="Check at most this many pairs.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed that draws graphs and pairs.")] = 0,
    out: Annotated[Path | None, typer.Option(help="JSON file for all values.")] = None,
    format: Format = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict only.")] = False,
) -> None:
    """Check the paper's bounds on given graphs.

    They concern couplings, coverage and the fidelity of coordinates.

    The exit code is 2 if one is violated.
    """
    errors = error_console()
    stopped = "Stopped by Ctrl-C; nothing was written."
    with exit_on_errors(GraphError, ImportError, RuntimeError, OSError, interrupted=stopped):
        loaded = checkpoint.load(model)
        names, graphs = _read(inputs, format)
        hidden = quiet or not errors.is_terminal
        with Progress(console=errors, transient=True, disable=hidden) as bar:
            task = bar.add_task("solving", total=None)

            def show(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            certificate = certify_graphs(loaded, graphs, names, most, pairs, seed, show)
        if out is not None:
            stored.write_json(out, certificate.to_dict())
    _print(certificate, quiet)
    if certificate.verdict == VIOLATED:
        raise typer.Exit(2)


def _read(inputs: list[str], format: str | None) -> tuple[list[str], Graphs]:
    """Read the structure of all input graphs, and name each."""
    names, parts = [], []
    with tempfile.TemporaryDirectory(prefix="artlas-") as folder:
        for entry in find_inputs(inputs, format, Path(folder)):
            part = read(entry.path, entry.format, verbose=False)
            single = len(part) == 1
            names += [entry.name if single else f"{entry.name} {g}" for g in range(len(part))]
            parts.append(part.with_features(None).with_labels(None))
    if not parts:
        fix = "pass graph files, or folders that contain some"
        raise_graph_error("there is no graph", ", ".join(inputs), fix)
    return names, Graphs.concat(parts)


def _print(certificate: Certificate, quiet: bool) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    if not quiet:
        _print_tables(console, certificate)
    for s in certificate.statements:
        if s.violated:
            text = f"{s.name}, {s.formula}: violated for {', '.join(s.violated)}"
            console.print(text, style="red", markup=False, soft_wrap=True)
    verdict, total = certificate.verdict, len(certificate.statements)
    failed = [s.name for s in certificate.statements if s.verdict == verdict]
    rest = f"{total - len(failed)} of {total} statements hold for every graph and pair"
    if verdict == VIOLATED:
        rest = "this must not happen: the couplings, the energies or the solver are broken"
    text = f"Verdict: {verdict}: {', '.join(failed)}; {rest}."
    if verdict == HOLDS:
        text = f"Verdict: holds. All {total} statements hold for every graph and pair."
    console.print(text, markup=False, soft_wrap=True)


def _print_tables(console: Console, certificate: Certificate) -> None:
    table = Table(title="per graph")
    table.add_column("graph", overflow="fold")
    for head, _ in COLUMNS.values():
        table.add_column(head, justify="right", no_wrap=True)
    for graph in certificate.to_dict()["graphs"]:
        values = ((graph[key], text) for key, (_, text) in COLUMNS.items())
        cells = (text.format(*np.atleast_1d(value)) for value, text in values)
        table.add_row(escape(graph["name"]), *cells)
    console.print(table)
    table = Table("statement", "formula", title="statements, by graphs or pairs")
    for head in ("holds", "not decided", "violated", "least slack"):
        table.add_column(head, justify="right")
    for s in certificate.statements:
        counts = (str(count) for count in (s.holds, s.undecided, len(s.violated)))
        table.add_row(s.name, s.formula, *counts, "-" if s.slack is None else f"{s.slack:.1e}")
    console.print(table)
    checked, (low, high) = len(certificate.names), certificate.covering_radius
    console.print(
        f"Covering radius of the atlas over these {checked} graphs: [{low:.4f}, {high:.4f}].\n"
        f"{checked} of {certificate.graphs_given} graphs, {len(certificate.pairs)} pairs, "
        f"seed {certificate.seed}; tolerance {TOLERANCE:g}, single precision.\n{NOTE}",
        markup=False,
    )
