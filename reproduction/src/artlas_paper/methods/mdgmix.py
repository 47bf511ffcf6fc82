r"""MDGMIX: multi-domain graph pretraining on mixed graphs, Zheng et al.

"MDGMIX: Boundary-Aware Subgraph Mixing for Multi-Domain Graph Pre-Training", ICML 2026. Graphs are
fused within and across domains, and the encoder learns what a fused graph is composed of.

A mix fuses two graphs at one node of each, u and v, into a node with both neighbourhoods and the
features :math:`\lambda x_u + (1 - \lambda) x_v`. Half of the mixes are of graphs of the same domain
(random nodes, :math:`\lambda = 1/2`), half of two domains, at nodes at their boundary. With the
mean g of a mix's states, its kind s (same or cross) and its composition y (one-hot, or
:math:`\lambda` and :math:`1 - \lambda`),

.. math:: \mathcal L = \frac1M \sum_m \big[ CE(a(g_m), s_m) + KL(y_m \,\|\,
    \mathrm{softmax}\, b(R(g_m))) \big]

where R reverses the gradient: b learns the composition, and the encoder learns to hide it. The GCN
encoder and the predictors a and b are trained; the predictors are then discarded, and the encoder
is frozen. The frozen vector is the mean of the states of an unmixed graph, or the centre's state.

A domain's centre is the mean of its nodes' features. A node of domain d is at the boundary to d' if
:math:`|\, \|x - c_d\| - \|x - c_{d'}\| \,|` is among the smallest ``boundary`` share of its domain,
and at its domain's boundary if this holds for all d' (for any d', if no node of the domain is at
all of them). Of ``sampled`` such nodes of either domain, the pair with the largest cosine is fused,
or a random pair if that cosine is below 0.3; :math:`\lambda` is 1/2 if it is above 0.8, and drawn
from Beta(0.2, 0.2) otherwise.

Instead of the authors' GCN (2 x 256), the encoder has the SCGFM-ART paper's three layers, each
after batch normalisation and followed by a leaky ReLU. Other differences from the released code,
and faults of it that are mended:

- Mixes are drawn from the batch anew at every step, as many as it has graphs; the released code
  makes about ten of either kind once. Whole graphs and ego-graphs are fused, not 1-hop subgraphs,
  so that none must be filled up with nodes of the same label.
- A batch has few boundary nodes of a domain: if there are fewer than are sampled, the nodes nearest
  to the boundary are added. Nodes with the same features are at the boundary together.
- Nodes are sampled with replacement; if no pair is similar, no other domains are tried.
- In the released code a softmax precedes a cross entropy that has its own; here it is applied once.
- In the released code the predicted kinds, 0 and 1, are used as row numbers, so that the
  composition loss sees the first two mixes only; here it is over all mixes.
- Batch normalisation is frozen when graphs are embedded, which the released code omits. The first
  one has a minimum variance, so that features that the sources hardly have do not outweigh all
  others in a target that has them. PCA and row normalisation are not needed: features have one
  width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from artlas import checks
from artlas_paper.kernels import unit
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch, features_or_ones
from artlas_paper.methods.domains import Domains, whole_graphs
from artlas_paper.methods.layers import BatchNorm, Dropout, GCNEncoder, gcn_layer
from artlas_paper.methods.shared_features import Features, SharedFeatures, map_nodes
from artlas_paper.methods.sparse_matmul import pointer
from artlas_paper.methods.views import random_below

SIMILAR, CLOSE = 0.3, 0.8  # cosines above which a pair is chosen, and mixed half and half
BETA = 0.2  # both parameters of the distribution of lambda
LEAST_VARIANCE = 1e-2  # of a feature: rare ones are enlarged tenfold at most


@dataclass(frozen=True)
class MDGMIXConfig(BaselineConfig):
    """Settings of MDGMIX.

    boundary: the share of a domain's nodes at its boundary to another; sampled: how many nodes of
    either domain a pair is chosen from; dropout: of the composition's predictor.
    """

    boundary: float = 0.1
    sampled: int = 10
    dropout: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(self, "boundary")
        checks.fraction(self, "dropout")
        checks.integer(self, "sampled")
        if self.boundary > 1:
            raise ValueError(f"MDGMIXConfig.boundary must be at most 1, got {self.boundary!r}.")


class Pairs(NamedTuple):
    """The nodes [M] at which graphs are fused, and the first one's share [M] in the features."""

    first: Tensor
    second: Tensor
    share: Tensor


