"""The twelve methods of the paper's tables, with the settings that it trains them by."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal

from artlas.training.config import PretrainConfig
from artlas_paper.methods.base import Baseline, Domains

Level = Literal["graph", "node"]


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

    def make(self, level: Level, domains: Domains, seed: int = 42, **options: Any) -> Baseline:
        """An untrained one for these domains, with the paper's sizes."""
        config = self.method.Config.for_domains(
            domains, hidden=self.hidden[level], seed=seed, **options
        )
        return self.method(config)


def _entry(
    name: str,
    title: str,
    place: tuple[str, str],
    decay: tuple[float, float] = (0.0, 0.0),
    batch: tuple[int, int] = (128, 128),
    adamw: tuple[bool, bool] = (False, True),
    hidden: tuple[int, int] = (64, 128),
    rate: tuple[float, float] = (1e-3, 1e-3),
    epochs: tuple[int, int] = (100, 100),
) -> Entry:
    def training(i: int) -> PretrainConfig:
        return PretrainConfig(
            epochs=epochs[i],
            batch=batch[i],
            rate=rate[i],
            clip=None,
            decay=decay[i],
            optimiser="adamw" if adamw[i] else "adam",
        )

    widths: dict[Level, int] = {"graph": hidden[0], "node": hidden[1]}
    return Entry(name, title, place, widths, {"graph": training(0), "node": training(1)})


_PLAIN: dict[str, Any] = {"batch": (512, 256), "adamw": (True, True)}
METHODS = {
    entry.name: entry
    for entry in (
        _entry("gcn", "GCN", ("gcn", "Gcn"), **_PLAIN),
        _entry("gat", "GAT", ("gat", "Gat"), **_PLAIN),
        _entry("gin", "GIN", ("gin", "Gin"), **_PLAIN),
        _entry("graphcl", "GraphCL", ("graphcl", "GraphCL"), adamw=(False, False), hidden=(64, 64)),
        _entry("graphmae", "GraphMAE", ("graphmae", "GraphMAE"), (5e-4, 5e-4)),
        _entry("graphacl", "GraphACL", ("graphacl", "GraphACL"), (1e-6, 5e-4)),
        _entry("graphglue", "GraphGlue", ("graphglue", "GraphGlue"), (5e-4, 5e-4)),
        _entry("gcope", "GCOPE", ("gcope", "GCOPE"), (1e-5, 5e-4)),
        _entry("git", "GiT", ("git", "GiT"), (1e-8, 5e-4), adamw=(True, True)),
        _entry("mdgmix", "MDGMIX", ("mdgmix", "MDGMIX"), (1e-6, 5e-4)),
        _entry(
            "riemanngfm",
            "RiemannGFM",
            ("riemanngfm", "RiemannGFM"),
            (1e-6, 5e-4),
            batch=(64, 128),
            hidden=(64, 64),
        ),
        _entry(
            "scgfm",
            "SCGFM",
            ("scgfm", "SCGFM"),
            batch=(128, 64),
            adamw=(False, False),
            rate=(2e-2, 1e-2),
            epochs=(100, 60),
        ),
    )
}


def find(name: str) -> Entry:
    """A method by its name, whatever its case."""
    if name.lower() not in METHODS:
        raise ValueError(f"There is no method {name!r}. Choose from {', '.join(METHODS)}.")
    return METHODS[name.lower()]
