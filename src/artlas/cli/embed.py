"""``artlas embed``: files of graphs to one table of vectors; ``artlas info``: what a model is."""

from __future__ import annotations

import functools
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
from artlas.embedding.pieces import Input
from artlas.embedding.ray_engine import Cluster
from artlas.embedding.ray_session import ClusterError
from artlas.embedding.run import BUDGET, Run, Summary
from artlas.embedding.run import Progress as At
from artlas.errors import GraphError
from artlas.files import stored
from artlas.method import checkpoint

Inputs = Annotated[
    list[str], typer.Argument(help="Files of graphs, or folders of them; - reads standard input.")
]
Model = Annotated[str, typer.Option(help="graph, node, or a folder of weights.")]


def embed(
    inputs: Inputs,
    out: Annotated[Path, typer.Option(help="Where to: .parquet, .npz or .csv.")],
    model: Model = "graph",
    representation: Annotated[
        str, typer.Option(help="plus, paper, coordinates, features or plus-no-roles.")
    ] = "plus",
    format: Annotated[
        str | None, typer.Option(help="Format of the inputs, where neither name nor content tells.")
    ] = None,
    budget: Annotated[
        int,
        typer.Option(
            min=1, help="Megabytes of a batch's working memory; there is one for each thread."
        ),
    ] = (BUDGET >> 20),
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="This process, or the workers of a Ray cluster.")
    ] = "local",
    workers: Annotated[
        int, typer.Option(min=0, help="With ray: processes of one CPU; 0 for as many as CPUs.")
    ] = 0,
    address: Annotated[
        str | None,
        typer.Option(
            help="With ray: where it runs; by default RAY_ADDRESS, else one is started here."
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Say nothing but what went wrong.")
    ] = False,
) -> None:
    """Embed every graph of the inputs; a run that was broken off goes on where it stopped."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="artlas-") as folder:
        try:
            cluster = _cluster(engine, workers, address)
            found = [entry for name in inputs for entry in entries(name, format, Path(folder))]
            run = Run(out, found, checkpoint.load(model), representation, budget << 20)
            work = run.embed if cluster is None else functools.partial(cluster.embed, run)
            outcome = _work(work, run, console, quiet)
        except KeyboardInterrupt:
            console.print("Stopped by Ctrl-C; what is done is kept: the same command goes on.")
            raise typer.Exit(130) from None
        except OSError as error:
            console.print(
                f"Writing failed: {error}. What is done is kept: make room, then the same command "
                "goes on.",
                style="red",
                markup=False,
            )
            raise typer.Exit(1) from error
        except (GraphError, ClusterError, ValueError, ImportError) as error:
            console.print(str(error), style="red", markup=False)
            raise typer.Exit(1) from error
    for text in outcome.failures.values():
        console.print(f"left out: {text}", style="red", markup=False)
    if not quiet and outcome.graphs:
        console.print(f"{outcome.graphs:,} graphs in {out}", markup=False)
    if outcome.failures:
        raise typer.Exit(1)


def entries(name: str, format: str | None, folder: Path) -> list[Input]:
    """An input, or the files of a folder that is no dataset itself, in order."""
    if name == "-":
        path, digest = folder / "standard-input", hashlib.sha256()
        with open(path, "wb") as out:
            while block := sys.stdin.buffer.read(1 << 20):
                digest.update(block)
                out.write(block)
        return [Input(path, "-", format, digest.hexdigest())]
    place = Path(name)
    if place.is_dir() and not any(place.glob("*_A.txt")):
        files = sorted(p for p in place.iterdir() if p.is_file() and not p.name.startswith("."))
        return [Input(path, f"{place.name}/{path.name}", format) for path in files]
    return [Input(place, name, format)]


def _cluster(engine: str, workers: int, address: str | None) -> Cluster | None:
    if engine == "ray":
        return Cluster(workers, address)
    if workers or address:
        raise ValueError("--workers and --address are for a cluster: add --engine ray.")
    return None


class _Aligned(ProgressColumn):
    """How much of what was read so far is aligned: it moves within a graph, too."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run, self.before = run, kernels.done() or 0

    def render(self, task: Task) -> Text:
        done = kernels.done()
        if done is None or not self.run.planned:
            return Text("")
        return Text(f"{min(1.0, (done - self.before) / self.run.planned):.0%} of it aligned")


def _work(
    work: Callable[[Callable[[At], None]], Summary], run: Run, console: Console, quiet: bool
) -> Summary:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(20),
        TextColumn("{task.fields[graphs]:,} graphs, {task.fields[rate]:,.0f} a second"),
        _Aligned(run),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("reading", total=1.0, graphs=0, rate=0.0, left="")

        def show(at: At) -> None:
            passed = bar.tasks[task].elapsed or 1e-9
            left = at.seconds_left(passed)
            bar.update(
                task,
                completed=at.share,
                description=at.name,
                graphs=at.graphs,
                rate=at.graphs / passed,
                left="" if left is None else f"{timedelta(seconds=round(left))} left",
            )

        return work(show)


def info(
    model: Annotated[str, typer.Argument(help="graph, node, or a folder of weights.")],
) -> None:
    """Say what a model is: its settings, its weights, and its card where it has one."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        made = checkpoint.load(model)
    except GraphError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from error
    folder = checkpoint.folder_of(model)
    settings = stored.read_json(folder / checkpoint.CONFIG)
    numbers = sum(value.numel() for value in made.parameters())
    console.print(f"{numbers:,} weights, sha256 of their values {checkpoint.weights_hash(made)}")
    for title, values in settings.items():
        console.print(f"\n{title}:")
        for name, value in values.items():
            shown = value["graphs"] if title == "sources" else value
            console.print(f"  {name}: {shown}{' graphs' if title == 'sources' else ''}")
    if (card := checkpoint.card(model)) is not None:
        console.print("\ncard:")
        for name, value in card.items():
            parts = value.items() if isinstance(value, dict) else [("", value)]
            lines = value if isinstance(value, list) else [f"{k} {v}".strip() for k, v in parts]
            console.print(f"  {name}: " + "\n    ".join(lines), markup=False)
