"""``artlas explain``: one page about one graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artlas.cli.common import Format, GraphFile, Model, error_console, exit_on_errors
from artlas.errors import GraphError, raise_read_error
from artlas.explain.explanation import explain as explain_graph
from artlas.explain.page import render
from artlas.files.atomic import atomic
from artlas.io.reading import read
from artlas.method import checkpoint
from artlas.training import pretraining_coverage


def explain(
    graph: GraphFile,
    out: Annotated[Path, typer.Option(help="The HTML page to write.")] = Path("explained.html"),
    number: Annotated[int, typer.Option(min=0, help="Number of the graph in the file.")] = 0,
    model: Model = "graph",
    format: Format = None,
) -> None:
    """Write a page on one graph: its roles, nearest bases, coverage."""
    with exit_on_errors(GraphError, OSError):
        loaded, graphs = checkpoint.load(model), read(graph, format, verbose=False)
        if number >= len(graphs):
            fix = f"pass --number from 0 to {len(graphs) - 1}"
            raise_read_error(graph, f"there is no graph {number}", f"{len(graphs)}", fix)
        title = graph.name if len(graphs) == 1 else f"{graph.name}, graph {number}"
        explanation = explain_graph(loaded, graphs[number], title, pretraining_coverage.load(model))
        with atomic(out) as file:
            file.write(render(explanation).encode())
    error_console().print(f"Wrote {out}", markup=False)
