r"""GCOPE (Zhao et al., "All in One and One for All"): domains that are joined by coordinators.

Every domain has a coordinator, a node with learnt features that is linked to all nodes of its
domain in the batch and to the other coordinators. With :math:`\deg` without them, n_d nodes of
domain d and C coordinators, a GCN's normalised sums with loops become

.. math:: h'_i = s_i \Big(\sum_{j \sim i} s_j h_j + s_i h_i + t_d k_d\Big), \quad
    k'_d = t_d \Big(\sum_{i \in d} s_i h_i + \sum_{d'} t_{d'} k_{d'}\Big)

with :math:`s_i = (\deg i + 2)^{-1/2}`, :math:`t_d = (n_d + C)^{-1/2}`. Two views of a batch have
some nodes dropped, some edges dropped, or some nodes' features replaced by their graph's mean; both
kinds and one share are drawn at every step. With projected sums :math:`z_g = p(\sum_{i \in g} h_i)`
over a graph's nodes, coordinators excluded, and a decoder q,

.. math:: \mathcal L = -\frac1G \sum_g \log \frac{e^{\cos(z^1_g, z^2_g) / \tau}}{\sum_{g' \neq g}
    e^{\cos(z^1_g, z^2_{g'}) / \tau}} + \beta \sum_{v = 1, 2} MSE(q(h^v), x^v)

The frozen vector is the sum of h over the nodes, without coordinators: new domains have none.

Other than the authors' FAGCN (2 x 128): the paper's three GCN layers with ReLU and dropout between
them. Graphs of the batch stand where they cut subgraphs by random walks out of each network. What
else differs, or is mended, in the released code:

- The projection p is built there for GraphCL's loss, but applied for SimGRACE's alone; here it is
  applied.
- Augmentations there change graphs in place, so that the second view is one of the first; here both
  are of the batch. They are drawn at every epoch there.
- Coordinators are never dropped or masked, and their features, being parameters, are not
  reconstructed.
- Reconstruction is over at most ``rebuilt`` nodes of a view, drawn anew: the same in expectation.
- The last model is kept, as for all methods, not that of the lowest loss.
- A batch of one graph has nothing to contrast it with: its loss is that of reconstruction alone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from artlas import checks
from artlas_paper.kernels import normalised_sums
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch, Shared
from artlas_paper.methods.layers import GCN, GCNLayer, Linear, cosine
from artlas_paper.methods.sparse_links import weighted_bags
from artlas_paper.methods.views import drop_nodes, mask_features

SHARES = (0.1, 0.2, 0.3)  # of nodes or edges that a view loses


@dataclass(frozen=True)
class GCOPEConfig(BaselineConfig):
    """temperature: tau; reconstruction: beta; rebuilt: nodes of a view that it is measured on."""

    dropout: float = 0.2
    temperature: float = 0.5
    reconstruction: float = 0.2
    rebuilt: int = 8192

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.fraction(self, "dropout")
        checks.positive(self, "temperature")
        checks.integer(self, "rebuilt")
        checks.non_negative(self, "reconstruction")


class GCOPE(Baseline):
    """An encoder, a coordinator a domain, and a projection and a decoder that are discarded."""

    name = "gcope"
    Config = GCOPEConfig
    config: GCOPEConfig

    def build(self) -> None:
        config, hidden = self.config, self.config.hidden
        self.coordinators = nn.Parameter(torch.randn(len(config.domains), config.features))
        self.encoder = GCN(
            config.features, hidden, config.layers, dropout=config.dropout, last=False
        )
        self.projection = _perceptron(hidden, hidden)
        self.decoder = _perceptron(hidden, config.features)

    def loss(self, batch: Batch) -> Tensor:
        share = SHARES[int(torch.randint(len(SHARES), ()))]
        if not isinstance(batch.features, Shared):
            batch = batch.with_x(Shared.of(batch.features))
        entered = self.encoder.enter(batch.features)
        views, off = [], torch.zeros((), dtype=batch.dtype)
        for _ in range(2):
            view = VIEWS[int(torch.randint(len(VIEWS), ()))](batch, share)
            around = self._around(view, self._enter(view.features, entered))
            # the last layer is linear, and maps sums over all nodes and the vectors of few
            views.append(self.projection(self._last(view.sum_pool(around), view.sizes[:, None])))
            chosen = torch.randperm(view.num_nodes)[: self.config.rebuilt]
            rebuilt = self.decoder(self._last(around.index_select(0, chosen)))
            off = off + nn.functional.mse_loss(rebuilt, view.x_of(chosen))
        return contrast(views[0], views[1], self.config.temperature) + (
            self.config.reconstruction * off
        )

    def states(self, batch: Batch) -> Tensor:
        return self.encoder(batch.features, batch)[-1]

    def pool(self, batch: Batch, states: Tensor) -> Tensor:
        return batch.sum_pool(states)

    def _enter(self, features: Tensor | Shared, entered: Tensor | Shared) -> Shared:
        """A view's features by the first linear map, which both views take of the batch's once:
        what a view adds comes after the rows of the batch's table."""
        assert isinstance(features, Shared)
        assert isinstance(entered, Shared)
        known = len(entered.table)
        if len(features.table) == known:
            return Shared(entered.table, features.rows)
        more = self._layer(0).enter(features.table[known:])
        return Shared(torch.cat([entered.table, more]), features.rows)

    def _around(self, batch: Batch, entered: Tensor | Shared) -> Tensor:
        """The states of nodes, [N, hidden], with the coordinators of the batch's domains, but for
        the last layer's linear map and bias."""
        present, place = batch.domain.unique(return_inverse=True)
        links = Links(batch, nn.functional.one_hot(place, len(present)).to(batch.dtype))
        heads = self.coordinators[present]
        if self.config.layers == 1:
            return links.propagate(batch.x, heads)[0]
        nodes = entered.whole() if isinstance(entered, Shared) else entered
        for number, after in enumerate(self.encoder.after[:-1]):
            layer = self._layer(number)
            nodes = layer.enter(nodes) if number else nodes
            nodes, heads = links.propagate(nodes, layer.enter(heads), layer.bias)
            nodes, heads = after(nodes), after(heads)
        return links.propagate(nodes, heads)[0]

    def _last(self, around: Tensor, counts: Tensor | int = 1) -> Tensor:
        """The last layer's linear map and bias, of sums over so many nodes."""
        layer = self._layer(-1)
        return layer.enter(around) + counts * layer.bias

    def _layer(self, number: int) -> GCNLayer:
        layer = self.encoder.layers[number]
        assert isinstance(layer, GCNLayer)
        return layer


