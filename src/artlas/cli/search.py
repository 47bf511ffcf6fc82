"""``artlas search``: the nearest graphs across domains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from artlas import search
from artlas.cli.common import Format, GraphFile, Model, error_console, exit_on_errors
from artlas.errors import GraphError
from artlas.io.reading import read
from artlas.method import checkpoint

app = typer.Typer(help="Find the nearest graphs across domains.", no_args_is_help=True)
Folder = Annotated[Path, typer.Option(help="Folder of the index.")]


@app.command()
def build(
    tables: Annotated[list[Path], typer.Argument(help="Tables that artlas embed wrote.")],
    index: Folder = Path("index"),
) -> None:
    """Build an index of the graphs in one or more tables."""
    with exit_on_errors(GraphError, ImportError, OSError):
        built = search.build(tables, index)
    error_console().print(f"{len(built):,} graphs in {index}")


@app.command()
def query(
    graph: GraphFile,
    index: Folder = Path("index"),
    model: Model = "graph",
    count: Annotated[int, typer.Option(min=1, help="How many neighbours to find.")] = 10,
    format: Format = None,
) -> None:
    """Find the indexed graphs that are nearest to each graph of a file."""
    with exit_on_errors(GraphError, ImportError, ValueError, OSError):
        opened, loaded = search.load(index), checkpoint.load(model)
        search.check_model(opened, loaded, index)
        graphs = read(graph, format, verbose=False)
        results = opened.query(loaded.align(graphs).coordinates, count)
    console = Console(highlight=False)
    for number, hits in enumerate(results):
        title = f"{graph.name}, graph {number}" if len(results) > 1 else graph.name
        table = Table("distance", "source", "graph", "label", title=title)
        for hit in hits:
            label = "" if hit.label is None else str(hit.label)
            table.add_row(f"{hit.distance:.4f}", hit.source, str(hit.index), label)
        console.print(table)
