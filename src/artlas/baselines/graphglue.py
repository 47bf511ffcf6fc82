r"""GraphGlue: graphs as points of a manifold, with frames from virtual nodes, glued along paths.

M learned vectors p are virtual nodes of every graph. Node m is linked to the k nodes of its graph
with the highest :math:`W p_m \cdot W x_i`, by weights :math:`\sigma(W p_m \cdot W x_i)`; a GCN runs
on real and virtual nodes together. With z the mean of the real ones and v of the virtual ones,
tangents :math:`w_m` are :math:`v_m - z` made orthogonal, with their lengths restored, and the
metric is :math:`G = \mathrm{diag}(\|w_1\|^2, \dots, \|w_M\|^2)`. On normalised vectors, with
:math:`\tilde z_{im} = z_i + w_{im}`:

.. math:: \mathcal L_a = -\mathrm{mean}_{i, m} \log \frac{e^{-\|z_i - \tilde z_{im}\|^2}}
    {\sum_{j \ne i} e^{-\|z_i - z_j\|^2} + e^{-\|z_i - \tilde z_{im}\|^2}}, \quad
    \mathcal L_b = CE(\langle z_i, z_S \rangle_S,\, S(i))

.. math:: \mathcal L_c = \mathrm{mean}_{i - j - k} (\log r_{ij} - \log r_{jk})^2, \quad
    \log r_{ij} = \tfrac1M (\log \det G_i - \log \det G_j)

:math:`z_S` and :math:`\log G_S` are running means over each source, :math:`\mathcal L_b` counts
after one epoch, and the loss is :math:`\mathcal L_a + \mathcal L_b + 0.1\, \mathcal L_c`. Paths are
drawn from the graphs of k nearest z in the batch, once from source to source and once within them.
The frozen vector is :math:`[z \,\|\, \log G]`, with the centre's state for z if that is
asked for.

Other than in the released code: every layer has the one before as input, where the code fed the raw
input to all of them; virtual nodes see their own graph, where attention over the whole batch gave
all graphs the same neighbours; all links are used, where the strongest was discarded; vectors are
normalised, which was off; a term on tangents alone, which is not the paper's, is left out. The
holonomy :math:`\|P_{jk} P_{ij} - P_{ik}\|^2` with :math:`P_{ij} = \sqrt{G_i / G_j}` is 0 for all
diagonal metrics and left out too. Other than in its paper: three layers, width and optimiser of the
comparison, one batch for all three losses instead of three passes over the data, neighbours within
a batch, no prompts or experts, which need labels. Chosen, for sources are silent: r is the ratio of
volumes, by dimension; vectors of :math:`\mathcal L_b` are normalised like the others; there are no
more virtual nodes than the width allows; nodes with the same score at the end of the k share the
places that are left, so that numbering does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from artlas import checks
from artlas.baselines.base import Baseline, BaselineConfig, Domains
from artlas.baselines.batch import Batch, through
from artlas.baselines.layers import Dropout, GCNLayer, Linear
from artlas.kernels import unit

TINY = 1e-6
SAME = 1e-5  # scores that differ less are one


@dataclass(frozen=True)
class GlueConfig(BaselineConfig):
    """Settings of GraphGlue.

    virtual: M; neighbours: k, of virtual nodes and of graphs; temperature: of the first two losses;
    glue: weight of the third; momentum: of the running means.
    """

    virtual: int = 32
    neighbours: int = 15
    dropout: float = 0.1
    temperature: float = 1.0
    glue: float = 0.1
    momentum: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole(self, "virtual", "neighbours")
        checks.share(self, "dropout", "momentum")
        checks.positive(self, "temperature")
        checks.not_negative(self, "glue")

    @property
    def frame(self) -> int:
        """How many virtual nodes there are: no more can be orthogonal than the space has room."""
        return min(self.virtual, self.hidden)


class GraphGlue(Baseline):
    """The model; see the module."""

    name = "graphglue"
    Config = GlueConfig
    config: GlueConfig
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
        """Note how many graphs an epoch has."""
        self._epoch = sum(len(graphs) for graphs in domains.values())

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """States of real nodes [N, c], their means [G, c], and tangents [G, M, c]."""
        config, blocks = self.config, _Blocks(batch)
        x = through(self.enter, batch.features)
        scores = blocks.of_nodes(self.compare(x) @ self.compare(self.nodes).T, -math.inf)
        links = [
            block.sigmoid() * chosen(block.detach(), sizes, config.neighbours)
            for block, sizes in zip(scores, blocks.sizes, strict=True)
        ]
        linked = blocks.to_nodes([block.sum(2, keepdim=True) for block in links])
        real = ((batch.degree + 1)[:, None] + linked).rsqrt()
        virtual = (1 + torch.cat([block.sum(1) for block in links])[:, :, None]).rsqrt()
        v = self.nodes.expand(batch.num_graphs, -1, -1)  # in the order of the blocks
        for number, layer in enumerate(self.convolutions, 1):
            assert isinstance(layer, GCNLayer)
            h, u = real * layer.enter(x), virtual * layer.enter(v)
            parts = zip(links, u.split(blocks.counts), strict=True)
            x = batch.neighbour_sums(h) + h + blocks.to_nodes([block @ own for block, own in parts])
            sums = zip(links, blocks.of_nodes(h, 0.0), strict=True)
            v = torch.cat([block.transpose(1, 2) @ own for block, own in sums]) + u
            x, v = real * x + layer.bias, virtual * v + layer.bias
            if number < config.layers:
                x, v = self.drop(torch.relu(x)), self.drop(torch.relu(v))
        z = batch.mean_pool(x)
        return x, z, orthogonal(v[blocks.place] - z[:, None])

    def loss(self, batch: Batch) -> Tensor:
        config = self.config
        _, z, tangents = self.encode(batch)
        metric = log_metric(tangents)
        loss = local(z, tangents, config.temperature)
        if int(self.seen.sum()) >= self._epoch:
            similar = unit(z) @ unit(self.prototypes).T / config.temperature
            known = self.seen > 0
            similar = similar.masked_fill(~known, -math.inf)
            loss = loss + cross_entropy(similar, batch.domain)
        same = batch.domain[:, None] == batch.domain
        volumes, near = metric.mean(1), torch.cdist(z.detach(), z.detach())
        for allowed in (~same, same):
            loss = loss + config.glue * bending(volumes, near, allowed, config.neighbours)
        self._remember(batch, z.detach(), metric.detach())
        return loss

    def _remember(self, batch: Batch, z: Tensor, metric: Tensor) -> None:
        for number in batch.domain.unique().tolist():
            own = batch.domain == number
            kept = self.config.momentum if int(self.seen[number]) else 0.0
            self.prototypes[number].lerp_(z[own].mean(0), 1 - kept)
            self.metrics[number].lerp_(metric[own].mean(0), 1 - kept)
            self.seen[number] += int(own.sum())

    def states(self, batch: Batch) -> Tensor:
        """States of nodes beside the metric of their graph, [N, c + M]."""
        x, _, tangents = self.encode(batch)
        return torch.cat([x, log_metric(tangents)[batch.graph_of]], 1)


class _Blocks:
    """Graphs of like sizes side by side, filled up to the largest among them.

    counts, sizes: of every block, its graphs and their numbers of nodes; place [G]: where each
    graph of the batch is when blocks are joined.
    """

    def __init__(self, batch: Batch) -> None:
        octave = batch.sizes.double().log2().ceil().long()
        order = octave.argsort(stable=True)
        self.counts: list[int] = octave.unique(return_counts=True)[1].tolist()
        self.sizes = batch.sizes[order].split(self.counts)
        self.place = order.argsort()
        self._longest = [int(own.max()) for own in self.sizes]
        rows = torch.repeat_interleave(torch.tensor(self._longest), torch.tensor(self.counts))
        first = (rows.cumsum(0) - rows)[self.place]  # where each graph of the batch begins
        self._total = int(rows.sum())
        self._row = batch.spread((first - batch.node_ptr[:-1])[:, None])[:, 0]
        self._row = self._row + torch.arange(batch.num_nodes)

    def of_nodes(self, values: Tensor, fill: float) -> list[Tensor]:
        """[N, c] to one [graphs, nodes, c] a block."""
        rows = _Put.apply(values, self._row, self._total, fill)
        parts = rows.split([c * n for c, n in zip(self.counts, self._longest, strict=True)])
        return [
            part.view(count, -1, values.shape[1])
            for part, count in zip(parts, self.counts, strict=True)
        ]

    def to_nodes(self, blocks: list[Tensor]) -> Tensor:
        """Back to [N, c]."""
        return _Take.apply(torch.cat([block.flatten(0, 1) for block in blocks]), self._row)


class _Put(torch.autograd.Function):
    """Rows [N, c] at different places among so many, others filled: backward is a mere choice."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, row: Tensor, total: int, fill: float) -> Tensor:
        ctx.row = row
        return values.new_full((total, values.shape[1]), fill).index_copy_(0, row, values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0].index_select(0, ctx.row), None, None, None


