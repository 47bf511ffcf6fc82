"""Leave-one-dataset-out folds: SCGFM-ART pretrained without a target, once, and kept on disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from artlas.files import stored
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.method.config import ArtConfig
from artlas.method.model import ART
from artlas.nodes.ego import EgoGraphs
from artlas.training.config import PretrainConfig, can_resume
from artlas.training.coverage import pretrain
from artlas.training.loop import Progress
from artlas.training.sources import fingerprint, source_hashes
from artlas_paper import datasets
from artlas_paper.datasets.prepare import Features
from artlas_paper.datasets.registry import REGISTRY, DatasetError, find
from artlas_paper.protocol import SOURCES, Level

Domains = dict[str, Graphs | EgoGraphs]


def sources_of(level: Level) -> list[str]:
    """Return the five source datasets of a level."""
    return list(SOURCES[level])


def targets_of(level: Level) -> list[str]:
    """Return all targets of a level, the sources first; one more than the paper: COLORS-3-clean."""
    unseen = [e.name for e in REGISTRY.values() if e.level == level and e.role == "target"]
    return sources_of(level) + unseen


@dataclass(frozen=True)
class Folds:
    """Pretrained models by target and seed, kept below ``runs`` and trained when they are absent.

    features: as the sources are loaded; SCGFM-ART is pretrained on their structure alone.
    """

    level: Level
    root: Path | None
    runs: Path
    training: PretrainConfig
    config: ArtConfig
    features: Features = "raw"

    def sources(self, target: str) -> list[str]:
        """Return the names of all sources but the target."""
        entry = find(target)
        if entry.level != self.level:
            raise DatasetError(f"{entry.name} is no {self.level}-level dataset: choose another.")
        return [name for name in sources_of(self.level) if name != entry.name]

    def name(self, target: str) -> str:
        """Return the name of a target's fold, ``all`` where the target is no source."""
        known = sources_of(self.level)
        return f"without-{find(target).name}" if find(target).name in known else "all"

    def folder(self, target: str, seed: int) -> Path:
        """Return the folder of a fold's model, log and training states."""
        return self.runs / self.level / f"{self.name(target)}-seed{seed}"

    @cached_property
    def _loaded(self) -> Domains:
        return {}

    def graphs(self, name: str) -> Graphs | EgoGraphs:
        """Load a source, once: its graphs, or the ego-graphs of its centre nodes."""
        if name not in self._loaded:
            self._loaded[name] = datasets.load_examples(name, self.root, self.features)
        return self._loaded[name]

    def domains(self, target: str) -> Domains:
        """Load all sources but the target, and refuse one that holds the target's graphs."""
        sources = {name: self.graphs(name) for name in self.sources(target)}
        own = fingerprint(self.graphs(find(target).name))
        for name, graphs in sources.items():
            if fingerprint(graphs) == own:
                raise DatasetError(
                    f"{find(target).name} would be pretrained on: {name} has the same graphs. "
                    "To fix this, leave it out of the sources."
                )
        return sources

    def model(
        self, target: str, seed: int, report: Callable[[Progress], None] | None = None
    ) -> ART:
        """Return the model for a target; train it unless one of the same settings is kept."""
        folder, sources = self.folder(target, seed), self.domains(target)
        config = dataclasses.replace(self.config, seed=seed)
        training = dataclasses.replace(self.training, seed=seed)
        if (folder / checkpoint.MODEL).exists():
            model = checkpoint.load(folder)
            if is_finished(folder, sources, training, same_model=model.config == config):
                return model
        return pretrain(sources, config, training, folder, resume=True, report=report)


def is_finished(
    folder: Path,
    sources: Mapping[str, Graphs | EgoGraphs],
    training: PretrainConfig,
    same_model: bool = True,
) -> bool:
    """Whether a kept model has all its epochs; refuse one of other settings or other graphs."""
    kept: Any = stored.read_json(folder / checkpoint.CONFIG)
    same_training = can_resume(kept["training"], dataclasses.asdict(training))
    if not (same_model and same_training and kept["sources"] == source_hashes(sources)):
        raise ValueError(
            f"{folder} holds a model that was made with other settings or graphs. To fix "
            "this, pass another folder of runs (--runs), or delete it to train anew."
        )
    return bool(kept["training"]["epochs"] == training.epochs)
