"""``artlas embed``: graph files to one table of vectors."""

from __future__ import annotations

from typing import Annotated

import typer

from artlas.cli.common import Format, Inputs, Model
from artlas.cli.table_runs import Address, Budget, Engine, Quiet, Table, Workers, write_table
from artlas.embedding.run import Run
from artlas.embedding.table_run import BUDGET
from artlas.method import checkpoint
from artlas.method.representations import DEFAULT, REPRESENTATIONS


def embed(
    inputs: Inputs,
    out: Table,
    model: Model = "graph",
    representation: Annotated[
        str, typer.Option(help=f"Form of the vectors: {', '.join(REPRESENTATIONS)}.")
    ] = DEFAULT,
    format: Format = None,
    budget: Budget = BUDGET >> 20,
    engine: Engine = "local",
    workers: Workers = 0,
    address: Address = None,
    quiet: Quiet = False,
) -> None:
    """Embed graphs into a table of vectors; rerun to resume.

    If a run is interrupted, the same command continues where it stopped.

    Inputs that cannot be read are reported and left out; the exit code is then 1.
    """
    write_table(
        inputs,
        format,
        lambda files: Run(out, files, checkpoint.load(model), representation, budget << 20),
        (engine, workers, address),
        quiet,
    )
