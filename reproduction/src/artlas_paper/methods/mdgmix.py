r"""MDGMIX (Zheng et al.): what graphs that were mixed within and across domains are made of.

A mix fuses two graphs at one node of each, u and v, to a node with both neighbourhoods and the
features :math:`\lambda x_u + (1 - \lambda) x_v`. Half of the mixes are of graphs of the same domain
(random nodes, :math:`\lambda = 1/2`), half of two domains, at nodes at their boundary. With the
mean g of a mix's states, its kind s (same or cross) and its composition y (one-hot, or
:math:`\lambda` and :math:`1 - \lambda`),

.. math:: \mathcal L = \frac1M \sum_m \big[ CE(a(g_m), s_m) + KL(y_m \,\|\,
    \mathrm{softmax}\, b(R(g_m))) \big]

where R reverses the gradient: b learns the composition, and the encoder to hide it. The frozen
vector is the mean of the states of an unmixed graph, that of a centre its state.

A domain's centre is the mean of its nodes' features. A node of domain d is at the boundary to d' if
:math:`|\, \|x - c_d\| - \|x - c_{d'}\| \,|` is among the least ``boundary`` share of its domain,
and at its domain's boundary if it is so for all d' (for any, if no node of the domain is for all).
Of ``sampled`` such nodes of either domain the pair of the largest cosine is fused, a random one if
that is below 0.3, with :math:`\lambda = 1/2` above 0.8 and from Beta(0.2, 0.2) else.

Other than the authors' GCN (2 x 256): the paper's three layers, each after batch normalisation and
followed by leaky ReLU. What else differs, or is mended, in the released code:

- Mixes are drawn from the batch anew at every step, as many as it has graphs; there some ten of
  either kind are made once. Whole graphs and ego-graphs are fused, not 1-hop subgraphs, so that
  none must be filled up with nodes of the same label.
- A batch has few boundary nodes of a domain: the nodes nearest to it are taken until there are as
  many as are sampled. Nodes with the same features are at the boundary together.
- Nodes are sampled with replacement; where no pair is alike, no other domains are tried.
- There the soft-max precedes a cross entropy that has its own: here it is applied once.
- There predicted kinds, 0 and 1, are taken as row numbers, so that the composition loss sees the
  first two mixes alone: here it is over all.
- Batch normalisation is frozen when graphs are embedded, where the released code forgets to; so
  that features which the sources hardly have do not outweigh all others in a target that has them,
  the first one has a least variance. PCA and the norm of rows fall away: features have one width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from artlas import checks
from artlas.nodes.ego import EgoGraphs
from artlas_paper.kernels import unit
from artlas_paper.methods.base import Baseline, BaselineConfig, Domains
from artlas_paper.methods.batch import Batch, Shared, through
from artlas_paper.methods.layers import GCN, BatchNorm, Dropout, GCNLayer

ALIKE, CLOSE = 0.3, 0.8  # cosines above which a pair is chosen, and mixed half and half
BETA = 0.2
LEAST_VARIANCE = 1e-2  # of a feature: rarer ones are not enlarged more than tenfold


@dataclass(frozen=True)
class MDGMIXConfig(BaselineConfig):
    """boundary: share of a domain's nodes that is nearest to another; sampled: nodes of either
    domain that a pair is chosen from; dropout: of the composition's predictor."""

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
    """The nodes [M] that graphs are fused at, and the share [M] of the first in the features."""

    first: Tensor
    second: Tensor
    share: Tensor


