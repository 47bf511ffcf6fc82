"""The command line of the reproduction: ``artlas-paper COMMAND``, one file per command."""

from __future__ import annotations

import typer

from artlas_paper.cli import data
from artlas_paper.cli.pretrain import pretrain
from artlas_paper.cli.report import report
from artlas_paper.cli.study import app as study_app
from artlas_paper.cli.transfer import app as transfer_app

app = typer.Typer(
    name="artlas-paper",
    help="Reproduce the experiment of the SCGFM-ART paper.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command()(report)
app.command()(pretrain)
app.add_typer(transfer_app, name="transfer")
app.add_typer(study_app, name="study")
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line."""
    app()
