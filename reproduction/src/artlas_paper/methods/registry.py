"""The twelve baselines of the paper's tables, by name, with the settings of their training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artlas.files import stored
from artlas.method import checkpoint
from artlas.training.config import PretrainConfig
from artlas_paper.methods.base import Baseline
from artlas_paper.methods.domains import Domains
from artlas_paper.methods.gat import GAT
from artlas_paper.methods.gcn import GCN
from artlas_paper.methods.gcope import GCOPE
from artlas_paper.methods.gin import GIN
from artlas_paper.methods.git import GiT
from artlas_paper.methods.graphacl import GraphACL
from artlas_paper.methods.graphcl import GraphCL
from artlas_paper.methods.graphglue import GraphGlue
from artlas_paper.methods.graphmae import GraphMAE
from artlas_paper.methods.mdgmix import MDGMIX
from artlas_paper.methods.riemanngfm import RiemannGFM
from artlas_paper.methods.scgfm import SCGFM
from artlas_paper.protocol import BASELINES, SEED
from artlas_paper.protocol import Level as Level


@dataclass(frozen=True)
class Entry:
    """A method: its title in the paper, its class, and the paper's settings by level.

    hidden: the width of its layers; training: the settings of its pretraining.
    """

    title: str
    method: type[Baseline]
    hidden: dict[Level, int]
    training: dict[Level, PretrainConfig]

    @property
    def name(self) -> str:
        """The name on the command line and in records."""
        return self.method.name

    def make(self, level: Level, domains: Domains, seed: int = SEED, **options: Any) -> Baseline:
        """Create an untrained model for these domains, with the paper's sizes."""
        config = self.method.Config.for_domains(
            domains, hidden=self.hidden[level], seed=seed, **options
        )
        return self.method(config)


def _entry(title: str, method: type[Baseline]) -> Entry:
    levels = BASELINES[method.name]
    return Entry(
        title,
        method,
        {level: settings.hidden for level, settings in levels.items()},
        {level: settings.training for level, settings in levels.items()},
    )


METHODS = {
    entry.name: entry
    for entry in (
        _entry("GCN", GCN),
        _entry("GAT", GAT),
        _entry("GIN", GIN),
        _entry("GraphCL", GraphCL),
        _entry("GraphMAE", GraphMAE),
        _entry("GraphACL", GraphACL),
        _entry("GraphGlue", GraphGlue),
        _entry("GCOPE", GCOPE),
        _entry("GiT", GiT),
        _entry("MDGMIX", MDGMIX),
        _entry("RiemannGFM", RiemannGFM),
        _entry("SCGFM", SCGFM),
    )
}


def find(name: str) -> Entry:
    """Return a method by its name, in any case."""
    if name.lower() not in METHODS:
        raise ValueError(f"There is no method {name!r}. Choose from {', '.join(METHODS)}.")
    return METHODS[name.lower()]


def load(folder: Any) -> Baseline:
    """Load a baseline from the folder that its ``pretrain`` wrote."""
    settings = stored.read_json(Path(folder) / checkpoint.CONFIG)
    method = find(settings["method"]).method
    model = method(method.Config(**settings["model"]))
    model.load_state_dict(stored.read_tensors(Path(folder) / checkpoint.MODEL))
    return model.eval()
