"""``artlas explain``: one page about one graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from artlas.errors import GraphError
from artlas.explain import page as explaining
from artlas.files.atomic import atomic
from artlas.io.reading import read
from artlas.method import checkpoint
from artlas.training import pretraining_coverage


def explain(
    graph: Annotated[Path, typer.Argument(help="A file of graphs.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("explained.html"),
    number: Annotated[int, typer.Option(min=0, help="Which graph of the file.")] = 0,
    model: Annotated[str, typer.Option(help="graph, node, or a folder of weights.")] = "graph",
    format: Annotated[str | None, typer.Option(help="Of the file, if nothing tells.")] = None,
) -> None:
    """Write a page that shows a graph's roles, its nearest bases, and how it is covered."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        known, graphs = checkpoint.load(model), read(graph, format, verbose=False)
        if number >= len(graphs):
            raise GraphError(
                f"{graph}: there is no graph {number}; got {len(graphs)}. To fix this, pass "
                f"--number from 0 to {len(graphs) - 1}."
            )
        title = graph.name if len(graphs) == 1 else f"{graph.name}, graph {number}"
        made = explaining.explain(known, graphs[number], title, pretraining_coverage.load(model))
        with atomic(out) as file:
            file.write(explaining.page(made, graphs[number]).encode())
    except (GraphError, OSError) as error:
        console.print(str(error), style="red", markup=False)
        raise typer.Exit(1) from error
    console.print(f"Wrote {out}", markup=False)
