"""The model under test, and its weights in the reference's terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn

import artlas
from artlas.kernels.structure import Structure
from artlas.method.encoder import GINLayer
from benchmarks import reference
from benchmarks.data import Batch
from benchmarks.reference import GinLayer, PaddedBatch, Settings, Weights
from benchmarks.work import Shape

Energies = Callable[[], Tensor]

SHARP_LOGIT = 20.0
RTOL, ATOL = 1e-4, 1e-5


class Disagreement(RuntimeError):
    """Two contenders do not compute the same energies, so that their times say nothing."""


@dataclass(frozen=True)
class Subject:
    """A model and a batch of graphs, in our form and in the reference's."""

    model: artlas.ART
    graphs: artlas.Graphs
    query_scale: float

    @cached_property
    def padded(self) -> PaddedBatch:
        """The graphs as the reference takes them."""
        return PaddedBatch.of(self.graphs.node_ptr, self.graphs.row_ptr, self.graphs.col)

    @cached_property
    def weights(self) -> Weights:
        """The model's weights as the reference takes them."""
        return weights_of(self.model)

    @property
    def settings(self) -> Settings:
        """The reference's settings for this model."""
        return settings_of(self.model)

    def prepare_reference(self) -> None:
        """Make what the reference needs of the graphs alone."""
        PaddedBatch.of(self.graphs.node_ptr, self.graphs.row_ptr, self.graphs.col)

    def prepare_native(self) -> None:
        """Make what the native kernels need of the graphs alone."""
        self.model.prepare(self.graphs)

    @cached_property
    def native(self) -> Structure:
        """The graphs prepared for the native kernels."""
        with artlas.kernels.use("native"):
            return self.model.prepare(self.graphs)

    @cached_property
    def twin(self) -> Structure:
        """The graphs prepared for the PyTorch twin."""
        with artlas.kernels.use("twin"):
            return self.model.prepare(self.graphs)

    def reference_energies(self) -> Tensor:
        """Energies of the published form."""
        return reference.energies(self.weights, self.padded, self.settings)

    def size(self, joined: bool) -> tuple[int, int]:
        """Nodes and stored entries, of the graphs or with alike nodes joined as they are run."""
        if not joined:
            return self.graphs.num_nodes, 2 * self.graphs.num_edges
        return self.native.num_nodes, len(self.native.col)

    def our_energies(self, kernels: str) -> Tensor:
        """Energies of artlas with the kernels named, differentiable where gradients are on."""
        prepared = self.native if kernels == "native" else self.twin
        with artlas.kernels.use(kernels):
            return self.model.energies(prepared)

    def infer(self, energies: Energies) -> Tensor:
        """One inference pass: energies without gradients."""
        with torch.no_grad():
            return energies()

    def train(self, energies: Energies, kernels: str | None = None) -> None:
        """One training step without the optimiser: coverage, forward and backward."""
        self.model.zero_grad(set_to_none=True)
        temperature = self.model.config.coverage_temperature
        if kernels is None:
            reference.coverage(energies(), temperature).mean().backward()
            return
        with artlas.kernels.use(kernels):
            artlas.coverage(energies(), temperature).mean().backward()


def build(batch: Batch, sharp: bool) -> Subject:
    """An untrained model on a batch, its logits made like a trained model's if `sharp`."""
    model = artlas.ART(artlas.ArtConfig())
    graphs = artlas.Graphs.from_edges(batch.edge_lists())
    subject = Subject(model, graphs, 1.0)
    return replace(subject, query_scale=sharpen(subject)) if sharp else subject


@torch.no_grad()
def sharpen(subject: Subject) -> float:
    """Make the logits of an untrained model as large and uneven as training makes them.

    The common part of all nodes and of all roles, which Sinkhorn absorbs at once, is taken out
    by the last biases; then the query projection is scaled, by the factor returned, until the
    median graph-base pair has a largest scaled logit of 20. Without the first, logits of +-20
    would still converge in a few iterations.
    """
    weights, padded = subject.weights, subject.padded
    bases = reference.relations(weights.atlas)
    weights.layers[-1].norm[1].sub_(reference.encode_nodes(weights, padded).mean(0))
    weights.base_encoder[-1][1].sub_(reference.encode_bases(weights, bases).mean((0, 1)))
    largest = reference.logits(weights, padded, bases).abs().amax((2, 3)).median()
    factor = SHARP_LOGIT * subject.settings.temperature / float(largest)
    weights.query.mul_(factor)
    return factor


def agreement(subject: Subject, kernels: str) -> float:
    """Largest difference of our energies from the reference's; refuses a real one."""
    expected = subject.infer(subject.reference_energies)
    measured = subject.infer(lambda: subject.our_energies(kernels))
    gap = (measured - expected).abs()
    if not bool((gap <= ATOL + RTOL * expected.abs()).all()):
        raise Disagreement(
            f"{kernels} energies differ from the reference by up to {float(gap.max()):.2e} "
            f"(allowed: {ATOL:g} + {RTOL:g} of the value); not timed"
        )
    return float(gap.max())


def executed_steps(subject: Subject) -> float:
    """Mean Sinkhorn iterations the native kernels ran per node and base.

    They stop a pair once its scalings repeat to the bit; the scalings kept for the gradient,
    [G, K, 2, steps, M], tell when.
    """
    saved: Tensor = subject.our_energies("native").grad_fn.saved_tensors[-1]  # type: ignore
    moved = (saved[:, :, :, 1:] != saved[:, :, :, :-1]).any(4).any(2)
    steps = torch.where(moved, torch.arange(2, saved.shape[3] + 1), 1).amax(2) + 1
    sizes = subject.graphs.node_ptr.diff()[:, None]
    executed = steps.clamp(max=saved.shape[3]).double() * sizes
    return float(executed.sum() / (sizes.sum() * saved.shape[1]))


def settings_of(model: artlas.ART) -> Settings:
    """The reference's settings for a model's configuration."""
    config = model.config
    return Settings(config.temperature, config.steps, config.logit_clamp)


def shape_of(model: artlas.ART) -> Shape:
    """The sizes that decide the arithmetic."""
    c = model.config
    return Shape(c.bases, c.roles, c.hidden, c.layers, c.steps)


def weights_of(model: artlas.ART) -> Weights:
    """The model's own parameters, under the reference's names."""
    encoder = model.encoder
    layers = [
        GinLayer(layer.epsilon, _pair(layer.inner), _pair(layer.outer), _pair(layer.norm))
        for layer in cast(list[GINLayer], list(encoder.layers))
    ]
    role_layers = [m for m in model.role_encoder.layers if isinstance(m, nn.Linear)]
    return Weights(
        atlas=model.atlas.logits,
        lift=_pair(encoder.lift),
        layers=layers,
        base_encoder=[_pair(layer) for layer in role_layers],
        query=model.node_projection.weight,
        key=model.role_projection.weight,
    )


def _pair(module: Any) -> tuple[Tensor, Tensor]:
    """Weight and bias of a layer."""
    return module.weight, module.bias