class MDGMIX(Baseline):
    """A GCN encoder; domain centres and two predictors that are discarded."""

    name = "mdgmix"
    Config = MDGMIXConfig
    config: MDGMIXConfig
    centres: Tensor
    limits: Tensor
    agreed: Tensor

    def build(self) -> None:
        config, hidden, count = self.config, self.config.hidden, len(self.config.domains)
        self.encoder = GCNEncoder(config.features, hidden, config.layers, activation=nn.LeakyReLU)
        widths = [config.features] + [hidden] * (config.layers - 1)
        norms = [BatchNorm(width) for width in widths]
        norms[0].eps = LEAST_VARIANCE
        self.norms = nn.ModuleList(norms)
        self.kind = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 2))
        self.composition = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), Dropout(config.dropout), nn.Linear(hidden, count)
        )
        # limits[d, e]: the largest margin of a node at domain d's boundary to e; -1: no boundary
        # agreed[d]: whether some node of domain d is at its boundary to all other domains
        self.register_buffer("centres", torch.zeros(count, config.features))
        self.register_buffer("limits", torch.full((count, count), -1.0))
        self.register_buffer("agreed", torch.zeros(count, dtype=torch.bool))

    def prepare(self, domains: Domains) -> None:
        """Compute the domains' centres, and the limits of their boundaries."""
        xs = [features_or_ones(whole_graphs(graphs)) for graphs in domains.values()]
        for d, x in enumerate(xs):
            self.centres[d] = x.mean(0)
        for d, x in enumerate(xs):
            own = margins(self._distances(x), torch.full((len(x),), d))
            count = max(1, int(len(x) * self.config.boundary))
            for e in range(len(xs)):
                if e != d:
                    largest = own[:, e].kthvalue(count).values
                    self.limits[d, e] = largest * (1 + 1e-6)
            within = (own <= self.limits[d]) | (self.limits[d] < 0)
            self.agreed[d] = within.all(1).any()

    def loss(self, batch: Batch) -> Tensor:
        same, cross = self._same_domain_pairs(batch), self._cross_domain_pairs(batch)
        pairs = Pairs(*(torch.cat(parts) for parts in zip(same, cross, strict=True)))
        mixed = fuse(batch, pairs)
        vectors = mixed.mean_pool(self.states(mixed))
        kind = (torch.arange(len(pairs.first)) >= len(same.first)).long()
        kind_loss = nn.functional.cross_entropy(self.kind(vectors), kind)
        predicted = self.composition(_ReverseGradient.apply(vectors)).log_softmax(1)
        target = self._compositions(batch, pairs)
        return kind_loss + nn.functional.kl_div(predicted, target, reduction="batchmean")

    def states(self, batch: Batch) -> Tensor:
        x: Features = batch.features
        for number, after in enumerate(self.encoder.after):
            layer = gcn_layer(self.encoder.layers, number)
            x = after(layer(self._normalise(number, x), batch))
        assert isinstance(x, Tensor)
        return x

    def _normalise(self, number: int, x: Features) -> Features:
        norm = self.norms[number]
        assert isinstance(norm, BatchNorm)
        return norm.normalise_shared(x) if isinstance(x, SharedFeatures) else norm(x)

    def _distances(self, x: Tensor) -> Tensor:
        """Compute |x - c_e| for every domain e, [n, D]."""
        exact = "donot_use_mm_for_euclid_dist"
        return torch.cdist(x, self.centres, compute_mode=exact)

    def boundary_excess(self, batch: Batch) -> Tensor:
        """Compute by how much nodes exceed their domain's boundary, [N]: at most 0 at it."""
        domain = batch.domain[batch.graph_of]
        limits = self.limits[domain]
        excess = margins(map_nodes(self._distances, batch.features), domain) - limits
        largest = excess.masked_fill(limits < 0, -torch.inf).amax(1)
        smallest = excess.masked_fill(limits < 0, torch.inf).amin(1)
        return torch.where(self.agreed[domain], largest, smallest)

    def _same_domain_pairs(self, batch: Batch) -> Pairs:
        """Draw random nodes of two graphs of a domain, or twice of one if it is the only one."""
        count = max(1, batch.num_graphs // 2)
        order = batch.domain.argsort(stable=True)
        present, sizes = batch.domain.unique(return_counts=True)
        own = torch.randint(len(present), (count,))
        begin, size = (sizes.cumsum(0) - sizes)[own], sizes[own]
        places = random_below(size), random_below((size - 1).clamp_min(1))
        graphs = order[begin + places[0]], order[begin + (places[0] + 1 + places[1]) % size]
        first, second = (batch.node_ptr[g] + random_below(batch.sizes[g]) for g in graphs)
        return Pairs(first, second, torch.full((count,), 0.5))

    def _cross_domain_pairs(self, batch: Batch) -> Pairs:
        """Draw similar boundary nodes of two domains; none if the batch has one domain only."""
        present = batch.domain.unique()
        count = batch.num_graphs // 2 if len(present) > 1 else 0
        if count == 0:
            none = torch.zeros(0, dtype=torch.int64)
            return Pairs(none, none, torch.zeros(0))
        excess, domain = self.boundary_excess(batch), batch.domain[batch.graph_of]
        near = [_boundary(excess, domain == d, self.config.sampled) for d in present.tolist()]
        sizes = torch.tensor([len(nodes) for nodes in near])
        nodes, begin = torch.cat(near), sizes.cumsum(0) - sizes
        one = torch.randint(len(present), (count,))
        other = (one + 1 + torch.randint(len(present) - 1, (count,))) % len(present)
        first, second = (
            nodes[begin[d, None] + random_below(sizes[d, None].expand(-1, self.config.sampled))]
            for d in (one, other)
        )
        cosines = unit(batch.features_of(first)) @ unit(batch.features_of(second)).mT
        cosine, best = cosines.flatten(1).max(1)
        best = torch.where(cosine > SIMILAR, best, 0)  # the first pair is a random one
        rows, columns = best // self.config.sampled, best % self.config.sampled
        drawn = torch.distributions.Beta(BETA, BETA).sample((count,))
        share = torch.where(cosine > CLOSE, 0.5, drawn)
        mixes = torch.arange(count)
        return Pairs(first[mixes, rows], second[mixes, columns], share)

    def _compositions(self, batch: Batch, pairs: Pairs) -> Tensor:
        """Compute the shares of the domains in the mixes, [M, D]."""
        shares = torch.zeros(len(pairs.first), len(self.config.domains))
        for nodes, share in ((pairs.first, pairs.share), (pairs.second, 1 - pairs.share)):
            shares.scatter_add_(1, batch.domain[batch.graph_of[nodes]][:, None], share[:, None])
        return shares


def margins(distances: Tensor, domain: Tensor) -> Tensor:
    """Compute | |x - c_d| - |x - c_e| | for nodes of domains d [n] and every e, [n, D]."""
    return (distances - distances.gather(1, domain[:, None])).abs()


def fuse(batch: Batch, pairs: Pairs) -> Batch:
    """Fuse pairs of graphs, each at a node of both.

    In a mix, the node to fuse is the last of the first graph's nodes and the first of the second's:
    their rows are adjacent in the CSR, and become one row when the bound between them is removed.
    """
    mixes = len(pairs.first)
    at = torch.stack([pairs.first, pairs.second], 1).flatten()  # [2 M], graph by graph
    graph = batch.graph_of[at]
    begin, sizes = batch.node_ptr[graph], batch.sizes[graph]
    ptr = pointer(sizes)
    shift = begin - ptr[:-1]
    source = torch.arange(int(ptr[-1])) + shift.repeat_interleave(sizes)
    place = torch.arange(len(source))  # of every node, before nodes are swapped
    now, goal = at - shift, ptr[:-1].clone()
    goal[0::2] = ptr[1::2] - 1
    place[now], place[goal] = goal, now
    source = source[place]

    second = torch.zeros(len(source), dtype=torch.bool)
    second[ptr[1:-1:2]] = True
    number = (torch.arange(len(source)) - second.cumsum(0)).to(torch.int32)
    degree = batch.degree[source]
    row_ptr = pointer(degree)
    entries = torch.arange(int(row_ptr[-1]))
    entries += (batch.row_ptr[source] - row_ptr[:-1]).repeat_interleave(degree)
    per_graph = row_ptr[ptr].diff()
    col = batch.col[entries] - shift.to(torch.int32).repeat_interleave(per_graph)

    features = SharedFeatures.of(batch.features)
    rows = features.rows[source[~second]]
    rows[number[goal[0::2]].long()] = len(features.table) + torch.arange(mixes)
    u, v = batch.features_of(pairs.first), batch.features_of(pairs.second)
    fused = torch.lerp(v, u, pairs.share.to(u.dtype)[:, None])
    return Batch(
        node_ptr=ptr[0::2] - torch.arange(mixes + 1),
        row_ptr=torch.cat([row_ptr[:-1][~second], row_ptr[-1:]]),
        col=number[place][col],
        features=SharedFeatures(torch.cat([features.table, fused]), rows),
        domain=batch.domain[graph[0::2]],
    )


class _ReverseGradient(torch.autograd.Function):
    """Return values unchanged, and reverse their gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return -grads[0]


def _boundary(excess: Tensor, own: Tensor, least: int) -> Tensor:
    """Return the nodes of a domain at its boundary, or the ``least`` nearest if there are fewer."""
    nodes = own.nonzero()[:, 0]
    values = excess[nodes]
    limit = values.kthvalue(min(least, len(nodes))).values.clamp_min(0)
    return nodes[values <= limit]
