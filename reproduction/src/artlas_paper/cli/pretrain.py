"""``artlas-paper pretrain``: learn an atlas from named datasets of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artlas.cli.pretrain import (
    Batch,
    Epochs,
    Out,
    Patience,
    Plateau,
    Preset,
    Rate,
    Resume,
    Seed,
    parse_settings,
    run,
)
from artlas.graphs import Graphs
from artlas.nodes import EgoGraphs
from artlas.training.sources import Sources
from artlas_paper import datasets
from artlas_paper.datasets.registry import find


def pretrain(
    sources: Annotated[str, typer.Option(help="Names of datasets, separated by commas.")],
    out: Out,
    root: Annotated[Path | None, typer.Option(help="Folder of the datasets.")] = None,
    epochs: Epochs = 60,
    batch: Batch = 64,
    rate: Rate = 1e-3,
    seed: Seed = 42,
    plateau: Plateau = None,
    patience: Patience = 5,
    preset: Preset = "paper",
    centres: Annotated[
        int, typer.Option(min=1, help="Ego-graphs per class of a node-level dataset.")
    ] = 300,
    resume: Resume = False,
) -> None:
    """Learn an atlas from the unlabelled graphs of several datasets."""
    names = sources.split(",")
    training = parse_settings(epochs, batch, rate, seed, plateau, patience)
    run(lambda verbose: load_sources(names, root, centres, verbose), training, preset, out, resume)


def load_sources(
    names: list[str], root: Path | None, centres: int, verbose: bool = False
) -> Sources:
    """Load every source: its graphs, or ego-graphs of the nodes of its network."""
    out: dict[str, Graphs | EgoGraphs] = {}
    for name in names:
        entry = find(name)
        if entry.level == "node":
            out[entry.name] = datasets.load_egos(entry.name, root, "raw", centres, verbose=verbose)
        else:
            out[entry.name] = datasets.load(entry.name, root, "raw", verbose=verbose)
    return out
