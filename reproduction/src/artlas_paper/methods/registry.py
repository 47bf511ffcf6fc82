"""The twelve baselines of the paper's tables, by name, with the settings of their training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

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

Level = Literal["graph", "node"]


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

    def make(self, level: Level, domains: Domains, seed: int = 42, **options: Any) -> Baseline:
        """Create an untrained model for these domains, with the paper's sizes."""
        config = self.method.Config.for_domains(
            domains, hidden=self.hidden[level], seed=seed, **options
        )
        return self.method(config)


def _entry(
    title: str,
    method: type[Baseline],
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
    return Entry(title, method, widths, {"graph": training(0), "node": training(1)})


_PLAIN: dict[str, Any] = {"batch": (512, 256), "adamw": (True, True)}
METHODS = {
    entry.name: entry
    for entry in (
        _entry("GCN", GCN, **_PLAIN),
        _entry("GAT", GAT, **_PLAIN),
        _entry("GIN", GIN, **_PLAIN),
        _entry("GraphCL", GraphCL, adamw=(False, False), hidden=(64, 64)),
        _entry("GraphMAE", GraphMAE, (5e-4, 5e-4)),
        _entry("GraphACL", GraphACL, (1e-6, 5e-4)),
        _entry("GraphGlue", GraphGlue, (5e-4, 5e-4)),
        _entry("GCOPE", GCOPE, (1e-5, 5e-4)),
        _entry("GiT", GiT, (1e-8, 5e-4), adamw=(True, True)),
        _entry("MDGMIX", MDGMIX, (1e-6, 5e-4)),
        _entry("RiemannGFM", RiemannGFM, (1e-6, 5e-4), batch=(64, 128), hidden=(64, 64)),
        _entry(
            "SCGFM",
            SCGFM,
            batch=(128, 64),
            adamw=(False, False),
            rate=(2e-2, 1e-2),
            epochs=(100, 60),
        ),
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
