r"""RiemannGFM: a graph foundation model on Riemannian manifolds, Sun et al.

"RiemannGFM: Learning a Graph Foundation Model from Riemannian Geometry", WWW 2025. Trees in
hyperbolic space are contrasted with cycles on a sphere.

A node's input is structure alone: its entries in the first 32 eigenvectors of the Laplacian
(:mod:`artlas_paper.methods.riemanngfm_inputs`). From these come a Euclidean vector e, a point h of
the hyperboloid and a point s of the sphere (:mod:`artlas_paper.methods.riemanngfm_manifolds`): a
linear map in the tangent space of the origin, then the mean over the node and its neighbours on the
manifold. Each layer is

.. math:: h \leftarrow \mathrm{mean}(h,\, att(s \to h; tree)), \quad
    s \leftarrow \exp_s(\Pi_s\, att(h \to s; edges)), \quad
    e \leftarrow e + MLP[PT_{h \to o} \Pi_h e \,\|\, PT_{s \to o} \Pi_s e]

where an attention's queries are of the other manifold, its weights are softmaxes over neighbours in
the breadth-first tree or in the graph, :math:`\Pi` projects onto a tangent space and PT transports
to the origin. With :math:`p^H = MLP[\log_o h \,\|\, PT \Pi_h e]`, :math:`p^S` likewise by the same
MLP, and cosines c over sampled nodes:

.. math:: \mathcal L = -\tfrac12 \sum_{(P, Q)} \mathrm{mean}_i \log
    \frac{e^{c(P_i, Q_i) / 0.2}}{\sum_j e^{c(P_i, Q_j) / 0.2}}, \quad
    (P, Q) \in \{(p^H, p^S), (p^S, p^H)\}

The maps to the manifolds, the layers and the projecting MLP are trained; the projector is then
discarded, and the rest is frozen. The frozen vector is :math:`[\log_o h \,\|\, \log_o s \,\|\, x]`,
the mean over nodes or the row of the centre. As in the released code, whose classifier reads both,
the features x are part of it; ``with_features=False`` leaves them out.

Differences from the released code: inputs have exactly 32 columns (graphs of fewer than 34 nodes
broke it), do not depend on the arbitrary signs and bases of an eigensolver, and are scaled by
:math:`\sqrt n`; there is one tree per graph, rooted at the centre of an ego-graph and at the node
of highest degree otherwise, instead of one for every sampled seed on copies of the whole graph;
domains are trained together in balanced batches, with the SCGFM-ART paper's optimiser and width
(64), and without rounds; whole graphs can be learnt from, for which it had no code; tangents beyond
float32's range are cut, so that no value is infinite and no batch is skipped. Choices where sources
are silent: unit queries and keys as wide as the inputs, trees' edges in both directions, and 1,024
nodes of a batch in the loss instead of all pairs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from artlas import checks
from artlas.graphs.collection import Graphs
from artlas.nodes.ego import EgoGraphs
from artlas_paper.kernels import product_attention, unit
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.domains import Domains
from artlas_paper.methods.layers import Dropout, Linear
from artlas_paper.methods.losses import symmetric_infonce
from artlas_paper.methods.riemanngfm_inputs import breadth_first_trees, laplacian_features
from artlas_paper.methods.riemanngfm_manifolds import Manifold

HYPERBOLOID, SPHERE = Manifold(-1), Manifold(1)
PREPARED_NODES = 25_600  # nodes whose inputs are computed at a time


@dataclass(frozen=True)
class RiemannGFMConfig(BaselineConfig):
    """Settings of RiemannGFM; hidden is the inner width of its perceptrons.

    width: of inputs and of both manifolds; dropout: in the perceptrons; temperature: of the loss;
    nodes: how many the loss contrasts, at most; root: of trees, the node of highest degree or the
    first one, a centre; with_features: whether x is part of the frozen vector.
    """

    layers: int = 2
    width: int = 32
    dropout: float = 0.1
    temperature: float = 0.2
    nodes: int = 1024
    root: Literal["degree", "centre"] = "degree"
    with_features: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(self, "width", "nodes")
        checks.fraction(self, "dropout")
        checks.positive(self, "temperature", least=0.025)  # exp(-2 / 0.025) is still a float32
        checks.one_of(self, "root", ("degree", "centre"))

    @classmethod
    def for_domains(cls, domains: Domains, **options: Any) -> Any:
        """Return settings that fit these domains; trees of ego-graphs have the centre as root."""
        egos = all(isinstance(graphs, EgoGraphs) for graphs in domains.values())
        return super().for_domains(domains, **{"root": "centre" if egos else "degree", **options})


class RiemannLayer(nn.Module):
    """Attention on both manifolds, and the update of the Euclidean vector."""

    def __init__(self, config: RiemannGFMConfig) -> None:
        super().__init__()
        width = config.width
        self.from_sphere, self.from_tree = _attention(width), _attention(width)
        self.euclidean = _perceptron(2 * width, width, config)

    def forward(
        self, e: Tensor, h: Tensor, s: Tensor, batch: Batch, trees: Batch, chosen: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Update e, h and s; return those of all nodes, or of the chosen ones."""
        flat_h, flat_s = HYPERBOLOID.to_origin(h), SPHERE.to_origin(s)
        query, key, value = self.from_sphere
        sent = HYPERBOLOID.from_origin(value(flat_h))
        h = HYPERBOLOID.mean(h, _attend(query(flat_s), key(flat_h), sent, trees))
        query, key, value = self.from_tree
        sent, flat_h = SPHERE.from_origin(value(flat_s)), HYPERBOLOID.to_origin(h)
        moved = _attend(query(flat_h), key(flat_s), sent, batch)
        if chosen is not None:
            e, h, s, moved = (rows.index_select(0, chosen) for rows in (e, h, s, moved))
        s = SPHERE.exp_at(s, moved)
        flat_e = [HYPERBOLOID.transport_to_origin(h, e), SPHERE.transport_to_origin(s, e)]
        return e + self.euclidean(torch.cat(flat_e, 1)), h, s


