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

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from artlas import checks
from artlas_paper.kernels import normalised_sums, unit
from artlas_paper.methods.base import Baseline, BaselineConfig, Domains
from artlas_paper.methods.batch import Batch, Shared, through
from artlas_paper.methods.layers import Dropout, GCNLayer, Linear
from artlas_paper.methods.sparse_links import Pattern

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
        checks.integer(self, "virtual", "neighbours")
        checks.fraction(self, "dropout", "momentum")
        checks.positive(self, "temperature")
        checks.non_negative(self, "glue")

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
        links, x, v = self._inner(batch)
        layer = self._layer(-1)
        x, v = links.propagate(layer.enter(x), layer.enter(v), layer.bias)
        z = batch.mean_pool(x)
        return x, z, orthogonal(links.by_graph(v) - z[:, None])

    def frames(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The means and tangents alone: the last layer is linear, and maps sums over nodes."""
        links, x, v = self._inner(batch)
        layer = self._layer(-1)
        z, v = (layer.enter(sums) + layer.bias for sums in links.pooled(x, v))
        return z, orthogonal(links.by_graph(v) - z[:, None])

    def _layer(self, number: int) -> GCNLayer:
        layer = self.convolutions[number]
        assert isinstance(layer, GCNLayer)
        return layer

    def _inner(self, batch: Batch) -> tuple[Links, Tensor, Tensor]:
        """Links, and states of real [N, c] and virtual nodes [G M, c] before the last layer."""
        given = batch.features
        features = given if isinstance(given, Shared) else Shared.of(given)
        entered = Shared(self.enter(features.table), features.rows)
        # W p . W x = (W'W p) . x: a product of fewer columns, and of the table's rows alone
        frame = self.compare(self.nodes) @ self.compare.weight
        links = Links(batch, entered.table @ frame.T, entered.rows, self.config.neighbours)
        v = self.nodes.repeat(batch.num_graphs, 1)
        if self.config.layers == 1:
            return links, entered.whole(), v
        x = through(self._layer(0).enter, entered)
        for number in range(self.config.layers - 1):
            layer = self._layer(number)
            h = layer.enter(x) if number else x
            x, v = links.propagate(h, layer.enter(v), layer.bias)
            x, v = self.drop(torch.relu(x)), self.drop(torch.relu(v))
        return links, x, v

    def loss(self, batch: Batch) -> Tensor:
        config = self.config
        z, tangents = self.frames(batch)
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


class Links:
    """The links of a batch with its virtual nodes, M of every graph, and a GCN's sums over them.

    scores [T, M]: of the rows of a table, which every node has one of, rows int64 [N].
    """

    def __init__(self, batch: Batch, scores: Tensor, rows: Tensor, neighbours: int) -> None:
        self.batch, count = batch, scores.shape[1]
        with torch.no_grad():
            shares = _shares(batch, scores.index_select(0, rows), neighbours)
            node, which = shares.nonzero(as_tuple=True)
            ends = torch.bincount(node, minlength=batch.num_nodes).cumsum(0)
        virtual = batch.graph_of[node] * count + which
        self.pattern = Pattern(
            torch.cat([ends.new_zeros(1), ends]), virtual, batch.num_graphs * count
        )
        weights = scores.flatten().index_select(0, rows[node] * count + which).sigmoid()
        weights = weights * shares[node, which]
        linked = weights.new_zeros(batch.num_nodes).index_add(0, node, weights)
        self.real = (batch.degree + 1 + linked).rsqrt()
        degree = weights.new_zeros(self.pattern.columns).index_add(0, virtual, weights)
        self.own = 1 / (1 + degree)  # what a virtual node keeps of itself, by normalised weights
        self.weights = self.real[node] * weights * self.own.sqrt()[virtual]

    def propagate(self, x: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """The normalised adjacency with loops times vectors of real and virtual nodes."""
        place = self.batch.row_ptr, self.batch.col
        real = normalised_sums(x, bias, self.real, *place) + self.pattern.times(self.weights, v)
        return real, self._virtual(x, v) + bias

    def pooled(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The same without bias, the mean over the real nodes of every graph in their place.

        The sum of a symmetric matrix' product is that of its columns' sums with the vectors.
        """
        batch = self.batch
        place = batch.row_ptr, batch.col
        columns = normalised_sums(x.new_ones(len(x), 1), None, self.real, *place)[:, 0]
        nodes = Pattern(batch.node_ptr, torch.arange(batch.num_nodes), batch.num_nodes)
        total = nodes.times(columns, x)
        ends = v.new_zeros(len(v)).index_add(0, self.pattern.col, self.weights)
        total = total + self.by_graph(ends[:, None] * v).sum(1)
        return total / batch.sizes[:, None], self._virtual(x, v)

    def by_graph(self, v: Tensor) -> Tensor:
        """Vectors of virtual nodes as [G, M, c]."""
        return v.unflatten(0, (self.batch.num_graphs, -1))

    def _virtual(self, x: Tensor, v: Tensor) -> Tensor:
        return self.pattern.transposed_times(self.weights, x) + self.own[:, None] * v


def _shares(batch: Batch, scores: Tensor, count: int) -> Tensor:
    """The shares of nodes in the places of their graph's virtual nodes, [N, M].

    Graphs of like sizes lie side by side, filled up to the largest among them.
    """
    octave = batch.sizes.double().log2().ceil().long()
    order = octave.argsort(stable=True)
    counts: list[int] = octave.unique(return_counts=True)[1].tolist()
    sizes = batch.sizes[order].split(counts)
    longest = [int(own.max()) for own in sizes]
    rows = torch.repeat_interleave(torch.tensor(longest), torch.tensor(counts))
    first = (rows.cumsum(0) - rows)[order.argsort()]  # where each graph of the batch begins
    row = (first - batch.node_ptr[:-1])[batch.graph_of] + torch.arange(batch.num_nodes)
    whole = scores.new_full((int(rows.sum()), scores.shape[1]), -math.inf)
    whole.index_copy_(0, row, scores)
    parts = whole.split([c * n for c, n in zip(counts, longest, strict=True)])
    found = [
        chosen(part.view(len(own), -1, scores.shape[1]), own, count).flatten(0, 1)
        for part, own in zip(parts, sizes, strict=True)
    ]
    return torch.cat(found).index_select(0, row)


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
