r"""RiemannGFM: trees in hyperbolic space and cycles on a sphere, contrasted with one another.

A node's input is structure alone: its entries in the Laplacian's 32 first eigenvectors
(:mod:`artlas_paper.methods.spectra`). From these come a Euclidean vector e and points h of the
hyperboloid and s of the sphere (:mod:`artlas_paper.methods.hyperbolic_maps`): a linear map in the tangent
space of the origin, then the mean over the node and its neighbours, on the manifold. Each layer is

.. math:: h \leftarrow \mathrm{mean}(h,\, att(s \to h; tree)), \quad
    s \leftarrow \exp_s(\Pi_s\, att(h \to s; edges)), \quad
    e \leftarrow e + MLP[PT_{h \to o} \Pi_h e \,\|\, PT_{s \to o} \Pi_s e]

where the query of an attention is of the other manifold, weights are softmaxes over neighbours in
the breadth-first tree or in the graph, :math:`\Pi` projects onto a tangent space and PT carries to
the origin. With :math:`p^H = MLP[\log_o h \,\|\, PT \Pi_h e]`, :math:`p^S` likewise by the same
MLP, and cosines c over sampled nodes:

.. math:: \mathcal L = -\tfrac12 \sum_{(P, Q)} \mathrm{mean}_i \log
    \frac{e^{c(P_i, Q_i) / 0.2}}{\sum_j e^{c(P_i, Q_j) / 0.2}}, \quad
    (P, Q) \in \{(p^H, p^S), (p^S, p^H)\}

The frozen vector is :math:`[\log_o h \,\|\, \log_o s \,\|\, x]`, the mean over nodes or the row of
the centre. The features x stand beside it as in the released code, whose classifier reads both;
``with_features=False`` leaves them out.

Other than in the released code: inputs have exactly 32 columns (graphs of fewer than 34 nodes broke
it), do not depend on the arbitrary signs and bases of an eigensolver, and are scaled by
:math:`\sqrt n`; one tree a graph, rooted at the centre of an ego-graph and at the node of highest
degree otherwise, instead of one for every sampled seed on copies of the whole graph; domains are
trained together in balanced batches, with the paper's optimiser, width (64) and no rounds; whole
graphs are learnt from, which it had no code for; values that are not finite cannot arise from
tangents beyond float32's range, because these are cut, and no batch is skipped. Chosen, for sources
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
from artlas_paper.methods.base import Baseline, BaselineConfig, Domains
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.hyperbolic_maps import Manifold
from artlas_paper.methods.layers import Dropout, Linear, cosine
from artlas_paper.methods.spectra import forest, spectra

HYPERBOLOID, SPHERE = Manifold(-1), Manifold(1)
PART = 25_600  # nodes whose structure is found at a time


@dataclass(frozen=True)
class RiemannConfig(BaselineConfig):
    """Settings of RiemannGFM; hidden is the inner width of its perceptrons.

    width: of inputs and of both manifolds; temperature: of the loss; nodes: that it compares at
    most; root: of trees, the node of highest degree or the first one, a centre; with_features:
    whether x is part of the frozen vector.
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
        """Settings that fit these domains; trees of ego-graphs have the centre as root."""
        egos = all(isinstance(graphs, EgoGraphs) for graphs in domains.values())
        return super().for_domains(domains, **{"root": "centre" if egos else "degree", **options})


