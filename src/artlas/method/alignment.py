"""Alignment: the energies of graphs against the bases of an atlas, with couplings on demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas.kernels.structure import Structure
from artlas.method import energy
from artlas.method.atlas import Atlas
from artlas.method.config import ArtConfig
from artlas.nodes.ego import EgoGraphs


class AligningModel(Protocol):
    """What alignment and refinement need of a model; :class:`artlas.ART` is one."""

    config: ArtConfig
    atlas: Atlas

    def prepare(self, graphs: Any) -> Structure: ...
    def couplings(self, graph: Any) -> Tensor: ...
    def mixtures(self, graphs: Any) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Alignment:
    """How G graphs align with the K bases of an atlas.

    energies, residuals: [G, K]; a residual is the largest marginal error of a coupling.
    refined: the couplings of every graph, [K, N_g, M], if they differ from the model's own.
    """

    energies: Tensor
    residuals: Tensor
    graphs: Graphs | EgoGraphs
    model: AligningModel
    refined: list[Tensor] | None = None

    @property
    def coordinates(self) -> Tensor:
        """q, [G, K]."""
        return energy.coordinates(self.energies)

    @property
    def responsibilities(self) -> Tensor:
        """w over all K bases, [G, K]."""
        return energy.responsibilities(self.energies, self.model.config.responsibility_temperature)

    @property
    def coverage(self) -> Tensor:
        """The soft-min coverage of every graph, [G]."""
        return energy.coverage(self.energies, self.model.config.coverage_temperature)

    @property
    def gain(self) -> Tensor:
        """The share of the independent coupling's energy that alignment saves, [G, K]."""
        with torch.no_grad():
            relations = self.model.atlas.relations()
            structures = map(self.model.prepare, batches(self.graphs))
            product = torch.cat([energy.independent_energy(s, relations) for s in structures])
        return (product - self.energies) / product

    def couplings(self, g: int) -> Tensor:
        """Compute the couplings of graph g with every base, [K, N_g, M]."""
        graph = self._graph(g)
        return self.model.couplings(graph) if self.refined is None else self.refined[g]

    def mixture(self, g: int) -> Tensor:
        r"""Compute the mixed coupling :math:`T_{mix} = \sum_k w_k T_k` of graph g, [N_g, M]."""
        if self.refined is None:
            return self.model.mixtures(self._graph(g))
        weights = self.responsibilities[g]
        if (top := self.model.config.top_k) is not None:
            weights = torch.where(weights >= weights.topk(top).values[-1], weights, 0)
        return torch.einsum("k,knm->nm", weights / weights.sum(), self.couplings(g))

    def roles(self, g: int) -> Tensor:
        """Compute the role distribution of every node of graph g, [N_g, M]."""
        mixed = self.mixture(g)
        return mixed / mixed.sum(1, keepdim=True)

    def _graph(self, g: int) -> Graphs:
        if not -len(self.graphs) <= g < len(self.graphs):
            raise IndexError(f"There are {len(self.graphs)} graphs here; got number {g}.")
        return self.graphs[g]


def batches(graphs: Graphs | EgoGraphs) -> Iterable[Graphs]:
    """Return graphs whole, and ego-graphs in batches of which only one is in memory at a time."""
    return graphs.batches() if isinstance(graphs, EgoGraphs) else [graphs]
