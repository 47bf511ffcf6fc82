"""``artlas-paper report``: all results on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artlas.cli.common import error_console, exit_on_errors
from artlas.errors import GraphError
from artlas.files.atomic import atomic
from artlas_paper.report import page


def report(
    results: Annotated[list[Path] | None, typer.Argument(help="Folders of results.")] = None,
    out: Annotated[Path, typer.Option(help="The HTML page to write.")] = Path("report.html"),
) -> None:
    """Write one page with every table and figure of the results.

    Each shows the command and the commits that produced it.
    """
    with exit_on_errors(GraphError, OSError):
        html = page.report(*(results or [Path("results")]))
        with atomic(out) as file:
            file.write(html.encode())
    error_console().print(f"Wrote {out}", markup=False)
