"""The folds of the transfer protocol: what is pretrained on for which target, once and kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from artlas.files import stored
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.method.config import ArtConfig
from artlas.method.model import ART
from artlas.nodes.ego import EgoGraphs, PprConfig
from artlas.training.config import PretrainConfig, can_resume
from artlas.training.coverage import pretrain
from artlas.training.loop import Progress
from artlas.training.sources import fingerprint, source_hashes
from artlas_paper import datasets
from artlas_paper.datasets.registry import REGISTRY, DatasetError, find
from artlas_paper.methods.registry import Level as Level
from artlas_paper.transfer import paper_tables

LEVELS: tuple[Level, Level] = ("graph", "node")
CENTRES = 300
# What the paper reports of the model itself, 5 shots, percent.
PAPER = {
    target: cell[0]
    for level in LEVELS
    for target, cell in paper_tables.accuracies(level)["art"].items()
}


def sources_of(level: Level) -> list[str]:
    """The five source datasets of a level."""
    return [e.name for e in REGISTRY.values() if e.level == level and e.role == "source"]


def targets_of(level: Level) -> list[str]:
    """All targets of a level, the sources first."""
    unseen = [e.name for e in REGISTRY.values() if e.level == level and e.role == "target"]
    return sources_of(level) + unseen


@dataclass(frozen=True)
class Folds:
    """Pretrained models by target and seed, kept below ``runs`` and made when they are absent."""

    level: Level
    root: Path | None
    runs: Path
    training: PretrainConfig
    config: ArtConfig

    def sources(self, target: str) -> list[str]:
        """All sources but the target."""
        entry = find(target)
        if entry.level != self.level:
            raise DatasetError(f"{entry.name} is no {self.level}-level dataset: choose another.")
        return [name for name in sources_of(self.level) if name != entry.name]

    def name(self, target: str) -> str:
        """The name of a target's fold: ``all`` for what is no source."""
        known = sources_of(self.level)
        return f"without-{find(target).name}" if find(target).name in known else "all"

    def folder(self, target: str, seed: int) -> Path:
        """Where a fold's model, log and states lie."""
        return self.runs / self.level / f"{self.name(target)}-seed{seed}"

    @cached_property
    def _loaded(self) -> dict[str, Graphs | EgoGraphs]:
        return {}

    def graphs(self, name: str) -> Graphs | EgoGraphs:
        """The structure of a source: its graphs, or ego-graphs of at most 300 nodes a class."""
        if name not in self._loaded:
            if self.level == "graph":
                self._loaded[name] = datasets.load(name, self.root, "raw", verbose=False)
            else:
                self._loaded[name] = datasets.load_egos(
                    name, self.root, "raw", CENTRES, PprConfig(), verbose=False
                )
        return self._loaded[name]

    def check_unseen(self, target: str, sources: Mapping[str, Graphs | EgoGraphs]) -> None:
        """Refuse sources that hold the target's graphs, under whatever name."""
        own = fingerprint(self.graphs(find(target).name))
        for name, graphs in sources.items():
            if fingerprint(graphs) == own:
                raise DatasetError(
                    f"{find(target).name} would be pretrained on: {name} has the same graphs. "
                    "To fix this, leave it out of the sources."
                )

    def model(
        self, target: str, seed: int, report: Callable[[Progress], None] | None = None
    ) -> ART:
        """The model for a target, pretrained now unless the same was pretrained before."""
        folder = self.folder(target, seed)
        sources = {name: self.graphs(name) for name in self.sources(target)}
        self.check_unseen(target, sources)
        config = dataclasses.replace(self.config, seed=seed)
        training = dataclasses.replace(self.training, seed=seed)
        if (folder / checkpoint.MODEL).exists():
            kept, model = stored.read_json(folder / checkpoint.CONFIG), checkpoint.load(folder)
            wanted = dataclasses.asdict(training)
            if (
                model.config != config
                or kept["sources"] != source_hashes(sources)
                or not can_resume(kept["training"], wanted)
            ):
                raise ValueError(
                    f"{folder} holds a model that was made with other settings or graphs. To fix "
                    "this, pass another folder of runs (--runs), or delete it to train anew."
                )
            if kept["training"]["epochs"] == training.epochs:
                return model
        return pretrain(sources, config, training, folder, resume=True, report=report)
