"""The model under test on a batch of graphs, in our form and in the reference's."""

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
from benchmarks.arithmetic import Shape
from benchmarks.data import Batch
from benchmarks.reference import GinLayer, PaddedBatch, Settings, Weights

Energies = Callable[[], Tensor]

SHARP_LOGIT = 20.0
RTOL, ATOL = 1e-4, 1e-5


class Disagreement(RuntimeError):
    """Two contenders compute different energies, so their times cannot be compared."""


@dataclass(frozen=True)
class Subject:
    """A model and a batch of graphs, in our form and in the reference's."""

    model: artlas.ART
    graphs: artlas.Graphs
    query_scale: float

    @cached_property
    def padded(self) -> PaddedBatch:
        """The graphs in the reference's padded form."""
        return PaddedBatch.of(self.graphs.node_ptr, self.graphs.row_ptr, self.graphs.col)

    @cached_property
    def weights(self) -> Weights:
        """The model's weights in the reference's form."""
        return weights_of(self.model)

    @property
    def settings(self) -> Settings:
        """The reference's settings for this model."""
        return settings_of(self.model)

    def prepare_reference(self) -> None:
        """Prepare the graphs for the reference."""
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
        """Compute the energies by the reference."""
        return reference.energies(self.weights, self.padded, self.settings)

    def size(self, joined: bool) -> tuple[int, int]:
        """Count nodes and stored entries; joined: after equivalent nodes are merged."""
        if not joined:
            return self.graphs.num_nodes, 2 * self.graphs.num_edges
        return self.native.num_nodes, len(self.native.col)

    def our_energies(self, kernels: str) -> Tensor:
        """Compute the energies by artlas with the kernels named; differentiable."""
        prepared = self.native if kernels == "native" else self.twin
        with artlas.kernels.use(kernels):
            return self.model.energies(prepared)

    def infer(self, energies: Energies) -> Tensor:
        """Run one inference pass: energies without gradients."""
        with torch.no_grad():
            return energies()

    def train(self, energies: Energies, kernels: str | None = None) -> None:
        """Run one training step without the optimiser: coverage, forward and backward."""
        self.model.zero_grad(set_to_none=True)
        temperature = self.model.config.coverage_temperature
        if kernels is None:
            reference.coverage(energies(), temperature).mean().backward()
            return
        with artlas.kernels.use(kernels):
            artlas.coverage(energies(), temperature).mean().backward()


def build(batch: Batch, sharp: bool) -> Subject:
    """Build an untrained model on a batch; sharp: with logits as large as after training."""
    model = artlas.ART(artlas.ArtConfig())
    graphs = artlas.Graphs.from_edges(batch.edge_lists())
    subject = Subject(model, graphs, 1.0)
    return replace(subject, query_scale=sharpen(subject)) if sharp else subject


@torch.no_grad()
def sharpen(subject: Subject) -> float:
    """Make the logits of an untrained model as large and uneven as training makes them.

    First the last biases subtract the part common to all nodes and to all roles, which Sinkhorn
    absorbs at once: with it, even logits of +-20 would converge in a few iterations. Then the query
    projection is scaled, by the factor returned, until the median graph-base pair has a largest
    scaled logit of 20.
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
    """Return the largest difference of our energies from the reference's; raise if too large."""
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
    """Compute the mean number of Sinkhorn iterations that the native kernels ran per node and base.

    The kernels stop a pair once its scalings repeat to the bit. The scalings saved for the
    gradient, [G, K, 2, steps, M], show when that was.
    """
    saved: Tensor = subject.our_energies("native").grad_fn.saved_tensors[-1]  # type: ignore
    moved = (saved[:, :, :, 1:] != saved[:, :, :, :-1]).any(4).any(2)
    steps = torch.where(moved, torch.arange(2, saved.shape[3] + 1), 1).amax(2) + 1
    sizes = subject.graphs.node_ptr.diff()[:, None]
    executed = steps.clamp(max=saved.shape[3]).double() * sizes
    return float(executed.sum() / (sizes.sum() * saved.shape[1]))


def settings_of(model: artlas.ART) -> Settings:
    """Return the reference's settings for a model's configuration."""
    config = model.config
    return Settings(config.temperature, config.steps, config.logit_clamp)


def shape_of(model: artlas.ART) -> Shape:
    """Return the sizes that determine the amount of arithmetic."""
    c = model.config
    return Shape(c.bases, c.roles, c.hidden, c.layers, c.steps)


def weights_of(model: artlas.ART) -> Weights:
    """Return the model's own parameters under the reference's names."""
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
    """Return the weight and bias of a layer."""
    return module.weight, module.bias
