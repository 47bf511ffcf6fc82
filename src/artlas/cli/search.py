"""``artlas search``: the nearest graphs across domains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from artlas import search
from artlas.errors import GraphError
from artlas.io.reading import read
from artlas.method import checkpoint

app = typer.Typer(help="The nearest graphs across domains.", no_args_is_help=True)
Folder = Annotated[Path, typer.Option(help="Folder of the index.")]


@app.command()
def build(
    tables: Annotated[list[Path], typer.Argument(help="Tables that artlas embed wrote.")],
    index: Folder = Path("index"),
) -> None:
    """Make an index of the graphs of some tables."""
    try:
        made = search.build(tables, index)
    except (GraphError, ImportError, OSError) as error:
        _fail(error)
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"{len(made):,} graphs in {index}")


@app.command()
def query(
    graph: Annotated[Path, typer.Argument(help="A file of graphs.")],
    index: Folder = Path("index"),
    model: Annotated[str, typer.Option(help="graph, node, or a folder of weights.")] = "graph",
    count: Annotated[int, typer.Option(min=1, help="How many to find.")] = 10,
    format: Annotated[str | None, typer.Option(help="Of the file, if nothing tells.")] = None,
) -> None:
    """Find the graphs of an index that are nearest to those of a file."""
    try:
        there, known = search.load(index), checkpoint.load(model)
        search.check_model(there, known, index)
        graphs = read(graph, format, verbose=False)
        found = there.query(known.align(graphs).coordinates, count)
    except (GraphError, ImportError, ValueError, OSError) as error:
        _fail(error)
    console = Console(highlight=False)
    for number, hits in enumerate(found):
        title = f"{graph.name}, graph {number}" if len(found) > 1 else graph.name
        table = Table("distance", "source", "graph", "label", title=title)
        for hit in hits:
            label = "" if hit.label is None else str(hit.label)
            table.add_row(f"{hit.distance:.4f}", hit.source, str(hit.index), label)
        console.print(table)


def _fail(error: Exception) -> None:
    Console(stderr=True, soft_wrap=True).print(str(error), style="red", markup=False)
    raise typer.Exit(1) from error
