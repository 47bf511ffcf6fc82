"""Pretraining: lower the mean relational coverage of unlabelled graphs of several domains.

Structure only; :mod:`artlas.training.loop` does the rest.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from artlas.method import checkpoint
from artlas.method.config import ArtConfig
from artlas.method.energy import coverage, independent_energy, responsibilities
from artlas.method.model import ART
from artlas.training import distributed, pretraining_coverage
from artlas.training.loop import (
    PretrainConfig,
    Progress,
    Sources,
    gather,
    source_hashes,
    structure_only,
    train,
)
from artlas.training.sampler import Member


def pretrain(
    sources: Sources,
    config: ArtConfig | None = None,
    training: PretrainConfig | None = None,
    out: Any = None,
    resume: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> ART:
    """Train a model on the structure of the sources, and return it.

    With ``out``, a folder, the log, the states and the model are written there; ``resume``
    continues from the newest state, which must have been made with the same settings and graphs,
    and may have been meant for fewer epochs. Under torchrun, every process trains on its share of
    each batch.
    """
    training = PretrainConfig() if training is None else training
    out = None if out is None else Path(out)
    structures = {name: structure_only(graphs) for name, graphs in sources.items()}
    model = ART(ArtConfig() if config is None else config)
    train(_Coverage(model, structures), structures, training, out, resume, report)
    model.eval()
    if out is not None and distributed.rank() == 0:
        pretraining_coverage.save(pretraining_coverage.make(model, structures), out)
        made_by = {"training": dataclasses.asdict(training), "sources": source_hashes(sources)}
        checkpoint.save(model, out, made_by)
    return model


class _Coverage:
    """Mean relational coverage, and what is counted of a batch.

    Counts: graphs; sums of coverage, lowest energy, gain over the independent coupling, effective
    bases; the largest residual and violation of the bounds; sums of responsibilities [K].
    """

    watched, maxima = "coverage", slice(5, 7)

    def __init__(self, model: ART, sources: Sources) -> None:
        self.module, self.sources = model, sources

    def settings(self) -> Mapping[str, Any]:
        return {"model": dataclasses.asdict(self.module.config)}

    def loss(self, members: list[Member], whole: int) -> tuple[Tensor | None, Tensor]:
        model = self.module
        bases, tau = model.config.bases, model.config.coverage_temperature
        if not members:
            return None, torch.zeros(bases + 7, dtype=torch.float64)
        structure = model.prepare(gather(self.sources, members))
        energies, residuals = model.energies_and_residuals(structure)
        loss = coverage(energies, tau)
        with torch.no_grad():
            e, covered = energies.double(), loss.double()
            lowest = e.min(1).values
            product = independent_energy(structure, model.atlas.relations()).double()
            shares = responsibilities(e, model.config.responsibility_temperature)
            effective = torch.exp(-(shares * shares.clamp_min(1e-300).log()).sum(1))
            violation = torch.maximum(
                lowest - covered, covered - lowest - tau * math.log(bases)
            ).max()
            sums = [covered.sum(), lowest.sum(), ((product - e) / product).mean(1).sum()]
            sums += [effective.sum(), residuals.max().double(), violation.clamp_min(0)]
            count = torch.tensor(float(len(e)), dtype=torch.float64)
            counts = torch.cat([torch.stack([count, *sums]), shares.sum(0)])
        return loss.sum() / whole, counts

    def after_step(self) -> None:
        pass

    def record(self, counts: list[float]) -> dict[str, float]:
        graphs, covered, lowest, gain, effective, residual, violation, *shares = counts
        mean = torch.tensor(shares, dtype=torch.float64) / graphs
        return {
            "coverage": covered / graphs,
            "lowest": lowest / graphs,
            "gain": gain / graphs,
            "effective": effective / graphs,
            "effective_bases": float(torch.exp(-(mean * mean.clamp_min(1e-300).log()).sum())),
            "residual": residual,
            "bound_violation": violation,
        }
