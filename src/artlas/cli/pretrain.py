"""``artlas pretrain``: learn an atlas from unlabelled graphs of several domains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from artlas import datasets, distributed
from artlas.config import ArtConfig
from artlas.datasets.registry import find
from artlas.entrance import GraphError
from artlas.graphs import Graphs
from artlas.ppr import EgoGraphs
from artlas.pretrain import pretrain as train
from artlas.trainer import PretrainConfig, Progress, Sources, TrainingError


def pretrain(
    sources: Annotated[str, typer.Option(help="Datasets, separated by commas.")],
    out: Annotated[Path, typer.Option(help="Folder for the model, its log and its states.")],
    root: Annotated[Path | None, typer.Option(help="Folder of the data.")] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 60,
    batch: Annotated[int, typer.Option(min=1, help="Graphs in a batch.")] = 64,
    rate: Annotated[float, typer.Option(help="Of Adam.")] = 1e-3,
    seed: Annotated[int, typer.Option(min=0, help="Of the weights and the order.")] = 42,
    plateau: Annotated[
        float | None,
        typer.Option(help="End before --epochs when the coverage falls by less than this share."),
    ] = None,
    patience: Annotated[int, typer.Option(min=1, help="Epochs that --plateau compares.")] = 5,
    preset: Annotated[str, typer.Option(help="Settings: paper or released.")] = "paper",
    centres: Annotated[int, typer.Option(min=1, help="Ego-graphs a class, at node level.")] = 300,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run in --out.")] = False,
) -> None:
    """Learn an atlas from the structure of unlabelled graphs of several domains."""
    first = distributed.rank() == 0
    console = Console(stderr=True, highlight=False, quiet=not first)
    presets = {"paper": ArtConfig(seed=seed), "released": ArtConfig.released(seed=seed)}
    if preset not in presets:
        raise typer.BadParameter(f"--preset is paper or released, got {preset!r}.")
    try:
        training = PretrainConfig(
            epochs=epochs, batch=batch, rate=rate, seed=seed, plateau=plateau, patience=patience
        )
        loaded = load_sources(sources.split(","), root, centres, verbose=first)
        with TrainingBar(console) as bar:
            train(loaded, presets[preset], training, out, resume, bar.train)
    except KeyboardInterrupt:
        console.print(f"Stopped by Ctrl-C; what was learnt is kept in {out}: go on with --resume.")
        raise typer.Exit(130) from None
    except (GraphError, TrainingError, FileExistsError, ValueError) as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from error
    console.print(f"The model is in {out}.", soft_wrap=True)


def load_sources(
    names: list[str], root: Path | None, centres: int, verbose: bool = False
) -> Sources:
    """The graphs of every source: as they are, or ego-graphs of the nodes of a network."""
    out: dict[str, Graphs | EgoGraphs] = {}
    for name in names:
        entry = find(name)
        if entry.level == "node":
            out[entry.name] = datasets.load_egos(entry.name, root, "raw", centres, verbose=verbose)
        else:
            out[entry.name] = datasets.load(entry.name, root, "raw", verbose=verbose)
    return out


class TrainingBar(Bar):
    """A bar for a run: what it does, how fast, and the time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"), TimeRemainingColumn(), console=console,
            transient=True, disable=console.quiet or not console.is_terminal,
        )  # fmt: skip
        self._only = self.add_task("making ready", total=None, rate="")

    def train(self, at: Progress) -> None:
        """Move to where training is."""
        self._move(at.step, at.steps, f"epoch {at.epoch}, loss {at.loss:.4f}", "steps")

    def read(self, done: int, count: int) -> None:
        """Move to where a trained model's vectors are."""
        self._move(done, count, "vectors", "graphs")

    def _move(self, done: int, count: int, what: str, unit: str) -> None:
        task = self.tasks[self._only]
        if done < task.completed or count != task.total:  # something else has begun
            self.reset(self._only, total=count, description=what, rate="")
        speed = "-" if task.speed is None else f"{task.speed:.1f}"
        self.update(self._only, completed=done, description=what, rate=f"{speed} {unit}/s, left")
