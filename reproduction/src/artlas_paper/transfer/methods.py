"""Few-shot transfer of the baselines: the protocol of ART's own tables, for every method."""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from artlas import evaluation
from artlas.files import stored
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.nodes.ego import EgoGraphs
from artlas.training.config import PretrainConfig, can_resume
from artlas.training.loop import Progress
from artlas.training.sources import source_hashes
from artlas_paper import datasets
from artlas_paper.datasets import registry
from artlas_paper.datasets.features import project
from artlas_paper.methods.base import Baseline, ReadOut
from artlas_paper.methods.registry import Entry, find, load
from artlas_paper.process_memory import memory_bytes, reset_peak
from artlas_paper.transfer.embeddings import Target
from artlas_paper.transfer.folds import CENTRES, Folds
from artlas_paper.transfer.records import (
    HEAD,
    Episodes,
    Record,
    Shots,
    labels_of,
    record,
    shown_name,
)

COST = "cost.json"
RULE_EPISODES = 10  # of every source, by which the read-out of ego-graphs is chosen
READ_OUTS: dict[str, tuple[ReadOut, ...]] = {"graph": ("pool",), "node": ("pool", "centre")}


@dataclass(frozen=True)
class MethodFolds:
    """Pretrained baselines by target and seed, kept below the runs of ART's folds.

    epochs: fewer than the paper's if it is not None; plateau: the share of the loss that an epoch
    must take away for another one to follow, None for all epochs. Records say so.
    """

    folds: Folds
    epochs: int | None = None
    plateau: float | None = None

    @cached_property
    def _loaded(self) -> dict[str, Graphs | EgoGraphs]:
        return {}

    def graphs(self, name: str) -> Graphs | EgoGraphs:
        """A source with features of the unified width, and its labels."""
        if name not in self._loaded:
            root = self.folds.root
            if self.folds.level == "graph":
                self._loaded[name] = datasets.load(name, root, "paper", verbose=False)
            else:
                self._loaded[name] = datasets.load_egos(name, root, "paper", CENTRES, verbose=False)
        return self._loaded[name]

    def training(self, entry: Entry, seed: int) -> PretrainConfig:
        """The paper's settings, with as many epochs as are asked for."""
        own = entry.training[self.folds.level]
        epochs = own.epochs if self.epochs is None else min(self.epochs, own.epochs)
        made = dataclasses.replace(own, epochs=epochs, seed=seed, checkpoint_every=200)
        if self.plateau is not None:
            made = dataclasses.replace(made, plateau=self.plateau, patience=1)
        return made

    def folder(self, entry: Entry, target: str, seed: int) -> Path:
        """Where a baseline's model, log and states lie."""
        folds = self.folds
        return (
            folds.runs / "baselines" / entry.name / folds.level / f"{folds.name(target)}-seed{seed}"
        )

    def domains(self, target: str) -> dict[str, Graphs | EgoGraphs]:
        """All sources but the target."""
        sources = {name: self.graphs(name) for name in self.folds.sources(target)}
        self.folds.check_unseen(target, sources)
        return sources

    def untrained(self, entry: Entry, target: str, seed: int) -> Baseline:
        """A baseline as it is before training."""
        return entry.make(self.folds.level, self.domains(target), seed).eval()

    def model(
        self, entry: Entry, target: str, seed: int, report: Callable[[Progress], None] | None = None
    ) -> tuple[Baseline, Mapping[str, Any]]:
        """A baseline for a target, and what its training cost; trained now unless it is kept."""
        folder, sources = self.folder(entry, target, seed), self.domains(target)
        training = self.training(entry, seed)
        if (folder / checkpoint.MODEL).exists():
            kept = stored.read_json(folder / checkpoint.CONFIG)
            if kept["sources"] != source_hashes(sources) or not can_resume(
                kept["training"], dataclasses.asdict(training)
            ):
                raise ValueError(
                    f"{folder} holds a model that was made with other settings or graphs. To fix "
                    "this, pass another folder of runs (--runs), or delete it to train anew."
                )
            if kept["training"]["epochs"] == training.epochs:
                if not (folder / COST).exists():  # killed between the model and its cost
                    self._note_cost(folder, entry, training, 0)
                return load(folder), stored.read_json(folder / COST)
        model = entry.make(self.folds.level, sources, seed)
        before = reset_peak()
        try:
            model.pretrain(sources, training, folder, resume=True, report=report)
        finally:
            if folder.exists():
                self._note_cost(folder, entry, training, memory_bytes("VmHWM") - before)
        return model, stored.read_json(folder / COST)

    def _note_cost(self, folder: Path, entry: Entry, training: PretrainConfig, peak: int) -> None:
        """Keep seconds and peak of memory, over all processes that a run took.

        Seconds are as many as all epochs would take that were like the median one: a pause, or
        another process that came and went, does not count.
        """
        old = stored.read_json(folder / COST) if (folder / COST).exists() else {"peak_mib": 0}
        log = folder / "log.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        took = [json.loads(line)["seconds"] for line in lines]
        cost = {
            "epochs": len(took),
            "of": entry.training[self.folds.level].epochs,
            "seconds": round(len(took) * statistics.median(took), 1) if took else 0.0,
            "peak_mib": max(round(peak / 2**20), old["peak_mib"]),
            "threads": torch.get_num_threads(),
            "plateau": training.plateau if len(took) < training.epochs else None,  # what ended it
        }
        stored.write_json(folder / COST, cost)