class RiemannGFM(Baseline):
    """Layers on both manifolds, and a projector that is discarded."""

    name = "riemanngfm"
    Config = RiemannGFMConfig
    config: RiemannGFMConfig

    def build(self) -> None:
        config = self.config
        width = config.width
        self.euclidean = _perceptron(width, width, config)
        self.starts = nn.ModuleList(Linear(width, width) for _ in range(2))
        self.layers = nn.ModuleList(RiemannLayer(config) for _ in range(config.layers))
        self.projector = _perceptron(2 * width, config.hidden, config)
        self._inputs: dict[str, Graphs] = {}

    def prepare(self, domains: Domains) -> None:
        """Compute the eigenvectors and trees of all graphs."""
        self._inputs = {
            name: Graphs.concat([self._trees(part) for part in graphs.batches(PREPARED_NODES)])
            for name, graphs in domains.items()
        }

    def _trees(self, graphs: Graphs) -> Graphs:
        """Compute the trees of graphs, with the entries of eigenvectors as features."""
        trees = breadth_first_trees(graphs, self.config.root == "centre")
        return trees.with_features(laplacian_features(graphs, self.config.width))

    def _tokens(
        self, batch: Batch, trees: Batch, chosen: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute e [N, w], h and s [N, 1 + w] after all layers, of all or of chosen nodes."""
        first = (
            space.from_origin(start(trees.x))
            for space, start in zip((HYPERBOLOID, SPHERE), self.starts, strict=True)
        )
        h, s = (
            space.mean(points, batch.neighbour_sums(points))
            for space, points in zip((HYPERBOLOID, SPHERE), first, strict=True)
        )
        e = self.euclidean(trees.x)
        fields = self._receptive_fields(batch, trees, chosen)
        for layer, (edges, tree_edges, kept) in zip(self.layers, fields, strict=True):
            e, h, s = layer(e, h, s, edges, tree_edges, kept)
        return e, h, s

    def _receptive_fields(
        self, batch: Batch, trees: Batch, chosen: Tensor | None
    ) -> list[tuple[Batch, Batch, Tensor | None]]:
        """Restrict every layer to the nodes that the output of the chosen nodes, bool [N], needs.

        Returns for each layer the graphs and trees that it works on, and the indices of the nodes
        that the next layer needs; None for all.
        """
        if chosen is None:
            return [(batch, trees, None)] * len(self.layers)
        fields: list[tuple[Batch, Batch, Tensor | None]] = []
        for _ in self.layers[1:]:
            needed = batch.with_neighbours(chosen) | trees.with_neighbours(chosen)
            pair = batch.edges_touching(chosen, needed), trees.edges_touching(chosen, needed)
            fields.append((*pair, chosen[needed].nonzero()[:, 0]))
            chosen = needed
        fields.append((batch, trees, chosen.nonzero()[:, 0]))
        return fields[::-1]

    def loss(self, batch: Batch) -> Tensor:
        groups = itertools.groupby(batch.members, key=lambda member: member[0])
        inputs = [self._inputs[name][[number for _, number in group]] for name, group in groups]
        trees = Batch.of(Graphs.concat(inputs))
        chosen = torch.zeros(batch.num_nodes, dtype=torch.bool)
        chosen[torch.randperm(batch.num_nodes)[: self.config.nodes]] = True
        parts, tree_parts = (whole.split(2 * self.config.width) for whole in (batch, trees))
        own = chosen.split([part.num_nodes for part in parts])
        tokens = [self._tokens(*part) for part in zip(parts, tree_parts, own, strict=True)]
        e, h, s = (torch.cat(rows) for rows in zip(*tokens, strict=True))
        first, second = (
            self.projector(
                torch.cat([space.to_origin(points), space.transport_to_origin(points, e)], 1)
            )
            for space, points in ((HYPERBOLOID, h), (SPHERE, s))
        )
        return symmetric_infonce(first, second, self.config.temperature)

    def states(self, batch: Batch) -> Tensor:
        _, h, s = self._tokens(batch, Batch.of(self._trees(batch.to_graphs())))
        tangents = [HYPERBOLOID.to_origin(h), SPHERE.to_origin(s)]
        return torch.cat([*tangents, batch.x] if self.config.with_features else tangents, 1)


def _attend(query: Tensor, key: Tensor, value: Tensor, batch: Batch) -> Tensor:
    return product_attention(unit(query), unit(key), value, batch.row_ptr, batch.col)


def _attention(width: int) -> nn.ModuleList:
    return nn.ModuleList(Linear(width, width) for _ in range(3))


def _perceptron(width: int, out: int, config: RiemannGFMConfig) -> nn.Sequential:
    return nn.Sequential(
        Linear(width, config.hidden), nn.ReLU(), Dropout(config.dropout), Linear(config.hidden, out)
    )
