"""The model: graphs to energies, couplings and representations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from artlas import kernels
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure, normalised_degree, structure_of
from artlas.gw.solver import SolverConfig, solve
from artlas.io.reading import as_graphs
from artlas.kernels.options import Mixing, Sinkhorn
from artlas.kernels.structure import Structure
from artlas.method import representations, z_plus
from artlas.method.atlas import Atlas, RoleEncoder
from artlas.method.config import ArtConfig
from artlas.method.encoder import Encoder
from artlas.method.energy import coverage, independent_energy
from artlas.nodes.ego import EgoGraphs, PprConfig, ego_graphs

Data = TypeVar("Data", Graphs, EgoGraphs)
BUDGET = 1 << 27  # bytes that a batch of graphs may take while it is embedded


@dataclass(frozen=True, eq=False)
class Alignment:
    """How G graphs lie against the K bases of an atlas.

    energies, residuals: [G, K]; a residual is the largest marginal error of a pair's coupling.
    refined: the couplings of every graph, [K, N_g, M], where they are not the model's own.
    """

    energies: Tensor
    residuals: Tensor
    graphs: Graphs | EgoGraphs
    model: ART
    refined: list[Tensor] | None = None

    @property
    def coordinates(self) -> Tensor:
        """q, [G, K]."""
        return representations.coordinates(self.energies)

    @property
    def responsibilities(self) -> Tensor:
        """w over all K bases, [G, K]."""
        return representations.responsibilities(
            self.energies, self.model.config.responsibility_temperature
        )

    @property
    def coverage(self) -> Tensor:
        """The soft-min coverage of every graph, [G]."""
        return coverage(self.energies, self.model.config.coverage_temperature)

    @property
    def gain(self) -> Tensor:
        """The share of the independent coupling's energy that alignment saves, [G, K]."""
        with torch.no_grad():
            relations = self.model.atlas.relations()
            structures = map(self.model.structure, _parts(self.graphs))
            product = torch.cat([independent_energy(part, relations) for part in structures])
        return (product - self.energies) / product

    def couplings(self, g: int) -> Tensor:
        """The couplings of graph g with every base, made when asked for, [K, N_g, M]."""
        graph = self._one(g)
        return self.model.couplings(graph) if self.refined is None else self.refined[g]

    def mixture(self, g: int) -> Tensor:
        r"""The mixed coupling :math:`T_{mix} = \sum_k w_k T_k` of graph g, [N_g, M]."""
        if self.refined is None:
            return self.model.mixtures(self._one(g))
        kept = self.responsibilities[g]
        if (top := self.model.config.top_k) is not None:
            kept = torch.where(kept >= kept.topk(top).values[-1], kept, 0)
        return torch.einsum("k,knm->nm", kept / kept.sum(), self.couplings(g))

    def roles(self, g: int) -> Tensor:
        """The role distribution of every node of graph g under the mixed coupling, [N_g, M]."""
        mixed = self.mixture(g)
        return mixed / mixed.sum(1, keepdim=True)

    def _one(self, g: int) -> Graphs:
        if not -len(self.graphs) <= g < len(self.graphs):
            raise IndexError(f"There are {len(self.graphs)} graphs here; got number {g}.")
        return self.graphs[g]


def _parts(graphs: Any) -> Iterable[Graphs]:
    """Graphs whole; ego-graphs in batches, of which only one is in memory at a time."""
    return graphs.batches() if isinstance(graphs, EgoGraphs) else [as_graphs(graphs)]


def _slices(roles: Tensor, relations: Tensor, step: int) -> Iterable[tuple[Tensor, Tensor]]:
    """So many bases at a time."""
    return zip(roles.split(step), relations.split(step), strict=True)


