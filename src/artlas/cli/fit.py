"""``artlas fit``: labelled graphs to an estimator in a folder."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from artlas.cli import fit_check
from artlas.cli.common import Format, Inputs, error_console, exit_on_errors
from artlas.cli.labels import Labels, find_labels
from artlas.cli.table_runs import find_inputs
from artlas.embedding.pieces import Input
from artlas.errors import GraphError, raise_graph_error, raise_read_error
from artlas.graphs.collection import Graphs
from artlas.io.reading import read
from artlas.learning.graph_estimators import GraphClassifier, GraphRegressor

MANY = 50  # whole numbers of more values than these are no classes, if most graphs have their own
SHOWN = 8  # classes
STOPPED = "Stopped by Ctrl-C; nothing was written."
UNCHECKED = "Stopped by Ctrl-C; the estimator is in {}, but was not compared with controls."


def fit(
    inputs: Inputs,
    out: Annotated[Path, typer.Option(help="Folder for the fitted estimator.")],
    labels: Annotated[
        Path | None,
        typer.Option(help="Table of labels, in order or by id; default: those of the graphs."),
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(help="Column of labels in that table, or in the graphs' own.")
    ] = None,
    regress: Annotated[
        bool | None, typer.Option("--regress/--classify", help="Default: as the labels look.")
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Let all classes weigh the same.")
    ] = False,
    ridge: Annotated[
        float | None, typer.Option(help="Ridge; default: the best by leave-one-out.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds and samples.")] = 0,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Compare with controls by cross-validation.")
    ] = True,
    format: Format = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print errors only, and compare with nothing.")
    ] = False,
) -> None:
    """Fit an estimator to labelled graphs, and compare it with trivial controls.

    Labels stand in a table, in the order of the graphs or by id, or in the graphs' own files.

    artlas predict uses the estimator.
    """
    errors = error_console(quiet)
    with (
        exit_on_errors(GraphError, ImportError, ValueError, OSError, interrupted=STOPPED),
        errors.status("reading") as status,
    ):
        _check_folder(out)
        with tempfile.TemporaryDirectory(prefix="artlas-") as folder:
            parts = _read(find_inputs(inputs, format, Path(folder)))
            found = find_labels(parts, labels, label_column)
        graphs = Graphs.concat(part.with_labels(None) for _, part in parts)
        regressing = _is_regression(found.values) if regress is None else regress
        if regressing and balanced:
            fix = "leave out --balanced, or add --classify"
            raise_graph_error("only classes can be balanced", "labels that are numbers", fix)
        if regressing and len(np.unique(found.values)) == 1:
            got = f"{found.values[0]} for every graph"
            raise_graph_error("there is nothing to predict", got, "add graphs with other numbers")
        settings: dict[str, Any] = {"ridge": ridge, "random_state": seed}
        if balanced:
            settings["class_weight"] = "balanced"
        estimator = (GraphRegressor if regressing else GraphClassifier)(**settings)
        status.update(f"fitting to {len(graphs):,} graphs")
        estimator.fit(graphs, found.values)
        estimator.save(out)
    console = Console(highlight=False, soft_wrap=True, quiet=quiet)
    console.print(_describe(found, regressing, regress is None), markup=False)
    console.print(f"\n{estimator.report_}", markup=False)
    if check and not quiet:
        with exit_on_errors(GraphError, ValueError, interrupted=UNCHECKED.format(out)):
            _print(console, _checked(estimator, graphs, found.values, errors))
    errors.print(f"The estimator is in {out}.", markup=False)


def _check_folder(out: Path) -> None:
    """Refuse a folder that cannot be written to, before anything is computed."""
    fix = "pass --out with a folder that you may write to"
    if out.exists() and not out.is_dir():
        raise_read_error(out, "this is no folder", "a file", fix)
    existing = next(place for place in (out, *out.absolute().parents) if place.is_dir())
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise_read_error(out, "nothing can be written there", f"{error.strerror}", fix)


def _read(files: list[Input]) -> list[tuple[Input, Graphs]]:
    parts = list[tuple[Input, Graphs]]()
    for entry in files:
        graphs = read(entry.path, entry.format, verbose=False)
        if parts and graphs.num_features != parts[0][1].num_features:
            those = f"those of {parts[0][0].name} have {parts[0][1].num_features}"
            wrong = f"its nodes have {graphs.num_features} features, {those}"
            fix = "give all graphs the same features"
            raise_read_error(entry.path, wrong, f"{len(graphs):,} graphs", fix)
        parts.append((entry, graphs))
    if not parts:
        fix = "pass graph files, or folders that contain some"
        raise_graph_error("there is no graph", "no input", fix)
    return parts


def _is_regression(values: NDArray[Any]) -> bool:
    """Tell whether labels are numbers to predict: fractions, or whole ones that hardly repeat."""
    if values.dtype.kind == "f":
        return True
    different = len(np.unique(values))
    return values.dtype.kind == "i" and different > MANY and 2 * different > len(values)


def _describe(labels: Labels, regressing: bool, decided: bool) -> str:
    values, count = labels.values, len(labels.values)
    if regressing:
        spread = f"{values.min():.4g} to {values.max():.4g}"
        by = ", so this is regression (--classify takes them as classes)" if decided else ""
        return f"{count:,} graphs; labels: {labels.origin}, {spread}{by}"
    classes, counts = np.unique(values, return_counts=True)
    few = zip(classes[:SHOWN].tolist(), counts[:SHOWN].tolist(), strict=True)
    shown = ", ".join(f"{name} ({n:,})" for name, n in few)
    more = f" and {len(classes) - SHOWN} more" if len(classes) > SHOWN else ""
    return f"{count:,} graphs; labels: {labels.origin}; {len(classes)} classes: {shown}{more}"


def _checked(
    estimator: fit_check.Estimator, graphs: Graphs, labels: NDArray[Any], errors: Console
) -> fit_check.Check:
    columns = TextColumn("comparing with controls"), BarColumn(20), MofNCompleteColumn()
    hidden = not errors.is_terminal
    with Progress(*columns, console=errors, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return fit_check.check(estimator, graphs, labels, show)


def _print(console: Console, found: fit_check.Check) -> None:
    unit = "" if found.measure == "R²" else " %"
    table = Table("", box=SIMPLE_HEAD)
    table.add_column(f"{found.measure}{unit}", justify="right", no_wrap=True)
    table.add_column("against the estimator", justify="right", no_wrap=True)
    for name, quality, ahead in fit_check.rows_to_show(found):
        title = name if name == fit_check.OURS else f"control: {name}"
        table.add_row(title, quality, ahead, style="bold" if name == fit_check.OURS else "")
    console.print(table)
    console.print(fit_check.note(found), markup=False)
    console.print(fit_check.verdict(found), markup=False, style="bold")
