"""``artlas-paper data``: list the datasets, download and prepare them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from artlas.errors import GraphError
from artlas_paper.datasets import REGISTRY, load_egos, prepare
from artlas_paper.datasets.prepare import state
from artlas_paper.datasets.raw import data_root
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import CENTRES

app = typer.Typer(help="List the datasets and prepare them.", no_args_is_help=True)

Root = Annotated[
    Path | None,
    typer.Option(help="Folder of the datasets; else $ARTLAS_DATA, else artlas/data in the cache."),
]
_STYLE = {"packed": "green", "built in": "green", "absent": "dim"}


@app.command("list")
def list_datasets(root: Root = None) -> None:
    """Show every dataset: its size, whether it is here, and its licence."""
    console, top = Console(highlight=False), data_root(root)
    table = Table(box=SIMPLE_HEAD, padding=0)
    for head in ("name", "level", "role", "size", "classes", "features", "state"):
        right = head in ("size", "classes", "features")
        table.add_column(head, justify="right" if right else "left", no_wrap=True)
    table.add_column("licence")
    for entry in REGISTRY.values():
        availability, numbers = state(entry, top), entry.statistics
        size = numbers.graphs if entry.level == "graph" else numbers.nodes
        table.add_row(
            entry.name,
            entry.level,
            entry.role,
            f"{size:,}",
            f"{numbers.classes}",
            f"{numbers.features:,}",
            f"[{_STYLE.get(availability, 'yellow')}]{availability}[/]",
            "none stated" if entry.licence.startswith("no licence") else entry.licence,
        )
    console.print(table)
    console.print(
        "Sizes count graphs at graph level and nodes at node level. Models are pretrained\n"
        "on sources only; each source is also a target of a model of the other sources.",
        style="dim",
    )
    console.print(f"In {top}", markup=False, soft_wrap=True)


@app.command("prepare")
def prepare_datasets(
    names: Annotated[list[str], typer.Argument(help='Names of datasets, or "all".')],
    root: Root = None,
    download: Annotated[
        bool, typer.Option("--download/--no-download", help="Download missing files.")
    ] = True,
    centres: Annotated[
        str | None,
        typer.Option(
            help=f'Find and keep ego-graphs too: centres a class (paper: {CENTRES}), or "all".'
        ),
    ] = None,
) -> None:
    """Prepare datasets: read them, compare their sizes with the paper's, and pack them."""
    per_class = _per_class(centres)
    console, top = Console(highlight=False, soft_wrap=True), data_root(root)
    failed = 0
    try:
        for name in _expand(names):
            try:
                action, counts = _prepare(console, name, top, download)
                console.print(f"[bold]{action}[/]: {escape(counts)}")
                if centres is not None and find(name).level == "node":
                    console.print(f"  {_find_egos(console, name, top, per_class)}")
            except (GraphError, ImportError) as error:
                failed += 1
                console.print(f"[bold red]{escape(name)}[/]: {escape(str(error))}")
    except KeyboardInterrupt:
        console.print("Stopped by Ctrl-C: packed datasets are whole, nothing half-written is left.")
        raise typer.Exit(130) from None
    if failed:
        raise typer.Exit(1)


def _per_class(centres: str | None) -> int | None:
    if centres is None or centres.lower() == "all":
        return None
    if not centres.isdecimal() or int(centres) < 1:
        raise typer.BadParameter(f'--centres is a number of nodes or "all", got {centres!r}.')
    return int(centres)


def _find_egos(console: Console, name: str, top: Path, per_class: int | None) -> str:
    """Extract the ego-graphs of a dataset, unless that is done, and summarise them."""
    columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn())
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task("ego-graphs", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        egos = load_egos(name, top, "raw", per_class, progress=show, verbose=False)
    return egos.summary


def _expand(names: list[str]) -> list[str]:
    """Drop repeated names, and replace "all" by every dataset that is not built in."""
    everything = [entry.name for entry in REGISTRY.values() if entry.role != "built-in"]
    expanded: dict[str, str] = {}
    for name in names:
        for one in everything if name.lower() == "all" else [name]:
            expanded.setdefault(one.lower(), one)
    return list(expanded.values())


def _prepare(console: Console, name: str, top: Path, download: bool) -> tuple[str, str]:
    """Prepare one dataset; say what was done and how its counts compare."""
    columns = (TextColumn("{task.description}"), BarColumn(30), DownloadColumn())
    entry = find(name)
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(entry.name, total=None)

        def show(what: str, done: int, total: int | None) -> None:
            bar.update(task, description=what, completed=done, total=total)

        prepared = prepare(entry.name, top, download, show)
    return f"{prepared.name}[/], [dim]{prepared.done}", prepared.check
