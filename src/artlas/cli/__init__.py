"""The command line: ``artlas COMMAND``, one file per command."""

from __future__ import annotations

from typing import Annotated

import typer

import artlas
from artlas.cli import data, search
from artlas.cli.certify import certify
from artlas.cli.demo import demo
from artlas.cli.embed import embed, info
from artlas.cli.explain import explain
from artlas.cli.pretrain import pretrain
from artlas.cli.report import report
from artlas.cli.study import app as study_app
from artlas.cli.transfer import app as transfer_app

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
app.command()(report)
app.command()(pretrain)
app.add_typer(transfer_app, name="transfer")
app.add_typer(study_app, name="study")
app.add_typer(search.app, name="search")
app.add_typer(data.app, name="data")


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
