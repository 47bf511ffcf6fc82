"""``artlas-paper pretrain``: learn an atlas from named datasets of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    run,
)
from artlas.training.sources import Sources
from artlas_paper import datasets
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import ART_BATCH, ART_EPOCHS, ART_RATE, CENTRES, SEED


def pretrain(
    sources: Annotated[str, typer.Option(help="Names of datasets, separated by commas.")],
    out: Out,
    root: Annotated[Path | None, typer.Option(help="Folder of the datasets.")] = None,
    epochs: Epochs = ART_EPOCHS,
    batch: Batch = ART_BATCH,
    rate: Rate = ART_RATE,
    seed: Seed = SEED,
    plateau: Plateau = None,
    patience: Patience = 5,
    preset: Preset = "paper",
    centres: Annotated[
        int, typer.Option(min=1, help="Ego-graphs per class of a node-level dataset.")
    ] = CENTRES,
    resume: Resume = False,
) -> None:
    """Learn an atlas from the unlabelled graphs of several datasets."""
    names = sources.split(",")
    settings: dict[str, Any] = {"epochs": epochs, "batch": batch, "rate": rate, "seed": seed}
    settings |= {"plateau": plateau, "patience": patience}
    run(lambda verbose: load_sources(names, root, centres, verbose), settings, preset, out, resume)


def load_sources(
    names: list[str], root: Path | None, centres: int, verbose: bool = False
) -> Sources:
    """Load every source: graphs as they are, or ego-graphs of the nodes of a network."""
    return {
        find(name).name: datasets.load_examples(name, root, "raw", centres, verbose=verbose)
        for name in names
    }
