"""The command line: ``artlas COMMAND``, one file per command."""

from __future__ import annotations

from typing import Annotated

import typer

import artlas
from artlas.cli import search
from artlas.cli.certify import certify
from artlas.cli.demo import demo
from artlas.cli.embed import embed, info
from artlas.cli.explain import explain
from artlas.cli.pretrain import pretrain

app = typer.Typer(
    name="artlas",
    help="A graph foundation model that anyone can run: one vector for any graph.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command()(demo)
app.command()(embed)
app.command()(info)
app.command()(explain)
app.command()(certify)
app.command()(pretrain)
app.add_typer(search.app, name="search")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"artlas {artlas.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    app()
