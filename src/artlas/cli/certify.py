"""``artlas certify``: the paper's bounds, checked on given graphs."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from artlas import certify as certifying
from artlas.cli.embed import Inputs, Model, entries
from artlas.errors import GraphError
from artlas.files.atomic import atomic
from artlas.graphs.collection import Graphs
from artlas.io.reading import read
from artlas.method import checkpoint

NOTE = (
    "Figures are intervals that have the true value in them. The solver finds local optima, so its "
    "e*, m*, d and radius are upper ends; lower ends are Mémoli's third lower bound. eta falls as "
    "e* grows: its lower end is the solver's, its upper end that of the lower bound."
)


def certify(
    inputs: Inputs,
    model: Model = "graph",
    most: Annotated[int, typer.Option(min=1, help="Graphs that are taken, by the seed.")] = 64,
    pairs: Annotated[int, typer.Option(min=0, help="Pairs of them that are taken.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="What graphs and pairs are drawn by.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Where all figures go to, as JSON.")] = None,
    format: Annotated[str | None, typer.Option(help="Of the files, if nothing tells.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say the verdict alone.")] = False,
) -> None:
    """Check couplings, coverage and fidelity of coordinates; exit code 2 if a bound is violated."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        known = checkpoint.load(model)
        names, graphs = _read(inputs, format)
        hidden = quiet or not errors.is_terminal
        with Progress(console=errors, transient=True, disable=hidden) as bar:
            task = bar.add_task("solving", total=None)

            def show(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            made = certifying.certify(known, graphs, names, most, pairs, seed, show)
        if out is not None:
            with atomic(out) as file:
                file.write((json.dumps(made.to_dict(), indent=1) + "\n").encode())
    except KeyboardInterrupt:
        errors.print("Stopped by Ctrl-C; nothing was written.")
        raise typer.Exit(130) from None
    except (GraphError, ImportError, RuntimeError, OSError) as error:
        errors.print(str(error), style="red", markup=False)
        raise typer.Exit(1) from error
    _print(made, quiet)
    if made.verdict == certifying.VIOLATED:
        raise typer.Exit(2)


def _read(inputs: list[str], format: str | None) -> tuple[list[str], Graphs]:
    """The graphs of all inputs, structure alone, and what each is called."""
    names, parts = [], []
    with tempfile.TemporaryDirectory(prefix="artlas-") as folder:
        for entry in [entry for name in inputs for entry in entries(name, format, Path(folder))]:
            part = read(entry.path, entry.format, verbose=False)
            alone = len(part) == 1
            names += [entry.name if alone else f"{entry.name} {g}" for g in range(len(part))]
            parts.append(part.with_features(None).with_labels(None))
    if not parts:
        raise GraphError(
            f"there is no graph; got {', '.join(inputs)}. To fix this, pass files of graphs, or "
            "folders that have some."
        )
    return names, Graphs.concat(parts)


def _print(made: certifying.Certificate, quiet: bool) -> None:
    wide = None if sys.stdout.isatty() else 140  # a file has no width
    console = Console(highlight=False, width=wide)
    if not quiet:
        console.print(_graphs(made))
        console.print(_statements(made))
        low, high = made.radius
        console.print(
            f"Covering radius of the atlas over these {len(made.names)} graphs: "
            f"[{low:.4f}, {high:.4f}].",
            markup=False,
        )
        console.print(
            f"{len(made.names)} of {made.given} graphs, {len(made.pairs)} pairs, seed {made.seed}; "
            f"up to {certifying.TOLERANCE:g}, single precision.\n{NOTE}"
        )
    for statement in made.statements:
        if statement.violated:
            console.print(
                f"{statement.name}, {statement.formula}: violated for "
                f"{', '.join(statement.violated)}",
                style="red",
                markup=False,
                soft_wrap=True,
            )
    console.print(_verdict(made), markup=False, soft_wrap=True)


def _verdict(made: certifying.Certificate) -> str:
    total = len(made.statements)
    if made.verdict == certifying.HOLDS:
        return f"Verdict: holds. All {total} statements hold for every graph and pair."
    bad = [s.name for s in made.statements if s.verdict == made.verdict]
    rest = f"{total - len(bad)} of {total} statements hold for every graph and pair"
    if made.verdict == certifying.VIOLATED:
        rest = "this must not happen, so couplings, energies or solver are broken"
    return f"Verdict: {made.verdict}: {', '.join(bad)}; {rest}."


def _graphs(made: certifying.Certificate) -> Table:
    heads = ("nodes", "edges", "eta", "Delta", "residual", "m*", "coverage l")
    table = Table(title="per graph")
    table.add_column("graph", overflow="fold")
    for head in (*heads, "m*+Delta+tau log K"):
        table.add_column(head, justify="right", no_wrap=True)
    for g, name in enumerate(made.names):
        nodes, edges = made.sizes[g].tolist()
        table.add_row(
            escape(name),
            f"{nodes:,}",
            f"{edges:,}",
            _shown(made.eta, g),
            _shown(made.excess, g),
            f"{made.residuals[g]:.0e}",
            _shown(made.nearest, g),
            f"{made.coverage[g]:.4f}",
            _shown(made.ceiling, g),
        )
    return table


def _shown(interval: certifying.Interval, at: int) -> str:
    return f"{interval.low[at]:.3f} to {interval.high[at]:.3f}"


def _statements(made: certifying.Certificate) -> Table:
    table = Table("statement", "formula", title="statements, by graphs or pairs")
    for head in ("holds", "not decided", "violated", "least slack"):
        table.add_column(head, justify="right")
    for s in made.statements:
        slack = "-" if s.slack is None else f"{s.slack:.1e}"
        table.add_row(
            s.name, s.formula, str(s.holds), str(s.undecided), str(len(s.violated)), slack
        )
    return table
