"""``artlas predict``: graph files to one table of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artlas.cli.common import Format, Inputs
from artlas.cli.table_runs import Address, Budget, Engine, Quiet, Table, Workers, write_table
from artlas.embedding.table_run import BUDGET, TableRun
from artlas.learning.prediction import Prediction


def predict(
    model: Annotated[Path, typer.Argument(help="The folder that artlas fit wrote.")],
    inputs: Inputs,
    out: Table,
    format: Format = None,
    budget: Budget = BUDGET >> 20,
    engine: Engine = "local",
    workers: Workers = 0,
    address: Address = None,
    quiet: Quiet = False,
) -> None:
    """Predict labels of graphs by a fitted estimator; rerun to resume.

    Every graph has a row: source, index, label if known, prediction, p_CLASS, novelty, outside.

    If a run is interrupted, the same command continues where it stopped.

    Inputs that cannot be read are reported and left out; the exit code is then 1.
    """
    write_table(
        inputs,
        format,
        lambda files: TableRun(out, files, Prediction.load(model), budget << 20),
        (engine, workers, address),
        quiet,
    )
