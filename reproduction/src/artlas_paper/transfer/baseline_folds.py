"""Baselines pretrained for every fold, once, kept on disk with what their training cost."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from artlas.files import stored
from artlas.method import checkpoint
from artlas.training.config import PretrainConfig
from artlas.training.loop import Progress
from artlas_paper.methods.base import Baseline
from artlas_paper.methods.registry import Entry, load
from artlas_paper.process_memory import memory_bytes, reset_peak
from artlas_paper.protocol import NODE_PATIENCE
from artlas_paper.transfer.folds import Domains, Folds, is_finished

COST = "cost.json"


@dataclass(frozen=True)
class BaselineFolds:
    """Pretrained baselines by target and seed, kept below the runs of SCGFM-ART's folds.

    epochs: at most so many, None for the paper's; plateau: the share of the loss that an epoch must
    take away for another one to follow, None for all epochs. Records name both.
    """

    folds: Folds
    epochs: int | None = None
    plateau: float | None = None

    @cached_property
    def _featured(self) -> Folds:
        """The same folds, whose sources have features of one width."""
        return dataclasses.replace(self.folds, features="paper")

    def domains(self, target: str) -> Domains:
        """Load all sources but the target, with features and labels."""
        return self._featured.domains(target)

    def training(self, entry: Entry, seed: int) -> PretrainConfig:
        """Return the paper's settings, with the epochs and the plateau that are asked for."""
        paper = entry.training[self.folds.level]
        epochs = paper.epochs if self.epochs is None else min(self.epochs, paper.epochs)
        training = dataclasses.replace(paper, epochs=epochs, seed=seed, checkpoint_every=200)
        if self.plateau is not None:
            training = dataclasses.replace(training, plateau=self.plateau, patience=NODE_PATIENCE)
        return training

    def folder(self, entry: Entry, target: str, seed: int) -> Path:
        """Return the folder of a baseline's model, log and training states."""
        folds = self.folds
        return (
            folds.runs / "baselines" / entry.name / folds.level / f"{folds.name(target)}-seed{seed}"
        )

    def untrained(self, entry: Entry, target: str, seed: int) -> Baseline:
        """Return a baseline with its initial weights."""
        return entry.make(self.folds.level, self.domains(target), seed).eval()

    def model(
        self, entry: Entry, target: str, seed: int, report: Callable[[Progress], None] | None = None
    ) -> tuple[Baseline, Mapping[str, Any]]:
        """Return the baseline for a target and its cost; train it unless it is kept."""
        folder, sources = self.folder(entry, target, seed), self.domains(target)
        training = self.training(entry, seed)
        if (folder / checkpoint.MODEL).exists() and is_finished(folder, sources, training):
            if not (folder / COST).exists():  # killed between the model and its cost
                self._write_cost(folder, entry, training, 0)
            return load(folder), stored.read_json(folder / COST)
        model = entry.make(self.folds.level, sources, seed)
        before = reset_peak()
        try:
            model.pretrain(sources, training, folder, resume=True, report=report)
        finally:
            if folder.exists():
                self._write_cost(folder, entry, training, memory_bytes("VmHWM") - before)
        return model, stored.read_json(folder / COST)

    def _write_cost(self, folder: Path, entry: Entry, training: PretrainConfig, peak: int) -> None:
        """Write the seconds and the peak of memory of a run over all its processes.

        Seconds are the median of an epoch times the number of epochs, so that a pause, or another
        process that slowed some of them down, does not count.
        """
        old = stored.read_json(folder / COST) if (folder / COST).exists() else {"peak_mib": 0}
        log = folder / "log.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        seconds = [json.loads(line)["seconds"] for line in lines]
        cost = {
            "epochs": len(seconds),
            "of": entry.training[self.folds.level].epochs,
            "seconds": round(len(seconds) * statistics.median(seconds), 1) if seconds else 0.0,
            "peak_mib": max(round(peak / 2**20), old["peak_mib"]),
            "threads": torch.get_num_threads(),
            # what ended the training, if it was not the number of epochs
            "plateau": training.plateau if len(seconds) < training.epochs else None,
        }
        stored.write_json(folder / COST, cost)
