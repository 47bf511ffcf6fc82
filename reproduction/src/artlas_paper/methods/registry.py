"""The twelve methods of the paper's tables, with the settings that it trains them by."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from artlas.training.loop import PretrainConfig
from artlas_paper.methods.base import Baseline, Domains
from artlas_paper.protocol import BASELINES, SEED
from artlas_paper.protocol import Level as Level


@dataclass(frozen=True)
class Entry:
    """A method: its name here and in the paper, where its class is, and how it is trained.

    hidden: the width of its layers, training: the paper's settings; by level.
    """

    name: str
    title: str
    place: tuple[str, str]
    hidden: dict[Level, int]
    training: dict[Level, PretrainConfig]

    @property
    def method(self) -> type[Baseline]:
        """The class; its file is read when it is asked for."""
        module, name = self.place
        return getattr(importlib.import_module(f"artlas_paper.methods.{module}"), name)

    def make(self, level: Level, domains: Domains, seed: int = SEED, **options: Any) -> Baseline:
        """An untrained one for these domains, with the paper's sizes."""
        config = self.method.Config.for_domains(
            domains, hidden=self.hidden[level], seed=seed, **options
        )
        return self.method(config)


def _entry(title: str, module: str, class_name: str) -> Entry:
    levels = BASELINES[module]
    return Entry(
        module,
        title,
        (module, class_name),
        {level: settings.hidden for level, settings in levels.items()},
        {level: settings.training for level, settings in levels.items()},
    )


METHODS = {
    entry.name: entry
    for entry in (
        _entry("GCN", "gcn", "Gcn"),
        _entry("GAT", "gat", "Gat"),
        _entry("GIN", "gin", "Gin"),
        _entry("GraphCL", "graphcl", "GraphCL"),
        _entry("GraphMAE", "graphmae", "GraphMAE"),
        _entry("GraphACL", "graphacl", "GraphACL"),
        _entry("GraphGlue", "graphglue", "GraphGlue"),
        _entry("GCOPE", "gcope", "GCOPE"),
        _entry("GiT", "git", "GiT"),
        _entry("MDGMIX", "mdgmix", "MDGMIX"),
        _entry("RiemannGFM", "riemanngfm", "RiemannGFM"),
        _entry("SCGFM", "scgfm", "SCGFM"),
    )
}


def find(name: str) -> Entry:
    """A method by its name, whatever its case."""
    if name.lower() not in METHODS:
        raise ValueError(f"There is no method {name!r}. Choose from {', '.join(METHODS)}.")
    return METHODS[name.lower()]
