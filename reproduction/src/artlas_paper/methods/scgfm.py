r"""SCGFM: structure-centric graph foundation model, the predecessor of SCGFM-ART, He et al.

"Structure-Centric Graph Foundation Model via Geometric Bases", ICML 2026. Bases are learned by
sliced distances, and features are aligned by an iterative solver.

No code of it was published. K bases :math:`B_k \in [0, 1]^{M \times M}` are learned, symmetric and
with zero diagonal:

.. math:: \delta_k = SGW(A, B_k), \quad w = \mathrm{softmax}(-\delta / \tau), \quad
    \tilde B = \sum_k w_k B_k

.. math:: \mathcal L = SGW(A, \tilde B) + \alpha\, MSE(f(w), s(A))
    + \beta\, \mathrm{mean}_{i < j} \max(0, m - \|B_i - B_j\|_F)

with a decoder f of graph statistics s (:mod:`artlas_paper.methods.graph_invariants`) and the sliced
distance SGW (:mod:`artlas_paper.methods.scgfm_slices`). Bases and decoder are trained on structure
alone, without features, and then frozen. Only at inference, a coupling T of A with :math:`\tilde B`
is found by an iterative Gromov-Wasserstein solver, and :math:`z = [w \,\|\, f(w) \,\|\,
\mathrm{vec}(N T^\top X)]`. The vector of a centre c has its own share of the last part,
:math:`N T_c^\top x_c`.

Choices where the sources are silent: the sizes and weights of :class:`SCGFMConfig`, the bins of s,
uniform measures, conditional gradients from the product of the measures with at most 50 steps, and
an order of nodes, on which SGW and a solver with ties depend. Nodes are ordered by degree and
colour, so that the coordinates do not depend on how nodes were numbered. Notes on the paper sum the
transported features of all bases; its stated cost fits one coupling with the mixture, as here.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from artlas import checks
from artlas.graphs.collection import Graphs
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.domains import Domains
from artlas_paper.methods.graph_invariants import (
    CLUSTERINGS,
    COUNTS,
    DEGREES,
    graph_statistics,
    order_nodes,
)
from artlas_paper.methods.scgfm_slices import Directions, Slices, project
from artlas_paper.methods.scgfm_solvers import SOLVERS, Solver


@dataclass(frozen=True)
class SCGFMConfig(BaselineConfig):
    r"""Settings of SCGFM; hidden is the width of the decoder, and layers is not used.

    bases: K; roles: M; slices, training_slices: L at inference and in training; temperature:
    :math:`\tau`; statistics, separation: :math:`\alpha, \beta`; margin: m; iterations: most steps
    of the solver; solver: the conditional gradient of :mod:`artlas.gw`, that of POT, or POT's
    entropic projected gradient of strength epsilon; seed: of weights and slices.
    """

    bases: int = 16
    roles: int = 32
    slices: int = 200
    training_slices: int = 50
    temperature: float = 0.1
    statistics: float = 1.0
    separation: float = 0.1
    margin: float = 6.0
    iterations: int = 50
    solver: Solver = "artlas"
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(self, "bases", "roles", "slices", "training_slices", "iterations")
        checks.positive(self, "temperature", "epsilon")
        checks.one_of(self, "solver", tuple(SOLVERS))
        if self.training_slices > self.slices:
            raise ValueError(
                f"SCGFMConfig.training_slices must be at most slices = {self.slices}, got "
                f"{self.training_slices}."
            )


class SCGFM(Baseline):
    """Learned bases, a decoder of graph statistics, and an iterative aligner at inference."""

    name = "scgfm"
    Config = SCGFMConfig
    config: SCGFMConfig

    def build(self) -> None:
        config = self.config
        self.logits = nn.Parameter(torch.randn(config.bases, config.roles, config.roles))
        self.decoder = nn.Sequential(
            nn.Linear(config.bases, config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, DEGREES + CLUSTERINGS + COUNTS),
        )
        self.directions = Directions(config.seed, config.slices)
        self._statistics: dict[str, Tensor] = {}

    def prepare(self, domains: Domains) -> None:
        """Compute the statistics of all graphs."""
        self._statistics = {
            name: torch.from_numpy(graph_statistics(graphs)) for name, graphs in domains.items()
        }

    def relations(self) -> Tensor:
        """Return the bases, symmetric with zero diagonal, [K, M, M]."""
        symmetric = (self.logits + self.logits.transpose(1, 2)) / 2
        return symmetric.sigmoid() * (1 - torch.eye(self.config.roles))

    def project(self, graphs: Graphs, slices: int) -> Slices:
        """Project graphs on so many random directions."""
        return project(graphs, self.directions, self.config.roles, slices)

    def coordinates(self, slices: Slices) -> Tensor:
        """Compute w of every graph, [G, K]."""
        relations = self.relations().to(slices.low)
        theta = torch.from_numpy(self.directions.first(self.config.roles, slices.low.shape[2]))
        distances = slices.distances(relations @ theta.to(slices.low))
        return torch.softmax(-distances / self.config.temperature, 1)

    def loss(self, batch: Batch) -> Tensor:
        config, relations = self.config, self.relations()
        statistics = torch.stack([self._statistics[name][i] for name, i in batch.members])
        slices = self.project(batch.to_graphs(), config.training_slices)
        weights = self.coordinates(slices)
        theta = torch.from_numpy(self.directions.first(config.roles, config.training_slices))
        mixed = torch.einsum("gk,kml->gml", weights, relations @ theta)
        loss = slices.distance(mixed).mean()
        loss = loss + config.statistics * nn.functional.mse_loss(self.decoder(weights), statistics)
        if config.bases > 1:
            distances = torch.pdist(relations.flatten(1))
            loss = loss + config.separation * (config.margin - distances).clamp(min=0).mean()
        return loss

    def states(self, batch: Batch) -> Tensor:
        """Join the coordinates of a node's graph and its scaled row of the coupling, [N, K + M]."""
        graphs, nodes = _reorder(batch)
        weights = self.coordinates(self.project(graphs, self.config.slices).double())
        mixture = torch.einsum("gk,kml->gml", weights, self.relations().double())
        # The last bits decide a solver's ties, and in float64 they depend on the batch.
        mixed = mixture.float().double().detach().numpy()
        align = SOLVERS[self.config.solver](self.config.iterations, self.config.epsilon)

        def couple(graph: Graphs, base: NDArray[np.float64]) -> Tensor:
            return graph.num_nodes * torch.from_numpy(align(graph, base)).float()

        # our solver takes one problem a thread; POT holds the interpreter's lock
        workers = torch.get_num_threads() if self.config.solver == "artlas" else 1
        with ThreadPoolExecutor(workers) as pool:
            ordered = torch.cat(list(pool.map(couple, graphs, mixed)))
        rows = torch.empty_like(ordered)
        rows[nodes] = ordered
        return torch.cat([weights.float()[batch.graph_of], rows], 1)

    def pool(self, batch: Batch, states: Tensor) -> Tensor:
        """Compute z of every graph, [G, K + s + M d]."""
        sizes, bases = batch.sizes.tolist(), self.config.bases
        rows = zip(states[:, bases:].split(sizes), batch.x.split(sizes), strict=True)
        transported = torch.stack([own.T @ x for own, x in rows])
        return self._join(states[batch.node_ptr[:-1], :bases], transported)

    def read_centre(self, batch: Batch, states: Tensor) -> Tensor:
        """Compute z with the features that the centre alone transports."""
        first, bases = batch.node_ptr[:-1], self.config.bases
        transported = states[first, bases:, None] * batch.x[first, None]
        return self._join(states[first, :bases], transported)

    def _join(self, weights: Tensor, transported: Tensor) -> Tensor:
        return torch.cat([weights, self.decoder(weights), transported.flatten(1)], 1)


def _reorder(batch: Batch) -> tuple[Graphs, NDArray[np.int64]]:
    """Return the graphs with nodes ordered by degree and colour, and the old number of each."""
    nodes = order_nodes(Graphs(batch.node_ptr, batch.row_ptr, batch.col, batch.x)).nodes
    place = np.empty_like(nodes)
    place[nodes] = np.arange(len(nodes))
    rows, col = place[batch.row.numpy()], place[batch.col.numpy()]
    entries = np.lexsort((col, rows))
    row_ptr = np.concatenate([[0], np.cumsum(batch.degree.numpy()[nodes])])
    col = torch.from_numpy(col[entries].astype(np.int32))
    return Graphs(batch.node_ptr, torch.from_numpy(row_ptr), col), nodes
