"""``artlas-paper study NAME``: the studies beyond the main tables, one command each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID

from artlas.errors import GraphError
from artlas.training.loop import TrainingError
from artlas_paper.cli.transfer import Root, Runs, Seeds, Targets, numbers
from artlas_paper.datasets.registry import DatasetError, find
from artlas_paper.protocol import ART_CONFIG, SEED, art_training
from artlas_paper.studies import (
    alignment,
    atlas,
    atlas_variants,
    capacity,
    components,
    efficiency,
    perturbation,
    sanity,
    study,
    study_page,
)
from artlas_paper.transfer.folds import Folds, targets_of
from artlas_paper.transfer.records import merge, read

app = typer.Typer(help="Run the studies beyond the main tables.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def forms(
    root: Root = None,
    runs: Runs = Path("results/runs"),
    names: Annotated[str, typer.Option(help='Variants, separated by commas, or "all".')] = "all",
    targets: Targets = "all",
    seeds: Seeds = str(SEED),
    shots: Annotated[str, typer.Option(help="Examples per class, separated by commas.")] = "5,20",
    out: Annotated[Path, typer.Option(help="JSON file of the results.")] = Path(
        "results/forms.json"
    ),
) -> None:
    """Train variants of the atlas briefly, and compare what their roles add."""
    console = Console(highlight=False, soft_wrap=True)
    folds = Folds("graph", root, runs, art_training("graph"), ART_CONFIG)
    wanted = list(atlas_variants.FORMS) if names == "all" else names.split(",")
    unknown = [name for name in wanted if name not in atlas_variants.FORMS]
    if unknown:
        raise typer.BadParameter(
            f"There is no form {unknown[0]!r}: choose from {', '.join(atlas_variants.FORMS)}."
        )
    places = targets_of("graph") if targets == "all" else targets.split(",")
    drawn, counts, failed = numbers(seeds), numbers(shots), 0
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        for name in wanted:
            task = bar.add_task(name, total=atlas_variants.FORMS[name].steps)

            def show(step: int, loss: float, task: TaskID = task) -> None:
                bar.update(task, completed=step, description=f"loss {loss:.4f}")

            try:
                merge(out, atlas_variants.score_on_sources(folds, name, drawn))
                for target in places:
                    records = atlas_variants.compare_on_target(
                        folds, name, target, drawn, counts, show
                    )
                    merge(out, records)
            except KeyboardInterrupt:
                console.print("Stopped by Ctrl-C: finished models and targets are kept.")
                raise typer.Exit(130) from None
            except (GraphError, TrainingError, ValueError) as error:
                failed += 1
                console.print(f"[bold red]{name} failed[/]: {escape(str(error))}")
    made = atlas_variants.table(read(out), counts)
    out.with_suffix(".md").write_text(made)
    console.print(made, markup=False)
    console.print(f"Wrote {out.with_suffix('.md')}", markup=False)
    if failed:
        raise typer.Exit(1)


Out = Annotated[Path, typer.Option(help="Folder of the results: NAME.json, .md, .png and .svg.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Use few graphs of one small target; results in NAME-quick.")
]
Again = Annotated[bool, typer.Option("--again", help="Repeat measurements made by other commits.")]
Default = Annotated[
    str, typer.Option(help='Separated by commas, or "default": those of the paper.')
]


def add(made: study.Study) -> None:
    """Register a study as the command ``artlas-paper study NAME``."""

    @app.command(made.name, help=f"{made.title}.")
    def command(
        root: Root = None,
        runs: Runs = Path("results/runs"),
        targets: Default = "default",
        seeds: Default = "default",
        out: Out = Path("results"),
        quick: Quick = False,
        again: Again = False,
    ) -> None:
        run(made, setting_of(made, root, runs, targets, seeds, quick), out, again)


def setting_of(
    made: study.Study,
    root: Path | None,
    runs: Path,
    targets: str,
    seeds: str,
    quick: bool,
    parts: tuple[str, ...] = (),
) -> study.Setting:
    """Build the setting that a command's options describe."""
    places = made.quick_targets if quick else made.targets
    drawn = made.seeds[:1] if quick else made.seeds
    if targets != "default":
        try:
            places = tuple(
                name if name in made.targets else find(name).name for name in targets.split(",")
            )
        except DatasetError as error:
            raise typer.BadParameter(str(error)) from error
    if seeds != "default":
        drawn = tuple(numbers(seeds))
    return study.Setting(root, runs, places, drawn, quick, parts)


def run(made: study.Study, setting: study.Setting, out: Path, again: bool = False) -> None:
    """Run the measurements without a record, then write and print the report.

    again: also repeat measurements made by other commits.
    """
    console = Console(highlight=False, soft_wrap=True)
    path, failed = study.records_path(made, setting, out), 0
    left, kept = study.pending_jobs(made, setting, path, again)
    if kept:
        makers = ", ".join(sorted({record["commit"] for record in kept}))
        hint = "" if again else " --again repeats measurements of other commits."
        said = f"{len(kept)} of {len(kept) + len(left)} records are kept, of commit {makers}.{hint}"
        console.print(said, markup=False)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        whole, inner = bar.add_task(made.name, total=len(left)), bar.add_task("", total=None)

        def show(done: int, total: int) -> None:
            bar.update(inner, completed=done, total=total)

        for job in left:
            bar.reset(inner, description=job.name, total=None)
            try:
                study.run_job(made, job, path, show)
            except KeyboardInterrupt:
                console.print(f"Stopped by Ctrl-C: finished measurements are kept in {path}.")
                raise typer.Exit(130) from None
            except (GraphError, TrainingError, ValueError) as error:
                failed += 1
                console.print(f"[bold red]{job.name} failed[/]: {escape(str(error))}")
            bar.advance(whole)
    written = study_page.write_report(made, path)
    if written:
        console.print(written[0].read_text(), markup=False)
    for file in written:
        console.print(f"Wrote {file}", markup=False)
    if failed:
        raise typer.Exit(1)


for _study in (atlas.STUDY, components.STUDY, capacity.STUDY, alignment.STUDY, sanity.STUDY):
    add(_study)


@app.command("perturbation", help=f"{perturbation.STUDY.title}.")
def _perturbation(
    root: Root = None,
    runs: Runs = Path("results/runs"),
    targets: Default = "default",
    seeds: Default = "default",
    metric: Annotated[
        str, typer.Option(help=f"Any of {', '.join(perturbation.METRICS)}, by commas, or all.")
    ] = "all",
    out: Out = Path("results"),
    quick: Quick = False,
    again: Again = False,
) -> None:
    wanted = perturbation.METRICS if metric == "all" else tuple(metric.split(","))
    for name in set(wanted) - set(perturbation.METRICS):
        raise typer.BadParameter(
            f"There is no metric {name!r}: choose from {', '.join(perturbation.METRICS)}."
        )
    made = perturbation.STUDY
    run(made, setting_of(made, root, runs, targets, seeds, quick, wanted), out, again)


@app.command("efficiency", help=f"{efficiency.make_study().title}.")
def _efficiency(
    root: Root = None,
    targets: Default = "default",
    cap: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help=f"Seconds of a configuration; {efficiency.CAP:g}, quick {efficiency.QUICK_CAP:g}.",
        ),
    ] = None,
    out: Out = Path("results"),
    quick: Quick = False,
    again: Again = False,
) -> None:
    """Every configuration runs in a process of its own."""
    made = efficiency.make_study(cap)
    run(made, setting_of(made, root, Path("results/runs"), targets, "default", quick), out, again)