class Links:
    """A batch with C coordinators; belongs: 1 where a graph is of a coordinator's domain, [G, C]"""

    def __init__(self, batch: Batch, belongs: Tensor) -> None:
        self.batch, self.belongs = batch, belongs
        self.scale = (batch.degree + 2).to(belongs.dtype).rsqrt()
        nodes = belongs.T @ batch.sizes.to(belongs.dtype)
        self.head_scale = (nodes + belongs.shape[1]).rsqrt()[:, None]

    def propagate(
        self, nodes: Tensor, heads: Tensor, bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The normalised adjacency with loops times vectors of nodes [N, c] and heads [C, c], and a
        bias [c]."""
        heads = self.head_scale * heads
        around, sums = _Meet.apply(nodes, self.belongs @ heads, bias, self.batch, self.scale)
        below = self.head_scale * (self.belongs.T @ sums + heads.sum(0))
        return around, below if bias is None else below + bias


class _Meet(torch.autograd.Function):
    """S (A + I) S V + S P K with a bias, and P'S V, of nodes' vectors V [N, c] and K [G, c] of
    graphs: P is 1 where a node is in a graph. A symmetric map of both, which is its own gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, nodes: Tensor, graphs: Tensor, bias: Tensor | None, batch: Batch, scale: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.batch, ctx.scale = batch, scale
        return _Meet.both(nodes, graphs, bias, batch, scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        of_bias = grads[0].sum(0) if ctx.needs_input_grad[2] else None
        made = _Meet.both(grads[0], grads[1], None, ctx.batch, ctx.scale)
        return *made, of_bias, None, None

    @staticmethod
    def both(
        nodes: Tensor, graphs: Tensor, bias: Tensor | None, batch: Batch, scale: Tensor
    ) -> tuple[Tensor, Tensor]:
        around = normalised_sums(nodes, bias, scale, batch.row_ptr, batch.col)
        ends = batch.node_ptr.tolist()
        for graph, (begin, end) in enumerate(itertools.pairwise(ends)):
            around[begin:end].addr_(scale[begin:end], graphs[graph])
        members = torch.arange(len(nodes))
        return around, weighted_bags(nodes, batch.node_ptr, members, scale)


def contrast(one: Tensor, other: Tensor, temperature: float) -> Tensor:
    """The loss of telling a graph's other view from other graphs', of [G, c]; 0 if G = 1."""
    like = cosine(one, other) / temperature
    if len(like) == 1:
        return like.sum() * 0
    own = torch.eye(len(like), dtype=torch.bool)
    return (like.masked_fill(own, -torch.inf).logsumexp(1) - like.diagonal()).mean()


def drop_edges(batch: Batch, share: float) -> Batch:
    """Without a share of the edges."""
    return batch.keep_entries(batch.chance(int(torch.randint(2**31, ()))) >= share)


VIEWS = (drop_nodes, drop_edges, mask_features)


def _perceptron(width: int, out: int) -> nn.Module:
    return nn.Sequential(Linear(width, width), nn.ReLU(), Linear(width, out))
