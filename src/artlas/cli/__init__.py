"""The command line: ``artlas COMMAND``, one file per command."""

from __future__ import annotations

from typing import Annotated

import typer

import artlas
from artlas.cli.lazy import lazy_app

COMMANDS = {
    "demo": "Train a small atlas on built-in graphs, test it and draw it.",
    "fit": "Fit an estimator to labelled graphs, and compare it with trivial controls.",
    "predict": "Predict labels of graphs by a fitted estimator; rerun to resume.",
    "embed": "Embed graphs into a table of vectors; rerun to resume.",
    "info": "Print a model's settings, sources and model card.",
    "explain": "Write a page on one graph: its roles, nearest bases, coverage.",
    "certify": "Check the paper's bounds on given graphs.",
    "pretrain": "Learn an atlas from unlabelled graphs, one domain per file.",
    "search": "Find the nearest graphs across domains.",
}

app = lazy_app(
    "artlas",
    "A graph foundation model that anyone can run: one vector for any graph.",
    "artlas.cli",
    COMMANDS,
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"artlas {artlas.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    app()
