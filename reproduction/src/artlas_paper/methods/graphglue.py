r"""GraphGlue: multi-domain pretraining by gluing pieces of a manifold, Sun et al.

"Multi-Domain Riemannian Graph Gluing for Building Graph Foundation Models", ICLR 2026. Graphs are
points of a manifold with a frame of tangents from virtual nodes, and are glued along paths.

M learned vectors p are virtual nodes of every graph. Node m is linked to the k nodes of its graph
with the highest :math:`W p_m \cdot W x_i`, by weights :math:`\sigma(W p_m \cdot W x_i)`; a GCN runs
on real and virtual nodes together. With z the mean of the real ones and v the virtual ones,
tangents :math:`w_m` are :math:`v_m - z` orthogonalised, with their lengths restored, and the metric
is :math:`G = \mathrm{diag}(\|w_1\|^2, \dots, \|w_M\|^2)`. On normalised vectors, with
:math:`\tilde z_{im} = z_i + w_{im}`:

.. math:: \mathcal L_a = -\mathrm{mean}_{i, m} \log \frac{e^{-\|z_i - \tilde z_{im}\|^2}}
    {\sum_{j \ne i} e^{-\|z_i - z_j\|^2} + e^{-\|z_i - \tilde z_{im}\|^2}}, \quad
    \mathcal L_b = CE(\langle z_i, z_S \rangle_S,\, S(i))

.. math:: \mathcal L_c = \mathrm{mean}_{i - j - k} (\log r_{ij} - \log r_{jk})^2, \quad
    \log r_{ij} = \tfrac1M (\log \det G_i - \log \det G_j)

The prototypes :math:`z_S` and :math:`\log G_S` are running means over each source,
:math:`\mathcal L_b` counts after one epoch, and the loss is :math:`\mathcal L_a + \mathcal L_b +
0.1\, \mathcal L_c`. Paths are drawn from the graphs of k nearest z in the batch, once from source
to source and once within the sources. The GCN, the maps before it and the virtual nodes are trained
and then frozen. The frozen vector is :math:`[z \,\|\, \log G]`; for a centre, z is its state.

Differences from the released code, mostly faults that are mended: every layer takes the output of
the one before, where the code fed the raw input to all of them; virtual nodes see their own graph,
where attention over the whole batch gave all graphs the same neighbours; all links are used, where
the strongest was discarded; vectors are normalised, which was off; a term on tangents alone, which
is not in the paper, is left out. The holonomy :math:`\|P_{jk} P_{ij} - P_{ik}\|^2` with
:math:`P_{ij} = \sqrt{G_i / G_j}` is 0 for all diagonal metrics and is left out, too. Differences
from GraphGlue's paper: three layers, width and optimiser of the SCGFM-ART paper, one batch for all
three losses instead of three passes over the data, neighbours within a batch, and no prompts or
experts, which need labels. Choices where sources are silent: r is the ratio of volumes, by
dimension; the vectors of :math:`\mathcal L_b` are normalised like the others; there are no more
virtual nodes than dimensions; nodes with equal scores at the end of the k share the places that
are left, so that the numbering of nodes does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from artlas import checks
from artlas_paper.kernels import unit
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.domains import Domains
from artlas_paper.methods.graphglue_links import VirtualLinks
from artlas_paper.methods.layers import Dropout, GCNLayer, Linear, gcn_layer
from artlas_paper.methods.shared_features import SharedFeatures, map_nodes

TINY = 1e-6  # added to lengths that are divided by or logarithmised


@dataclass(frozen=True)
class GraphGlueConfig(BaselineConfig):
    """Settings of GraphGlue.

    virtual: M; neighbours: k, of virtual nodes and of graphs; dropout: between layers; temperature:
    of the first two losses; glue: the weight of the third; momentum: of the running means.
    """

    virtual: int = 32
    neighbours: int = 15
    dropout: float = 0.1
    temperature: float = 1.0
    glue: float = 0.1
    momentum: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(self, "virtual", "neighbours")
        checks.fraction(self, "dropout", "momentum")
        checks.positive(self, "temperature")
        checks.non_negative(self, "glue")

    @property
    def frame(self) -> int:
        """The number of virtual nodes: no more than vectors of this width can be orthogonal."""
        return min(self.virtual, self.hidden)


class GraphGlue(Baseline):
    """A GCN on the nodes of a graph and on learned virtual nodes."""

    name = "graphglue"
    Config = GraphGlueConfig
    config: GraphGlueConfig
    prototypes: Tensor
    metrics: Tensor
    seen: Tensor

    def build(self) -> None:
        config = self.config
        self.enter = Linear(config.features, config.hidden)
        self.nodes = nn.Parameter(nn.init.orthogonal_(torch.empty(config.frame, config.hidden)))
        self.compare = Linear(config.hidden, config.hidden, bias=False)
        self.convolutions = nn.ModuleList(
            GCNLayer(config.hidden, config.hidden) for _ in range(config.layers)
        )
        self.drop = Dropout(config.dropout)
        count = len(config.domains)
        self.register_buffer("prototypes", torch.zeros(count, config.hidden))
        self.register_buffer("metrics", torch.zeros(count, config.frame))
        self.register_buffer("seen", torch.zeros(count, dtype=torch.int64))
        self._epoch = 0

    def prepare(self, domains: Domains) -> None:
        """Count the graphs of an epoch."""
        self._epoch = sum(len(graphs) for graphs in domains.values())

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the states of real nodes [N, c], their means [G, c], and tangents [G, M, c]."""
        links, x, v = self._before_last(batch)
        layer = self._layer(-1)
        x, v = links.propagate(layer.transform(x), layer.transform(v), layer.bias)
        z = batch.mean_pool(x)
        return x, z, orthogonal(links.by_graph(v) - z[:, None])

    def frames(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Compute the means and tangents only.

        The last layer is linear, and so is applied to means over nodes.
        """
        links, x, v = self._before_last(batch)
        layer = self._layer(-1)
        z, v = (layer.transform(sums) + layer.bias for sums in links.propagate_pooled(x, v))
        return z, orthogonal(links.by_graph(v) - z[:, None])

    def _layer(self, number: int) -> GCNLayer:
        return gcn_layer(self.convolutions, number)

    def _before_last(self, batch: Batch) -> tuple[VirtualLinks, Tensor, Tensor]:
        """Compute the links, and the inputs of the last layer.

        These are the states of real nodes [N, c] and of virtual nodes [G M, c].
        """
        features = SharedFeatures.of(batch.features)
        mapped = SharedFeatures(self.enter(features.table), features.rows)
        # W p . W x = (W'W p) . x: fewer columns, and one product for each row of the table
        frame = self.compare(self.nodes) @ self.compare.weight
        links = VirtualLinks(batch, mapped.table @ frame.T, mapped.rows, self.config.neighbours)
        v = self.nodes.repeat(batch.num_graphs, 1)
        if self.config.layers == 1:
            return links, mapped.expand(), v
        x = map_nodes(self._layer(0).transform, mapped)
        for number in range(self.config.layers - 1):
            layer = self._layer(number)
            h = layer.transform(x) if number else x
            x, v = links.propagate(h, layer.transform(v), layer.bias)
            x, v = self.drop(torch.relu(x)), self.drop(torch.relu(v))
        return links, x, v

    def loss(self, batch: Batch) -> Tensor:
        config = self.config
        z, tangents = self.frames(batch)
        metric = log_metric(tangents)
        loss = local_loss(z, tangents, config.temperature)
        if int(self.seen.sum()) >= self._epoch:
            logits = unit(z) @ unit(self.prototypes).T / config.temperature
            known = self.seen > 0
            logits = logits.masked_fill(~known, -math.inf)
            loss = loss + cross_entropy(logits, batch.domain)
        same = batch.domain[:, None] == batch.domain
        volumes, distances = metric.mean(1), torch.cdist(z.detach(), z.detach())
        for allowed in (~same, same):
            loss = loss + config.glue * curvature(volumes, distances, allowed, config.neighbours)
        self._update_prototypes(batch, z.detach(), metric.detach())
        return loss

    def _update_prototypes(self, batch: Batch, z: Tensor, metric: Tensor) -> None:
        for number in batch.domain.unique().tolist():
            own = batch.domain == number
            kept = self.config.momentum if int(self.seen[number]) else 0.0
            self.prototypes[number].lerp_(z[own].mean(0), 1 - kept)
            self.metrics[number].lerp_(metric[own].mean(0), 1 - kept)
            self.seen[number] += int(own.sum())

    def states(self, batch: Batch) -> Tensor:
        """Join the states of nodes with the metric of their graph, [N, c + M]."""
        x, _, tangents = self.encode(batch)
        return torch.cat([x, log_metric(tangents)[batch.graph_of]], 1)


def orthogonal(vectors: Tensor) -> Tensor:
    """Orthogonalise vectors [G, M, c] one after the other, and restore their lengths.

    This is Q of a QR decomposition, by Cholesky's, which is differentiable for linearly dependent
    vectors, too.
    """
    lengths = vectors.norm(dim=2, keepdim=True)
    unit_vectors = vectors / (lengths + TINY)
    gram = unit_vectors @ unit_vectors.transpose(1, 2)
    factor = torch.linalg.cholesky(gram + 1e-3 * torch.eye(gram.shape[1]))
    straight = torch.linalg.solve_triangular(factor, unit_vectors, upper=False)
    return unit(straight) * lengths


def log_metric(tangents: Tensor) -> Tensor:
    """Compute log G of tangents [G, M, c], [G, M]."""
    return (tangents.square().sum(2) + TINY).log()


def local_loss(z: Tensor, tangents: Tensor, temperature: float) -> Tensor:
    """Compute the first loss: points along a graph's tangents are nearer than other graphs."""
    moved = unit(z[:, None] + tangents)
    z = unit(z)
    own = -(z[:, None] - moved).square().sum(2) / temperature
    others = (2 * z @ z.T - 2) / temperature
    others = others.masked_fill(torch.eye(len(z), dtype=torch.bool), -math.inf).logsumexp(1)
    return (torch.logaddexp(others[:, None], own) - own).mean()


def curvature(volumes: Tensor, distances: Tensor, allowed: Tensor, count: int) -> Tensor:
    """Compute the third loss on one random path of two steps from every graph; 0 without any.

    volumes [G]: mean log G; a step goes to one of the ``count`` nearest graphs, by distances
    [G, G], among those allowed, bool [G, G].
    """
    absent = ~allowed | torch.eye(len(distances), dtype=torch.bool)
    distances = distances.masked_fill(absent, math.inf)
    nearest = distances.topk(min(count, len(distances)), largest=False)
    known = nearest.values.isfinite().sum(1)
    first = torch.arange(len(distances))

    def step(graphs: Tensor) -> Tensor:
        drawn = (torch.rand(len(graphs)) * known[graphs]).long()
        return nearest.indices[graphs, drawn]

    middle = step(first)
    last = step(middle)
    is_path = (known[first] > 0) & (last != first)
    if not is_path.any():
        return volumes.new_zeros(())
    change = (volumes[first] - 2 * volumes[middle] + volumes[last])[is_path]
    return change.square().mean()
