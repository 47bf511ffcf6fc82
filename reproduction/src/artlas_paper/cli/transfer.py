"""``artlas-paper transfer graph`` and ``transfer node``: the paper's two main tables."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from artlas.cli.progress import TrainingBar
from artlas.errors import GraphError
from artlas.training.loop import TrainingError
from artlas_paper.methods.registry import METHODS, find
from artlas_paper.protocol import (
    ART_CONFIG,
    ART_EPOCHS,
    NODE_PLATEAU,
    SEED,
    SHOTS,
    Level,
    art_training,
)
from artlas_paper.tables import all_methods
from artlas_paper.tables import variants as variant_tables
from artlas_paper.tables.accuracies import rows_of, targets_in
from artlas_paper.transfer.art import evaluate_art
from artlas_paper.transfer.baseline_folds import BaselineFolds
from artlas_paper.transfer.baselines import evaluate_baseline
from artlas_paper.transfer.episodes import Shots as ShotCount
from artlas_paper.transfer.folds import Folds, targets_of
from artlas_paper.transfer.records import merge, read

app = typer.Typer(help="Evaluate few-shot transfer to unseen datasets.", no_args_is_help=True)

Root = Annotated[Path | None, typer.Option("--root", "--data", help="Folder of the datasets.")]
Runs = Annotated[
    Path, typer.Option(help="Folder of models and embeddings; its subfolder quick/ with --quick.")
]
Targets = Annotated[str, typer.Option(help='Datasets, separated by commas, or "all".')]
Seeds = Annotated[str, typer.Option(help="Seeds of pretraining, separated by commas.")]
Shots = Annotated[str, typer.Option(help="Examples per class, separated by commas; all: 5 folds.")]
Epochs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=f"Of pretraining; if not given, ART's are {ART_EPOCHS}, a baseline's the paper's.",
    ),
]
Out = Annotated[Path, typer.Option(help="JSON file of the results; NAME-quick with --quick.")]
Wl = Annotated[bool, typer.Option("--wl", help="Also evaluate GraKeL's WL kernel, same heads.")]
Only = Annotated[str, typer.Option(help='Variants and other rows, separated by commas, or "all".')]
Methods = Annotated[
    str, typer.Option(help='art, baselines such as gin,graphmae, separated by commas, or "all".')
]
Quick = Annotated[bool, typer.Option("--quick", help="Train one epoch and use small targets only.")]


@app.command()
def graph(
    root: Root = None,
    runs: Runs = Path("results/runs"),
    targets: Targets = "all",
    seeds: Seeds = str(SEED),
    shots: Shots = str(SHOTS),
    epochs: Epochs = None,
    out: Out = Path("results/transfer-graph.json"),
    quick: Quick = False,
    wl: Wl = False,
    variants: Only = "all",
    methods: Methods = "art",
) -> None:
    """Classify graphs of unseen datasets from a few examples, leaving one dataset out."""
    epochs = 1 if quick else epochs
    training = art_training("graph", epochs or ART_EPOCHS)
    targets = "BZR,PROTEINS" if quick and targets == "all" else targets
    runs, out = _places(runs, out, quick)
    folds = Folds("graph", root, runs, training, ART_CONFIG)
    baselines = BaselineFolds(folds, epochs)
    _transfer(baselines, _methods(methods), targets, seeds, shots, out, variants, wl)


@app.command()
def node(
    root: Root = None,
    runs: Runs = Path("results/runs"),
    targets: Targets = "all",
    seeds: Seeds = str(SEED),
    shots: Shots = str(SHOTS),
    epochs: Epochs = None,
    plateau: Annotated[
        float | None,
        typer.Option(
            help="End when an epoch lowers the loss by less than this share; if not given, "
            f"{NODE_PLATEAU} for ART, and a baseline has all its epochs."
        ),
    ] = None,
    out: Out = Path("results/transfer-node.json"),
    quick: Quick = False,
    variants: Only = "all",
    methods: Methods = "art",
) -> None:
    """Classify nodes of unseen networks from a few examples, via their ego-graphs."""
    epochs = 1 if quick else epochs
    rule = NODE_PLATEAU if plateau is None else plateau
    training = art_training("node", epochs or ART_EPOCHS, rule)
    targets = "Cora" if quick and targets == "all" else targets
    runs, out = _places(runs, out, quick)
    folds = Folds("node", root, runs, training, ART_CONFIG)
    baselines = BaselineFolds(folds, epochs, plateau)
    _transfer(baselines, _methods(methods), targets, seeds, shots, out, variants)


def _places(runs: Path, out: Path, quick: bool) -> tuple[Path, Path]:
    """Keep the models and results of a quick run apart from those of the tables."""
    return (runs / "quick", out.with_stem(f"{out.stem}-quick")) if quick else (runs, out)


def _methods(text: str) -> list[str]:
    """Parse the names of methods; "all" starts with ART."""
    if text == "all":
        return ["art", *METHODS]
    return [part if part == "art" else find(part).name for part in text.lower().split(",")]


def _transfer(
    baselines: BaselineFolds,
    methods: list[str],
    targets: str,
    seeds: str,
    shots: str,
    out: Path,
    variants: str,
    wl: bool = False,
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    folds = baselines.folds
    level = folds.level
    names = targets_of(level) if targets == "all" else targets.split(",")
    only = None if variants == "all" else variants.split(",")
    counts, failed = _shots(shots), 0
    for method, name in itertools.product(methods, names):
        try:
            with TrainingBar(console) as bar:
                wanted = name, numbers(seeds), counts
                if method == "art":
                    made = list(evaluate_art(folds, *wanted, bar.show_training, wl, only))
                else:
                    made = list(
                        evaluate_baseline(
                            baselines, method, *wanted, bar.show_training, bar.show_embedding
                        )
                    )
            merge(out, made)
            best = max(made, key=lambda record: record["mean"])
            console.print(
                f"[bold]{name}[/]: best is {best['method']} {best['variant']}, "
                f"{best['mean']:.2f} ({best['stderr']:.2f})"
            )
        except KeyboardInterrupt:
            console.print("Stopped by Ctrl-C: finished targets and checkpoints are kept.")
            raise typer.Exit(130) from None
        except (GraphError, TrainingError, ImportError, ValueError) as error:
            failed += 1
            console.print(f"[bold red]{name} failed[/]: {escape(str(error))}")
    for file in _write_report(level, out):
        console.print(f"Wrote {file}", markup=False)
    records = read(out)
    own = [r for r in records if r["method"] not in METHODS]
    console.print(variant_tables.report(own, targets_in(records, level), counts), markup=False)
    if any(method != "art" for method in methods):
        console.print(all_methods.report(records, level), markup=False)
    if failed:
        raise typer.Exit(1)


SHOWN = [
    ("art", "paper"),
    ("art", "released"),
    ("art", "plus"),
    ("control", "plus-no-roles"),
    ("control", "log-sum"),
    ("control", "sum"),
    ("control", "ppr-mean"),
    ("control", "mean"),
    ("wl", "kernel"),
]


def _write_report(level: Level, out: Path) -> list[Path]:
    """Write the tables and figures of all records in a file beside it, and list them."""
    records = read(out)
    names = targets_in(records, level)
    counts = sorted({r["shots"] for r in records}, key=lambda n: (isinstance(n, str), n))
    rows = [row for row in SHOWN if row in rows_of(records)]
    if not names:
        return []
    written = [out.with_suffix(".md"), out.with_suffix(".png")]
    own = [r for r in records if r["method"] not in METHODS]
    parts = [all_methods.report(records, level), variant_tables.report(own, names, counts)]
    written[0].write_text("\n\n".join(part for part in parts if part) + "\n")
    variant_tables.draw(records, names, rows, written[1])
    several = [
        name for name in names if len({r["shots"] for r in records if r["target"] == name}) > 2
    ]
    if several:
        written.append(out.with_name(f"{out.stem}-shots.png"))
        variant_tables.draw_shots(records, several, rows, written[-1])
    return written


def _shots(text: str) -> list[ShotCount]:
    shots: list[ShotCount] = []
    for part in text.split(","):
        shots += ["all"] if part.strip() == "all" else numbers(part)
    return shots


def numbers(text: str) -> list[int]:
    """Parse whole numbers separated by commas."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"whole numbers separated by commas are needed, got {text!r}.")
    return [int(part) for part in parts]