class _Take(torch.autograd.Function):
    """Different rows: nothing is added up in its backward."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, row: Tensor) -> Tensor:
        ctx.row, ctx.total = row, len(values)
        return values.index_select(0, row)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        made = grads[0].new_zeros(ctx.total, grads[0].shape[1])
        return made.index_copy_(0, ctx.row, grads[0]), None


def chosen(scores: Tensor, sizes: Tensor, count: int) -> Tensor:
    """Shares of nodes in the ``count`` places of every column, [G, n, M]; absent ones are -inf."""
    count = min(count, scores.shape[1])
    places = sizes.clamp(max=count)[:, None, None]
    best = scores.topk(count, dim=1).values
    last = best.gather(1, (places - 1).expand(-1, 1, scores.shape[2]))
    margin = SAME * (1 + last.abs())
    above, tied = scores > last + margin, (scores - last).abs() <= margin
    left = places - above.sum(1, keepdim=True)
    return above + tied * (left / tied.sum(1, keepdim=True))


def orthogonal(vectors: Tensor) -> Tensor:
    """Vectors [G, M, c] made orthogonal one after the other, with their lengths as before.

    Q of a QR decomposition by way of Cholesky's, which has a gradient for dependent ones too.
    """
    lengths = vectors.norm(dim=2, keepdim=True)
    unit_vectors = vectors / (lengths + TINY)
    gram = unit_vectors @ unit_vectors.transpose(1, 2)
    factor = torch.linalg.cholesky(gram + 1e-3 * torch.eye(gram.shape[1]))
    straight = torch.linalg.solve_triangular(factor, unit_vectors, upper=False)
    return unit(straight) * lengths


def log_metric(tangents: Tensor) -> Tensor:
    """log G, [G, M]."""
    return (tangents.square().sum(2) + TINY).log()


def local(z: Tensor, tangents: Tensor, temperature: float) -> Tensor:
    """The first loss: what lies along a tangent is nearer than other graphs."""
    moved = unit(z[:, None] + tangents)
    z = unit(z)
    own = -(z[:, None] - moved).square().sum(2) / temperature
    others = (2 * z @ z.T - 2) / temperature
    others = others.masked_fill(torch.eye(len(z), dtype=torch.bool), -math.inf).logsumexp(1)
    return (torch.logaddexp(others[:, None], own) - own).mean()


def bending(volumes: Tensor, near: Tensor, allowed: Tensor, count: int) -> Tensor:
    """The third loss, on one path from every graph, given distances [G, G]; 0 without any path."""
    absent = ~allowed | torch.eye(len(near), dtype=torch.bool)
    near = near.masked_fill(absent, math.inf)
    found = near.topk(min(count, len(near)), largest=False)
    known = found.values.isfinite().sum(1)
    first = torch.arange(len(near))

    def step(places: Tensor) -> Tensor:
        drawn = (torch.rand(len(places)) * known[places]).long()
        return found.indices[places, drawn]

    middle = step(first)
    last = step(middle)
    real = (known[first] > 0) & (last != first)
    if not real.any():
        return volumes.new_zeros(())
    turn = (volumes[first] - 2 * volumes[middle] + volumes[last])[real]
    return turn.square().mean()
