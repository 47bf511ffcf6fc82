"""Arguments and error reporting that the commands share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

Inputs = Annotated[
    list[str], typer.Argument(help="Graph files, or folders of them; - reads standard input.")
]
GraphFile = Annotated[Path, typer.Argument(help="A file of one or more graphs.")]
MODEL_HELP = "A shipped model (graph, node) or a folder of weights."
Model = Annotated[str, typer.Option(help=MODEL_HELP)]
Format = Annotated[
    str | None, typer.Option(help="File format, where neither name nor content shows it.")
]


def error_console(quiet: bool = False) -> Console:
    """Make the console for messages, so that standard output holds results only."""
    return Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)


@contextmanager
def exit_on_errors(
    *errors: type[Exception], interrupted: str | None = None, quiet: bool = False
) -> Iterator[None]:
    """Print one of these errors in one line and exit with 1.

    On Ctrl-C, print ``interrupted`` and exit with 130. ``quiet`` exits without a message.
    """
    try:
        yield
    except errors as error:
        error_console(quiet).print(str(error), style="red", markup=False)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        if interrupted is None:
            raise
        error_console(quiet).print(interrupted, markup=False)
        raise typer.Exit(130) from None
