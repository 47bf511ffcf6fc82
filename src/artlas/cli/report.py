"""``artlas report``: all results on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from artlas import report as reporting
from artlas.entrance import GraphError
from artlas.formats.files import atomic


def report(
    results: Annotated[Path, typer.Argument(help="Folder of results.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
) -> None:
    """Write a page with every table and figure, the command and the commits under each."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        page = reporting.report(results)
        with atomic(out) as file:
            file.write(page.encode())
    except (GraphError, OSError) as error:
        console.print(str(error), style="red", markup=False)
        raise typer.Exit(1) from error
    console.print(f"Wrote {out}", markup=False)