def transfer_method(
    folds: MethodFolds,
    name: str,
    target: str,
    seeds: Sequence[int],
    shots: Sequence[Shots] = (5,),
    report: Callable[[Progress], None] | None = None,
    reading: Callable[[int, int], None] | None = None,
) -> Iterable[Record]:
    """Records of a baseline on one target: trained and untrained, by every way to read it out.

    Of ego-graphs that have two, the one with the better average over the source domains is marked
    as chosen: the target has no part in it. ``reading`` is told how many graphs have their vectors,
    and of how many.
    """
    entry, own = find(name), folds.folds
    own.sources(target)  # refuses a dataset of the other level before anything is read
    known, shown, labels = (
        registry.find(target).name,
        shown_name(own, target),
        labels_of(own, target),
    )
    for seed in seeds:
        trained, cost = folds.model(entry, known, seed, report)
        untrained = folds.untrained(entry, known, seed)
        chosen, scores = choose_read_out(folds, trained, known, reading)
        for count in shots:
            episodes = Episodes.draw(labels, count)
            place = Target(known, own.root, own.level, own.runs / "embeddings", episodes.members)
            data = place.data("paper")
            if shown != known and isinstance(data, EgoGraphs):
                data = _projected(data, trained.config.features)
            head = "linear" if count == "all" else HEAD[own.level]
            for model, kind in ((trained, ""), (untrained, "-untrained")):
                began = time.perf_counter()
                values = model.embed_read_outs(data, READ_OUTS[own.level], reading)
                each = (time.perf_counter() - began) / len(episodes.members)
                for way, z in values.items():
                    found = evaluation.evaluate(z.numpy(), episodes.labels, episodes.drawn, head)
                    made = record(shown, name, way + kind, seed, episodes, found, began)
                    yield {
                        **made,
                        "chosen": way == chosen,
                        "sources": scores,
                        "cost": {**cost, "embed_ms": round(1000 * each, 3)},
                    }


def _projected(egos: EgoGraphs, width: int) -> EgoGraphs:
    """Structural features, which stand in for absent ones, are projected as all others are."""
    assert egos.graph.x is not None
    graph = egos.graph.with_features(project(egos.graph.x, width))
    return dataclasses.replace(egos, graph=graph)


def choose_read_out(
    folds: MethodFolds,
    model: Baseline,
    target: str,
    reading: Callable[[int, int], None] | None = None,
) -> tuple[ReadOut, dict[str, float]]:
    """The read-out with the better average over the sources of a fold, and the averages."""
    level = folds.folds.level
    ways = READ_OUTS[level]
    if len(ways) == 1:
        return ways[0], {}
    totals = dict.fromkeys(ways, 0.0)
    for name, graphs in folds.domains(target).items():
        labels = labels_of(folds.folds, name)
        drawn = evaluation.draw_episodes(labels, RULE_EPISODES, 5, 50)
        used = np.unique(np.concatenate([np.concatenate([e.support, e.query]) for e in drawn]))
        local = [
            evaluation.Episode(np.searchsorted(used, e.support), np.searchsorted(used, e.query))
            for e in drawn
        ]
        part = graphs.select(used) if isinstance(graphs, EgoGraphs) else graphs[used]
        for way, z in model.embed_read_outs(part, ways, reading).items():
            found = evaluation.evaluate(z.numpy(), labels[used], local, HEAD[level])
            totals[way] += 100 * found.mean / len(folds.folds.sources(target))
    best = max(ways, key=lambda way: totals[way])
    return best, {way: round(value, 4) for way, value in totals.items()}