class Layer(nn.Module):
    """One round of both attentions and of the Euclidean vector."""

    def __init__(self, config: RiemannConfig) -> None:
        super().__init__()
        width = config.width
        self.from_sphere, self.from_tree = _attention(width), _attention(width)
        self.euclidean = _perceptron(2 * width, width, config)

    def forward(
        self, e: Tensor, h: Tensor, s: Tensor, batch: Batch, trees: Batch, chosen: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The three of all nodes, or of those that are chosen."""
        flat_h, flat_s = HYPERBOLOID.to_origin(h), SPHERE.to_origin(s)
        query, key, value = self.from_sphere
        sent = HYPERBOLOID.from_origin(value(flat_h))
        h = HYPERBOLOID.mean(h, _attend(query(flat_s), key(flat_h), sent, trees))
        query, key, value = self.from_tree
        sent, flat_h = SPHERE.from_origin(value(flat_s)), HYPERBOLOID.to_origin(h)
        moved = _attend(query(flat_h), key(flat_s), sent, batch)
        if chosen is not None:
            e, h, s, moved = (rows.index_select(0, chosen) for rows in (e, h, s, moved))
        s = SPHERE.walk(s, moved)
        carried = [HYPERBOLOID.carried(h, e), SPHERE.carried(s, e)]
        return e + self.euclidean(torch.cat(carried, 1)), h, s


class RiemannGFM(Baseline):
    """The model; see the module."""

    name = "riemanngfm"
    Config = RiemannConfig
    config: RiemannConfig

    def build(self) -> None:
        config = self.config
        width = config.width
        self.euclidean = _perceptron(width, width, config)
        self.starts = nn.ModuleList(Linear(width, width) for _ in range(2))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.projector = _perceptron(2 * width, config.hidden, config)
        self._known: dict[str, Graphs] = {}

    def prepare(self, domains: Domains) -> None:
        """Find eigenvectors and trees of all graphs."""
        self._known = {
            name: Graphs.concat([self._structure(part) for part in graphs.batches(PART)])
            for name, graphs in domains.items()
        }

    def _structure(self, graphs: Graphs) -> Graphs:
        """The trees, with the entries of eigenvectors as features."""
        trees = forest(graphs, self.config.root == "centre")
        return trees.with_features(spectra(graphs, self.config.width))

    def _tokens(
        self, batch: Batch, trees: Batch, chosen: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """e [N, w], h and s [N, 1 + w] after all layers, of all nodes or those chosen, bool [N]."""
        first = (
            space.from_origin(start(trees.x))
            for space, start in zip((HYPERBOLOID, SPHERE), self.starts, strict=True)
        )
        h, s = (
            space.mean(points, batch.neighbour_sums(points))
            for space, points in zip((HYPERBOLOID, SPHERE), first, strict=True)
        )
        e = self.euclidean(trees.x)
        views = self._views(batch, trees, chosen)
        for layer, (around, below, kept) in zip(self.layers, views, strict=True):
            e, h, s = layer(e, h, s, around, below, kept)
        return e, h, s

    def _views(
        self, batch: Batch, trees: Batch, chosen: Tensor | None
    ) -> list[tuple[Batch, Batch, Tensor | None]]:
        """What each layer sees, and which of its nodes the next one needs, [n]; None for all.

        The last must give the chosen nodes, bool [N], and so each layer theirs and their neighbours
        of the one that follows.
        """
        if chosen is None:
            return [(batch, trees, None)] * len(self.layers)
        views: list[tuple[Batch, Batch, Tensor | None]] = []
        for _ in self.layers[1:]:
            given = batch.around(chosen) | trees.around(chosen)
            pair = batch.towards(chosen, given), trees.towards(chosen, given)
            views.append((*pair, chosen[given].nonzero()[:, 0]))
            chosen = given
        views.append((batch, trees, chosen.nonzero()[:, 0]))
        return views[::-1]

    def loss(self, batch: Batch) -> Tensor:
        groups = itertools.groupby(batch.members, key=lambda member: member[0])
        known = [self._known[name][[number for _, number in group]] for name, group in groups]
        trees = Batch.of(Graphs.concat(known))
        chosen = torch.zeros(batch.num_nodes, dtype=torch.bool)
        chosen[torch.randperm(batch.num_nodes)[: self.config.nodes]] = True
        parts, below = (whole.parts(2 * self.config.width) for whole in (batch, trees))
        own = chosen.split([part.num_nodes for part in parts])
        made = [self._tokens(*part) for part in zip(parts, below, own, strict=True)]
        e, h, s = (torch.cat(rows) for rows in zip(*made, strict=True))
        first, second = (
            self.projector(torch.cat([space.to_origin(points), space.carried(points, e)], 1))
            for space, points in ((HYPERBOLOID, h), (SPHERE, s))
        )
        return contrast(first, second, self.config.temperature)

    def states(self, batch: Batch) -> Tensor:
        graphs = Graphs(batch.node_ptr, batch.row_ptr, batch.col)
        _, h, s = self._tokens(batch, Batch.of(self._structure(graphs)))
        made = [HYPERBOLOID.to_origin(h), SPHERE.to_origin(s)]
        return torch.cat([*made, batch.x] if self.config.with_features else made, 1)


def contrast(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Symmetric InfoNCE of rows [n, c] that belong together."""
    similar = (cosine(first, second) - 1) / temperature  # at most 0, and not too small for exp
    alike, weights = similar.diagonal().mean(), similar.exp()
    return (weights.sum(0).log() + weights.sum(1).log()).mean() / 2 - alike


def _attend(query: Tensor, key: Tensor, value: Tensor, batch: Batch) -> Tensor:
    return product_attention(unit(query), unit(key), value, batch.row_ptr, batch.col)


def _attention(width: int) -> nn.ModuleList:
    return nn.ModuleList(Linear(width, width) for _ in range(3))


def _perceptron(width: int, out: int, config: RiemannConfig) -> nn.Sequential:
    return nn.Sequential(
        Linear(width, config.hidden), nn.ReLU(), Dropout(config.dropout), Linear(config.hidden, out)
    )
