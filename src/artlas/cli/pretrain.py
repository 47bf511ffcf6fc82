"""``artlas pretrain``: learn an atlas from unlabelled graphs of several domains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from artlas.cli.common import error_console, exit_on_errors
from artlas.cli.progress import TrainingBar
from artlas.errors import GraphError
from artlas.graphs import Graphs
from artlas.io.reading import read
from artlas.method.config import ArtConfig
from artlas.nodes import EgoGraphs, ego_graphs
from artlas.training import distributed
from artlas.training.config import PretrainConfig
from artlas.training.coverage import pretrain as train
from artlas.training.loop import TrainingError
from artlas.training.sources import Sources

Out = Annotated[Path, typer.Option(help="Folder for the model, its log and its checkpoints.")]
Epochs = Annotated[int, typer.Option(min=1, help="Passes over the graphs.")]
Batch = Annotated[int, typer.Option(min=1, help="Graphs per batch.")]
Rate = Annotated[float, typer.Option(help="Learning rate of Adam.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the weights and of the order of graphs.")]
Plateau = Annotated[
    float | None, typer.Option(help="Stop early when coverage falls by less than this fraction.")
]
Patience = Annotated[int, typer.Option(min=1, help="Number of epochs that --plateau compares.")]
Preset = Annotated[str, typer.Option(help="Model settings: paper or released.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")]


def pretrain(
    inputs: Annotated[list[Path], typer.Argument(help="Graph files, one domain each.")],
    out: Out,
    epochs: Epochs = 60,
    batch: Batch = 64,
    rate: Rate = 1e-3,
    seed: Seed = 42,
    plateau: Plateau = None,
    patience: Patience = 5,
    preset: Preset = "paper",
    centres: Annotated[
        int, typer.Option(min=1, help="Ego-graphs to draw from a file that holds one network.")
    ] = 300,
    resume: Resume = False,
) -> None:
    """Learn an atlas from unlabelled graphs, one domain per file."""
    settings: dict[str, Any] = {"epochs": epochs, "batch": batch, "rate": rate, "seed": seed}
    settings |= {"plateau": plateau, "patience": patience}
    run(lambda verbose: load_files(inputs, centres, seed, verbose), settings, preset, out, resume)


def load_files(paths: list[Path], centres: int, seed: int, verbose: bool) -> Sources:
    """Read every file as one domain; a single network becomes ego-graphs of random nodes."""
    sources: dict[str, Graphs | EgoGraphs] = {}
    for path in paths:
        if path.stem in sources:
            raise ValueError(f"Two inputs are called {path.stem!r}: rename one of the files.")
        graphs = read(path, verbose=verbose)
        if len(graphs) > 1:
            sources[path.stem] = graphs
            continue
        nodes, rng = graphs.num_nodes, np.random.default_rng(seed)
        chosen = np.sort(rng.choice(nodes, min(centres, nodes), replace=False))
        sources[path.stem] = ego_graphs(graphs, chosen)
    return sources


def run(
    load: Callable[[bool], Sources], settings: dict[str, Any], preset: str, out: Path, resume: bool
) -> None:
    """Load the domains and train, with a progress bar on the first of several processes."""
    presets: dict[str, Any] = {"paper": ArtConfig, "released": ArtConfig.released}
    if preset not in presets:
        raise typer.BadParameter(f"--preset is paper or released, got {preset!r}.")
    try:
        training = PretrainConfig(**settings)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    config, first = presets[preset](seed=training.seed), distributed.rank() == 0
    console = error_console(quiet=not first)
    stopped = f"Stopped by Ctrl-C; progress is kept in {out}. Add --resume to continue."
    errors = (GraphError, TrainingError, FileExistsError, ValueError)
    with exit_on_errors(*errors, interrupted=stopped, quiet=not first):
        sources = load(first)
        with TrainingBar(console) as bar:
            train(sources, config, training, out, resume, bar.show_training)
    console.print(f"The model is in {out}.", markup=False)
