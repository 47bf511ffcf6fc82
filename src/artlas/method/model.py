"""The model: graphs to energies, couplings and vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from artlas import kernels
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure, prepare_structure
from artlas.io.reading import as_graphs
from artlas.kernels.structure import Structure
from artlas.method import refinement, z_plus
from artlas.method import representations as forms
from artlas.method.alignment import Alignment, batches
from artlas.method.atlas import Atlas, RoleEncoder
from artlas.method.batching import BUDGET, as_data, split_by_budget
from artlas.method.config import ArtConfig
from artlas.method.encoder import Encoder
from artlas.method.energy import coordinates, coverage
from artlas.nodes.ego import PprConfig, ego_graphs


class ART(nn.Module):
    r"""Amortized relational transport onto a shared atlas (SCGFM-ART).

    .. math:: L_k = (U W_G)(R_k W_B)^\top / \sqrt{D_h}, \quad
        T_k = \mathrm{Sinkhorn}(L_k; \mu_G, \nu), \quad e_k = \mathcal E(A, B_k; T_k)

    The initial weights depend on ``config.seed`` alone, not on the global generator. Graphs are
    anything that :class:`Graphs` or :func:`artlas.read` accepts.
    """

    def __init__(self, config: ArtConfig | None = None) -> None:
        super().__init__()
        self.config = config = ArtConfig() if config is None else config
        self._cached_bases: tuple[Any, tuple[Tensor, Tensor]] | None = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.atlas = Atlas(config)
            self.encoder = Encoder(config.hidden, config.layers)
            self.role_encoder = RoleEncoder(config.roles, config.hidden)
            self.node_projection = nn.Linear(config.hidden, config.hidden, bias=False)  # W_G
            self.role_projection = nn.Linear(config.hidden, config.hidden, bias=False)  # W_B

    def prepare(self, graphs: Any) -> Structure:
        """Prepare graphs for the kernels, where the model is; a prepared batch stays as it is.

        Pass the result to :meth:`energies` or the model itself to use the same graphs repeatedly.
        Compiled kernels get it with the alike nodes of every graph merged.
        """
        if isinstance(graphs, Structure):
            return graphs
        graphs, config, weight = as_graphs(graphs), self.config, self.node_projection.weight
        structure = prepare_structure(graphs, config.measure_epsilon, weight.device, weight.dtype)
        native = kernels.native_for(weight)
        return structure if native is None else native.join_alike_nodes(structure, config.layers)

    def energies(self, graphs: Any) -> Tensor:
        """Differentiable energies of graphs, or a prepared batch, with every base, [G, K]."""
        return self.energies_and_residuals(graphs)[0]

    def energies_and_residuals(self, graphs: Any) -> tuple[Tensor, Tensor]:
        """Differentiable energies, and marginal residuals of the couplings, [G, K] each."""
        structure = self.prepare(graphs)
        nodes, *bases = self._projected(structure)
        options = self.config.sinkhorn_options
        return kernels.on(nodes).energies(nodes, *bases, structure, **options)

    def forward(self, graphs: Any) -> Tensor:
        """The mean coverage of graphs, or of a prepared batch: the pretraining loss."""
        return coverage(self.energies(graphs), self.config.coverage_temperature).mean()

    @torch.no_grad()
    def align(self, graphs: Any, refine: int = 0) -> Alignment:
        """Compute energies and residuals without gradients, with couplings on demand.

        With ``refine``, the iterative solver (:mod:`artlas.gw`) improves every coupling by at most
        that many steps, and all couplings are kept. No energy is higher than without.
        """
        if refine:
            return refinement.align_refined(self, graphs, refine)
        graphs = as_data(graphs)
        parts = [self.energies_and_residuals(part) for part in batches(graphs)]
        energies, residuals = (torch.cat(column) for column in zip(*parts, strict=True))
        return Alignment(energies, residuals, graphs, self)

    @torch.no_grad()
    def couplings(self, graph: Any) -> Tensor:
        """The couplings of one graph with every base, [K, N, M]."""
        structure = self.prepare(graph)
        if structure.num_graphs != 1:
            fix = "Use align(graphs).couplings(g) to pick one."
            raise ValueError(f"Couplings are made for one graph, got {structure.num_graphs}. {fix}")
        nodes, roles, _ = self._projected(structure)
        options = self.config.sinkhorn_options
        return kernels.on(nodes).couplings(nodes, roles, structure, **options)[0]

    @torch.no_grad()
    def mixtures(self, graphs: Any) -> Tensor:
        r"""The mixed coupling :math:`T_{mix} = \sum_k w_k T_k` of every graph's nodes, [N, M]."""
        structure = self.prepare(graphs)
        nodes, *bases = self._projected(structure)
        options = self.config.mixing_options
        return kernels.on(nodes).mixtures(nodes, *bases, structure, **options)[2]

    @torch.no_grad()
    def embed(self, graphs: Any, representation: str | None = None, budget: int = BUDGET) -> Tensor:
        r"""Embed every graph as one vector, [G, D].

        The default representation is the one that did best in our measurements (docs/vectors.md):
        ``blocks`` for graphs, which needs no model (:func:`artlas.blocks.embed`; ``compact`` is its
        short form), and ``plus-no-roles`` for ego-graphs; ``plus`` and ``plus-no-roles`` are in
        :mod:`artlas.method.z_plus`. ``paper`` is :math:`z = [q \,\|\, \mathrm{vec}\, H]`,
        [G, K + M d], with :math:`H = N T_{mix}^\top X`; ``coordinates`` is its q and ``features``
        its vec H.

        The graphs are embedded in batches whose working memory stays near ``budget`` bytes, and
        the bits of the result do not depend on it. The result is where the model is;
        ``numpy.asarray`` takes it from a CPU without a copy.
        """
        representation = representation or forms.default_for(graphs)
        if representation in forms.WITHOUT_MODEL:
            parts = split_by_budget(self.config, graphs, budget)
            vectors = _join(tuple(forms.without_model(b, representation) for b in parts), 0)
            return vectors.to(self.node_projection.weight.device)
        return self.embed_with_energies(graphs, representation, budget)[0]

    @torch.no_grad()
    def embed_with_energies(
        self, graphs: Any, representation: str | None = None, budget: int = BUDGET
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Embed graphs as :meth:`embed` does; return vectors, energies and residuals [G, K]."""
        representation = representation or forms.default_for(graphs)
        forms.check_representation(representation)
        results = []
        for batch in split_by_budget(self.config, graphs, budget):
            if representation == "plus":
                e, r, pooled = self.pool_by_roles(batch.graphs, z_plus.node_values(batch))
                z = z_plus.vector(batch, pooled)
            elif representation in forms.WITHOUT_MODEL:
                e, r = self.energies_and_residuals(batch.graphs)
                z = forms.without_model(batch, representation)
            elif representation == "coordinates":
                e, r = self.energies_and_residuals(batch.graphs)
                z = coordinates(e)
            else:
                e, r, h = self.transport(batch.graphs, forms.node_features(batch, self.config))
                z = forms.paper_vector(e, h) if representation == "paper" else h.flatten(1)
            results.append((z, e, r))
        vectors, energies, residuals = (_join(column, 0) for column in zip(*results, strict=True))
        return vectors, energies, residuals

    def embed_nodes(
        self,
        graph: Any,
        centres: Any = None,
        representation: str | None = None,
        config: PprConfig | None = None,
    ) -> Tensor:
        """Embed nodes of a network by their ego-graphs, [C, D]; all nodes by default.

        centres: node numbers, or names if ``graph.ids`` has them.
        """
        return self.embed(ego_graphs(graph, centres, config), representation)

    @torch.no_grad()
    def transport(self, graphs: Graphs, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""Transport node values V [N, d] to the roles: :math:`H = N T_{mix}^\top V`, [G, M, d].

        Returns energies and residuals [G, K], then H.
        """
        structure, values = self.prepare(graphs), values.to(self.node_projection.weight)
        nodes, *bases = self._projected(structure)
        return kernels.on(nodes).transport_features(
            nodes, *bases, structure, values, **self.config.mixing_options
        )

    @torch.no_grad()
    def pool_by_roles(self, graphs: Graphs, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""Pool node values V [N, d] as :math:`M R^\top V` with :math:`R = T_{mix} / \mu`.

        The rows of R sum to one. Returns energies and residuals [G, K], and values [G, M, d]; with
        ``pooling="each"``, every base k has its own :math:`R_k = T_k / \mu`, and the values are
        [G, K M, d], base by base.
        """
        structure, config = self.prepare(graphs), self.config
        measure = degree_measure(graphs, config.measure_epsilon)
        nodes, roles, relations = self._projected(structure)
        transport = kernels.on(nodes).transport_features
        options, step = config.mixing_options, len(roles)
        if config.pooling == "each":
            options, step = {**options, "top_k": None}, 1
        parts = [
            transport(nodes, r, b, structure, values, measure, **options)
            for r, b in zip(roles.split(step), relations.split(step), strict=True)
        ]
        energies, residuals, pooled = (_join(column, 1) for column in zip(*parts, strict=True))
        scale = config.roles / graphs.sizes[:, None, None].to(pooled)
        return energies, residuals, pooled.mul_(scale)

    def _projected(self, structure: Structure) -> tuple[Tensor, Tensor, Tensor]:
        """Projected nodes [N, D], projected roles [K, M, D] and relations [K, M, M]."""
        nodes = self.encoder.project(structure, self.node_projection.weight)
        weights = (*self.role_encoder.parameters(), self.role_projection.weight, self.atlas.logits)
        state = None if torch.is_grad_enabled() else kernels.state_of(weights)
        if state is not None and self._cached_bases is not None and self._cached_bases[0] == state:
            return nodes, *self._cached_bases[1]
        relations = self.atlas.relations()
        bases = self.role_projection(self.role_encoder(relations)), relations.contiguous()
        if state is not None:
            self._cached_bases = state, bases
        return nodes, *bases


def _join(parts: tuple[Tensor, ...], dim: int) -> Tensor:
    """Concatenate tensors; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)
