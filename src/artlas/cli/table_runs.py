"""What the commands that write a table share: inputs, engines, progress, and the outcome."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from artlas import kernels
from artlas.cli.common import error_console, exit_on_errors
from artlas.embedding.pieces import Input
from artlas.embedding.ray_engine import Cluster, ClusterError
from artlas.embedding.table_run import Progress as At
from artlas.embedding.table_run import Summary, TableRun
from artlas.errors import GraphError

Table = Annotated[Path, typer.Option(help="Table to write: .parquet, .npz or .csv.")]
Budget = Annotated[
    int, typer.Option(min=1, help="Working memory of one batch, in MB; each thread has one.")
]
Engine = Annotated[
    Literal["local", "ray"], typer.Option(help="Run in this process or on a Ray cluster.")
]
Workers = Annotated[
    int, typer.Option(min=0, help="With ray: number of one-CPU workers; 0 uses every CPU.")
]
Address = Annotated[
    str | None,
    typer.Option(help="With ray: cluster to use; default: RAY_ADDRESS, else a new local one."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]


def write_table(
    inputs: list[str],
    format: str | None,
    begin: Callable[[list[Input]], TableRun],
    engine: tuple[str, int, str | None],
    quiet: bool,
) -> None:
    """Complete the run that ``begin`` makes of the inputs, and report what it did.

    Exits with 1 if an input was left out.

    engine: local or ray, with the number of workers and the address of the cluster.
    """
    console = error_console()
    stopped = "Stopped by Ctrl-C. Finished work is kept; rerun the command to resume."
    with (
        tempfile.TemporaryDirectory(prefix="artlas-") as folder,
        exit_on_errors(GraphError, ClusterError, ValueError, ImportError, interrupted=stopped),
    ):
        try:
            kind, workers, address = engine
            if kind == "local" and (workers or address):
                raise ValueError("--workers and --address need a cluster: add --engine ray.")
            cluster = Cluster(workers, address) if kind == "ray" else None
            run = begin(find_inputs(inputs, format, Path(folder)))
            outcome = _complete(run, cluster, console, quiet)
        except OSError as error:
            fix = "Finished work is kept; free some space, then rerun the command to resume."
            console.print(f"Writing failed: {error}. {fix}", style="red", markup=False)
            raise typer.Exit(1) from error
    for text in outcome.failures.values():
        console.print(f"left out: {text}", style="red", markup=False)
    if not quiet and outcome.graphs:
        console.print(f"{outcome.graphs:,} graphs in {run.out}", markup=False)
        for said in run.work.describe(outcome.totals):
            console.print(said, markup=False)
    if outcome.failures:
        raise typer.Exit(1)


def find_inputs(names: list[str], format: str | None, folder: Path) -> list[Input]:
    """List the files to read: a folder that is not itself a dataset stands for its files.

    Standard input is copied into ``folder`` and identified by its hash, as the copy's name and date
    differ each time.
    """
    inputs = []
    for name in names:
        place = Path(name)
        if name == "-":
            path, digest = folder / "standard-input", hashlib.sha256()
            with open(path, "wb") as out:
                while block := sys.stdin.buffer.read(1 << 20):
                    digest.update(block)
                    out.write(block)
            inputs.append(Input(path, "-", format, digest.hexdigest()))
        elif place.is_dir() and not any(place.glob("*_A.txt")):
            files = sorted(p for p in place.iterdir() if p.is_file() and not p.name.startswith("."))
            inputs += [Input(path, f"{place.name}/{path.name}", format) for path in files]
        else:
            inputs.append(Input(place, name, format))
    return inputs


class _AlignedShare(ProgressColumn):
    """Show the share of the planned work that is done; it also moves within a large graph."""

    def __init__(self, run: TableRun) -> None:
        super().__init__()
        self.run, self.start = run, kernels.done() or 0

    def render(self, task: Task) -> Text:
        done = kernels.done()
        if done is None or not self.run.planned:
            return Text("")
        return Text(f"{min(1.0, (done - self.start) / self.run.planned):.0%} aligned")


def _complete(run: TableRun, cluster: Cluster | None, console: Console, quiet: bool) -> Summary:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(20),
        TextColumn("{task.fields[speed]}"),
        _AlignedShare(run),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("reading", total=1.0, speed="", left="")

        def show(at: At) -> None:
            passed = bar.tasks[task].elapsed or 1e-9
            seconds = at.seconds_left(passed)
            left = "" if seconds is None else f"{timedelta(seconds=round(seconds))} left"
            speed = f"{at.graphs:,} graphs, {at.graphs / passed:,.0f} per second"
            bar.update(task, completed=at.share, description=at.name, speed=speed, left=left)

        return run.complete(show) if cluster is None else cluster.complete(run, show)
