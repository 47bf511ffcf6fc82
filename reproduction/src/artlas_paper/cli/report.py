"""``artlas-paper report``: all results on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from artlas.errors import GraphError
from artlas.files.atomic import atomic
from artlas_paper.report import page as reporting


def report(
    results: Annotated[list[Path] | None, typer.Argument(help="Folders of results.")] = None,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
) -> None:
    """Write a page with every table and figure, the command and the commits under each."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        page = reporting.report(*(results or [Path("results")]))
        with atomic(out) as file:
            file.write(page.encode())
    except (GraphError, OSError) as error:
        console.print(str(error), style="red", markup=False)
        raise typer.Exit(1) from error
    console.print(f"Wrote {out}", markup=False)
