"""Pretraining: minimise the mean relational coverage of unlabelled graphs of several domains."""

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
from artlas.training.config import PretrainConfig
from artlas.training.loop import Objective, Progress, train
from artlas.training.sources import Member, Sources, gather, source_hashes, structure_only


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
    continues from the newest state. See :func:`artlas.training.loop.train`.
    """
    training = PretrainConfig() if training is None else training
    out = None if out is None else Path(out)
    structures = {name: structure_only(graphs) for name, graphs in sources.items()}
    model = ART(ArtConfig() if config is None else config)
    train(CoverageObjective(model, structures), structures, training, out, resume, report)
    model.eval()
    if out is not None and distributed.rank() == 0:
        pretraining_coverage.save(pretraining_coverage.measure(model, structures), out)
        made_by = {"training": dataclasses.asdict(training), "sources": source_hashes(sources)}
        checkpoint.save(model, out, made_by)
    return model


class CoverageObjective(Objective):
    """The mean relational coverage of a batch.

    Counts of a batch: number of graphs; sums of coverage, lowest energy, gain over the independent
    coupling, and effective number of bases; largest residual, and largest violation of the bounds
    of the coverage; sums of responsibilities [K].
    """

    module: ART
    watched, maxima = "coverage", slice(5, 7)

    def __init__(self, model: ART, sources: Sources) -> None:
        self.module, self.sources = model, sources

    def settings(self) -> Mapping[str, Any]:
        return {"model": dataclasses.asdict(self.module.config)}

    def loss(self, members: list[Member], whole: int) -> tuple[Tensor | None, Tensor]:
        model, config = self.module, self.module.config
        if not members:
            return None, torch.zeros(config.bases + 7, dtype=torch.float64)
        structure = model.prepare(gather(self.sources, members))
        energies, residuals = model.energies_and_residuals(structure)
        loss = coverage(energies, config.coverage_temperature)
        with torch.no_grad():
            e, covered = energies.double(), loss.double()
            lowest = e.min(1).values
            relaxed = config.coverage_temperature * math.log(config.bases)
            violation = torch.maximum(lowest - covered, covered - lowest - relaxed).max()
            product = independent_energy(structure, model.atlas.relations()).double()
            shares = responsibilities(e, config.responsibility_temperature)
            sums = [covered, lowest, ((product - e) / product).mean(1), _perplexity(shares)]
            largest = [residuals.max().double(), violation.clamp_min(0)]
            count = torch.tensor(float(len(e)), dtype=torch.float64)
            figures = torch.stack([count, *(values.sum() for values in sums), *largest])
            counts = torch.cat([figures, shares.sum(0)])
        return loss.sum() / whole, counts

    def record(self, counts: list[float]) -> dict[str, float]:
        graphs, covered, lowest, gain, effective, residual, violation, *shares = counts
        mean_shares = torch.tensor(shares, dtype=torch.float64) / graphs
        return {
            "coverage": covered / graphs,
            "lowest": lowest / graphs,
            "gain": gain / graphs,
            "effective": effective / graphs,
            "effective_bases": float(_perplexity(mean_shares)),
            "residual": residual,
            "bound_violation": violation,
        }


def _perplexity(shares: Tensor) -> Tensor:
    """The effective number of bases that shares [..., K] are spread over."""
    return torch.exp(-(shares * shares.clamp_min(1e-300).log()).sum(-1))