class MDGMIX(Baseline):
    """An encoder, domain centres, and two predictors that are discarded."""

    name = "mdgmix"
    Config = MDGMIXConfig
    config: MDGMIXConfig
    centres: Tensor
    limits: Tensor
    agreed: Tensor

    def build(self) -> None:
        config, hidden, count = self.config, self.config.hidden, len(self.config.domains)
        self.encoder = GCN(config.features, hidden, config.layers, activation=nn.LeakyReLU)
        widths = [config.features] + [hidden] * (config.layers - 1)
        norms = [BatchNorm(width) for width in widths]
        norms[0].eps = LEAST_VARIANCE
        self.norms = nn.ModuleList(norms)
        self.kind = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 2))
        self.composition = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), Dropout(config.dropout), nn.Linear(hidden, count)
        )
        # limits[d, e]: the largest margin of domain d's boundary to e; -1 where there is none
        self.register_buffer("centres", torch.zeros(count, config.features))
        self.register_buffer("limits", torch.full((count, count), -1.0))
        self.register_buffer("agreed", torch.zeros(count, dtype=torch.bool))

    def prepare(self, domains: Domains) -> None:
        wholes = [g.graph if isinstance(g, EgoGraphs) else g for g in domains.values()]
        xs = [torch.ones(g.num_nodes, 1) if g.x is None else g.x for g in wholes]
        for d, x in enumerate(xs):
            self.centres[d] = x.mean(0)
        for d, x in enumerate(xs):
            found = margins(self._distances(x), torch.full((len(x),), d))
            count = max(1, int(len(x) * self.config.boundary))
            for e in range(len(xs)):
                if e != d:
                    least = found[:, e].kthvalue(count).values
                    self.limits[d, e] = least * (1 + 1e-6)
            within = (found <= self.limits[d]) | (self.limits[d] < 0)
            self.agreed[d] = within.all(1).any()

    def loss(self, batch: Batch) -> Tensor:
        same, cross = self._same(batch), self._cross(batch)
        pairs = Pairs(*(torch.cat(parts) for parts in zip(same, cross, strict=True)))
        mixed = fuse(batch, pairs)
        vectors = mixed.mean_pool(self.states(mixed))
        kind = (torch.arange(len(pairs.first)) >= len(same.first)).long()
        one = nn.functional.cross_entropy(self.kind(vectors), kind)
        made_of = self.composition(_Reverse.apply(vectors)).log_softmax(1)
        wanted = self._compositions(batch, pairs)
        return one + nn.functional.kl_div(made_of, wanted, reduction="batchmean")

    def states(self, batch: Batch) -> Tensor:
        x: Tensor | Shared = batch.features
        for number, after in enumerate(self.encoder.after):
            layer = self.encoder.layers[number]
            assert isinstance(layer, GCNLayer)
            x = after(layer(self._normalised(number, x), batch))
        assert isinstance(x, Tensor)
        return x

    def _normalised(self, number: int, x: Tensor | Shared) -> Tensor | Shared:
        norm = self.norms[number]
        assert isinstance(norm, BatchNorm)
        return norm.of_shared(x) if isinstance(x, Shared) else norm(x)

    def _distances(self, x: Tensor) -> Tensor:
        """|x - c_e| for every domain e, [n, D]."""
        exact = "donot_use_mm_for_euclid_dist"
        return torch.cdist(x, self.centres, compute_mode=exact)

    def beyond(self, batch: Batch) -> Tensor:
        """How far nodes are from the boundary of their domain, [N]: not above 0 at it."""
        domain = batch.domain[batch.graph_of]
        limits = self.limits[domain]
        over = margins(through(self._distances, batch.features), domain) - limits
        most = over.masked_fill(limits < 0, -torch.inf).amax(1)
        least = over.masked_fill(limits < 0, torch.inf).amin(1)
        return torch.where(self.agreed[domain], most, least)

    def _same(self, batch: Batch) -> Pairs:
        """Random nodes of two graphs of a domain; of one twice, if it is the only one."""
        count = max(1, batch.num_graphs // 2)
        order = batch.domain.argsort(stable=True)
        present, sizes = batch.domain.unique(return_counts=True)
        own = torch.randint(len(present), (count,))
        begin, size = (sizes.cumsum(0) - sizes)[own], sizes[own]
        one = _below(size)
        other = (one + 1 + _below((size - 1).clamp_min(1))) % size
        chosen = [order[begin + place] for place in (one, other)]
        first, second = (batch.node_ptr[g] + _below(batch.sizes[g]) for g in chosen)
        return Pairs(first, second, torch.full((count,), 0.5))

    def _cross(self, batch: Batch) -> Pairs:
        """Boundary nodes of two domains that are alike; none if the batch is of one domain."""
        present = batch.domain.unique()
        count = batch.num_graphs // 2 if len(present) > 1 else 0
        if count == 0:
            none = torch.zeros(0, dtype=torch.int64)
            return Pairs(none, none, torch.zeros(0))
        beyond, domain = self.beyond(batch), batch.domain[batch.graph_of]
        near = [_nearest(beyond, domain == d, self.config.sampled) for d in present.tolist()]
        sizes = torch.tensor([len(nodes) for nodes in near])
        nodes, begin = torch.cat(near), sizes.cumsum(0) - sizes
        one = torch.randint(len(present), (count,))
        other = (one + 1 + torch.randint(len(present) - 1, (count,))) % len(present)
        first, second = (
            nodes[begin[d, None] + _below(sizes[d, None].expand(-1, self.config.sampled))]
            for d in (one, other)
        )
        like, best = (unit(batch.x_of(first)) @ unit(batch.x_of(second)).mT).flatten(1).max(1)
        best = torch.where(like > ALIKE, best, 0)  # the first of either is random
        rows, columns = best // self.config.sampled, best % self.config.sampled
        drawn = torch.distributions.Beta(BETA, BETA).sample((count,))
        share = torch.where(like > CLOSE, 0.5, drawn)
        each = torch.arange(count)
        return Pairs(first[each, rows], second[each, columns], share)

    def _compositions(self, batch: Batch, pairs: Pairs) -> Tensor:
        """Shares of the domains in the mixes, [M, D]."""
        made = torch.zeros(len(pairs.first), len(self.config.domains))
        for nodes, share in ((pairs.first, pairs.share), (pairs.second, 1 - pairs.share)):
            made.scatter_add_(1, batch.domain[batch.graph_of[nodes]][:, None], share[:, None])
        return made


def margins(far: Tensor, domain: Tensor) -> Tensor:
    """| |x - c_d| - |x - c_e| | for nodes of domains d and every e, [n, D], of distances [n, D]."""
    return (far - far.gather(1, domain[:, None])).abs()


def fuse(batch: Batch, pairs: Pairs) -> Batch:
    """The mixes of pairs of graphs, each fused at a node of both.

    In a mix the fused node comes last of the first graph's nodes and first of the second's: the
    rows of both lie side by side in the CSR, and are one when the boundary between them is left
    out.
    """
    mixes = len(pairs.first)
    at = torch.stack([pairs.first, pairs.second], 1).flatten()  # [2 M], graph by graph
    graph = batch.graph_of[at]
    begin, sizes = batch.node_ptr[graph], batch.sizes[graph]
    ptr = _pointer(sizes)
    shift = begin - ptr[:-1]
    source = torch.arange(int(ptr[-1])) + shift.repeat_interleave(sizes)
    place = torch.arange(len(source))  # of every node before nodes change places
    now, goal = at - shift, ptr[:-1].clone()
    goal[0::2] = ptr[1::2] - 1
    place[now], place[goal] = goal, now
    source = source[place]

    second = torch.zeros(len(source), dtype=torch.bool)
    second[ptr[1:-1:2]] = True
    number = (torch.arange(len(source)) - second.cumsum(0)).to(torch.int32)
    degree = batch.degree[source]
    row_ptr = _pointer(degree)
    entries = torch.arange(int(row_ptr[-1]))
    entries += (batch.row_ptr[source] - row_ptr[:-1]).repeat_interleave(degree)
    per_graph = row_ptr[ptr].diff()
    col = batch.col[entries] - shift.to(torch.int32).repeat_interleave(per_graph)

    features = batch.features
    known = features if isinstance(features, Shared) else Shared.of(features)
    rows = known.rows[source[~second]]
    rows[number[goal[0::2]].long()] = len(known.table) + torch.arange(mixes)
    one, other = batch.x_of(pairs.first), batch.x_of(pairs.second)
    fused = torch.lerp(other, one, pairs.share.to(one.dtype)[:, None])
    return Batch(
        node_ptr=ptr[0::2] - torch.arange(mixes + 1),
        row_ptr=torch.cat([row_ptr[:-1][~second], row_ptr[-1:]]),
        col=number[place][col],
        features=Shared(torch.cat([known.table, fused]), rows),
        domain=batch.domain[graph[0::2]],
    )


class _Reverse(torch.autograd.Function):
    """The identity with a reversed gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return -grads[0]


def _nearest(beyond: Tensor, own: Tensor, least: int) -> Tensor:
    """The nodes of a domain at its boundary; if these are few, the ``least`` nearest to it."""
    nodes = own.nonzero()[:, 0]
    values = beyond[nodes]
    limit = values.kthvalue(min(least, len(nodes))).values.clamp_min(0)
    return nodes[values <= limit]


def _below(sizes: Tensor) -> Tensor:
    """Random integers from 0 to below the sizes."""
    return (torch.rand(sizes.shape, dtype=torch.float64) * sizes).long()


def _pointer(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