def _joined(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Parts one after the other; one part as it is."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim)


class ART(nn.Module):
    r"""Amortized relational transport onto a shared atlas (SCGFM-ART).

    .. math:: L_k = (U W_G)(R_k W_B)^\top / \sqrt{D_h}, \quad
        T_k = \mathrm{Sinkhorn}(L_k; \mu_G, \nu), \quad e_k = \mathcal E(A, B_k; T_k)

    The initial weights depend on ``config.seed`` alone, not on the global generator.
    """

    def __init__(self, config: ArtConfig | None = None) -> None:
        super().__init__()
        self.config = config = ArtConfig() if config is None else config
        self._kept: tuple[Any, tuple[Tensor, Tensor]] | None = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.atlas = Atlas(config)
            self.encoder = Encoder(config.hidden, config.layers)
            self.role_encoder = RoleEncoder(config.roles, config.hidden)
            self.node_projection = nn.Linear(config.hidden, config.hidden, bias=False)  # W_G
            self.role_projection = nn.Linear(config.hidden, config.hidden, bias=False)  # W_B

    def structure(self, graphs: Graphs) -> Structure:
        """The measured structure of ``graphs`` where the model lives, alike nodes joined.

        It is kept with the graphs, which do not change: a second call costs nothing.
        """
        weight, config = self.node_projection.weight, self.config
        native = kernels.native_for(weight)
        rounds = None if native is None else config.layers
        key = config.measure_epsilon, rounds, weight.device, weight.dtype
        if key not in graphs.derived:
            found = structure_of(graphs, config.measure_epsilon, weight.device, weight.dtype)
            if native is not None:
                found = native.join_alike_nodes(found, config.layers)
            graphs.derived[key] = found
        return graphs.derived[key]

    def energies(self, graphs: Any) -> Tensor:
        """Differentiable energies of every graph against every base, [G, K]."""
        return self.pairs(self.structure(as_graphs(graphs)))[0]

    def pairs(self, structure: Structure) -> tuple[Tensor, Tensor]:
        """Differentiable energies, and residuals, of every graph with every base, [G, K] each."""
        return kernels.energies(*self._sides(structure), structure, **self._sinkhorn())

    def forward(self, graphs: Any) -> Tensor:
        """The mean coverage of a batch of graphs: the pretraining loss."""
        return coverage(self.energies(graphs), self.config.coverage_temperature).mean()

    @torch.no_grad()
    def align(self, graphs: Any, refine: int = 0) -> Alignment:
        """Energies and residuals, with couplings on demand; no gradients.

        With ``refine``, every coupling is improved by so many steps of the iterative solver
        (:mod:`artlas.gw`), and all are kept: no energy is higher than without.
        """
        graphs = graphs if isinstance(graphs, EgoGraphs) else as_graphs(graphs)
        if refine:
            return self._refined(graphs, refine)
        energies, residuals = [], []
        for structure in map(self.structure, _parts(graphs)):
            found = self.pairs(structure)
            energies.append(found[0])
            residuals.append(found[1])
        return Alignment(torch.cat(energies), torch.cat(residuals), graphs, self)

    def start(self, graph: Graphs) -> NDArray[np.float64]:
        """The couplings of one graph, [K, N, M], as a start of the iterative solver."""
        return self.couplings(graph).cpu().double().numpy()

    def _refined(self, graphs: Graphs | EgoGraphs, steps: int) -> Alignment:
        weight, energies, couplings, residuals = self.node_projection.weight, [], [], []
        relations, epsilon = self.atlas.relations(), self.config.measure_epsilon
        starts = [(self.start, SolverConfig(exact=steps))]
        for part in _parts(graphs):
            found = solve(part, relations, starts, epsilon)
            energies.append(torch.from_numpy(found.energies))
            couplings += [torch.from_numpy(made).to(weight) for made in found.couplings]
            measures = degree_measure(part, self.config.measure_epsilon)
            for made, mu in zip(found.couplings, measures.split(part.sizes.tolist()), strict=True):
                rows = np.abs(made.sum(2) - mu.numpy()).max(1)
                columns = np.abs(made.sum(1) - 1 / self.config.roles).max(1)
                residuals.append(torch.from_numpy(np.maximum(rows, columns)))
        return Alignment(
            torch.cat(energies).to(weight),
            torch.stack(residuals).to(weight),
            graphs,
            self,
            couplings,
        )

    @torch.no_grad()
    def couplings(self, graph: Any) -> Tensor:
        """The couplings of one graph with every base, [K, N, M]."""
        structure = self.structure(as_graphs(graph))
        if structure.num_graphs != 1:
            raise ValueError(
                f"Couplings are made for one graph, got {structure.num_graphs}. "
                "Use align(graphs).couplings(g) to pick one."
            )
        nodes, roles, _ = self._sides(structure)
        return kernels.couplings(nodes, roles, structure, **self._sinkhorn())

    @torch.no_grad()
    def mixtures(self, graphs: Any) -> Tensor:
        r"""The mixed coupling :math:`T_{mix} = \sum_k w_k T_k` of every graph's nodes, [N, M]."""
        structure = self.structure(as_graphs(graphs))
        return kernels.mixtures(*self._sides(structure), structure, **self._mixing())[2]

    @torch.no_grad()
    def embed(self, graphs: Any, representation: str | None = None, budget: int = BUDGET) -> Tensor:
        r"""One vector a graph: by default the one that did best in our own measurements.

        That is ``plus``, z+ by roles, which goes past the paper (:mod:`artlas.method.z_plus`), for graphs,
        and ``plus-no-roles`` for ego-graphs (docs/transfer.md).

        ``paper`` is :math:`z = [q \,\|\, \mathrm{vec}\, H]`, [G, K + M d], ``coordinates`` its q
        and ``features`` its vec H alone, with :math:`H = N T_{mix}^\top X`; ``plus-no-roles``
        needs no model.

        Graphs are anything that :class:`Graphs` or :func:`artlas.read` accepts; they are worked on
        in batches whose working memory stays near ``budget`` bytes, and the bits do not depend on
        it. The result is where the model is; ``numpy.asarray`` takes it from a CPU without a copy.
        """
        graphs = graphs if isinstance(graphs, EgoGraphs) else as_graphs(graphs)
        if representation is None:
            representation = "plus-no-roles" if isinstance(graphs, EgoGraphs) else "plus"
        if representation == "plus-no-roles":  # the only one that needs no coupling
            return torch.cat([z_plus.embed(part) for part in self.cut(graphs, budget)])
        return self.describe(graphs, representation, budget)[0]

    @torch.no_grad()
    def describe(
        self, graphs: Any, representation: str = "plus", budget: int = BUDGET
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What :meth:`embed` gives, with the energies and residuals [G, K] of the same pass."""
        representations.check_representation(representation)
        graphs = graphs if isinstance(graphs, EgoGraphs) else as_graphs(graphs)
        parts = [self._describe(part, representation) for part in self.cut(graphs, budget)]
        z, energies, residuals = (_joined(column) for column in zip(*parts, strict=True))
        return z, energies, residuals

    def embed_nodes(
        self,
        graph: Any,
        centres: Any = None,
        representation: str | None = None,
        config: PprConfig | None = None,
    ) -> Tensor:
        """One vector for each of some nodes of a network, by its ego-graph; all nodes by default.

        centres: numbers of nodes, or their names where ``graph.ids`` has them.
        """
        return self.embed(ego_graphs(graph, centres, config), representation)

    def room(self, width: int, budget: int = BUDGET) -> int:
        """How many nodes with ``width`` features may be worked on within ``budget`` bytes."""
        return max(1, budget // (4 * (6 * self.config.hidden + 12 * max(width, 1))))

    def cut(self, graphs: Data, budget: int = BUDGET) -> Iterator[Data]:
        """Runs of graphs whose node embeddings and blocks of features fit into ``budget`` bytes."""
        whole = graphs.graph if isinstance(graphs, EgoGraphs) else graphs
        nodes = self.room(whole.num_features, budget)
        if isinstance(graphs, EgoGraphs):
            return graphs.parts(nodes)
        # whole where it fits: what was derived from these very graphs is then used again
        return iter([graphs]) if graphs.num_nodes <= nodes else graphs.batches(nodes)

    def _describe(
        self, graphs: Graphs | EgoGraphs, representation: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        if representation == "plus":
            found: list[Tensor] = []

            def pool(part: Graphs, values: Tensor) -> Tensor:
                pooled, *pairs = self._pool(part, values)
                found.extend(pairs)
                return pooled

            z = z_plus.embed(graphs, pool)
            return z, found[0], found[1]
        whole = graphs[:] if isinstance(graphs, EgoGraphs) else graphs
        structure = self.structure(whole)
        if representation in ("plus-no-roles", "coordinates"):
            energies, residuals = self.pairs(structure)
            none = representation == "plus-no-roles"
            z = z_plus.embed(graphs) if none else representations.coordinates(energies)
            return z, energies, residuals
        energies, residuals, transported = kernels.transport_features(
            *self._sides(structure), structure, self.features(whole), **self._mixing()
        )
        return representations.compose(representation, energies, transported), energies, residuals

    @torch.no_grad()
    def pool_by_roles(self, graphs: Graphs, values: Tensor) -> Tensor:
        r""":math:`M R^\top V` with :math:`R = T_{mix} / \mu`, whose rows sum to one, [G, M, d].

        With ``pooling="each"`` every base has its own :math:`R_k = T_k / \mu`, [G, K M, d], base
        by base. values V: [N, d], one row per node of all graphs.
        """
        return self._pool(graphs, values)[0]

    def _pool(self, graphs: Graphs, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Pooled values, and the energies and residuals of the same pass."""
        structure, weight = self.structure(graphs), self.node_projection.weight
        measure = degree_measure(graphs, self.config.measure_epsilon)
        nodes, roles, relations = self._sides(structure)
        alone = self.config.pooling == "each"
        step, mixing = 1 if alone else len(roles), self._mixing(alone)
        parts = [
            kernels.transport_features(nodes, *sides, structure, values, measure, **mixing)
            for sides in _slices(roles, relations, step)
        ]
        energies, residuals, carried = (_joined(column, 1) for column in zip(*parts, strict=True))
        scale = self.config.roles / graphs.sizes[:, None, None].to(weight)
        return carried.mul_(scale), energies, residuals

    def features(self, graphs: Graphs) -> Tensor:
        """Node features where the graphs have some, else what the config puts in their place."""
        weight = self.node_projection.weight
        if graphs.x is not None:
            return graphs.x.to(weight.device, weight.dtype)
        if self.config.featureless == "degree":
            degree = normalised_degree(graphs.degree, graphs.node_ptr)
            return degree.unsqueeze(1).to(weight.device, weight.dtype)
        return weight.new_ones(graphs.num_nodes, 1)

    def _sides(self, structure: Structure) -> tuple[Tensor, Tensor, Tensor]:
        """Projected nodes [N, D], projected roles [K, M, D] and relations [K, M, M]."""
        nodes = self.encoder.project(structure, self.node_projection.weight)
        return nodes, *self._bases()

    def _bases(self) -> tuple[Tensor, Tensor]:
        """Projected roles and relations; without gradients they are kept until a weight changes."""
        if torch.is_grad_enabled():
            return self._encode_bases()
        used = (*self.role_encoder.parameters(), self.role_projection.weight, self.atlas.logits)
        state = kernels.state_of(used)
        if self._kept is None or self._kept[0] != state:
            self._kept = state, self._encode_bases()
        return self._kept[1]

    def _encode_bases(self) -> tuple[Tensor, Tensor]:
        relations = self.atlas.relations()
        return self.role_projection(self.role_encoder(relations)), relations.contiguous()

    def _sinkhorn(self) -> Sinkhorn:
        config = self.config
        return {"scale": config.logit_scale, "clamp": config.logit_clamp, "steps": config.steps}

    def _mixing(self, alone: bool = False) -> Mixing:
        """How bases are mixed, or one of them ``alone``."""
        config = self.config
        return {
            **self._sinkhorn(),
            "temperature": config.responsibility_temperature,
            "top_k": None if alone else config.top_k,
        }
