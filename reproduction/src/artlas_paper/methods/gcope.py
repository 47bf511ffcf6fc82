r"""GCOPE: graph coordinators for pretraining, Zhao et al.

"All in One and One for All: A Simple yet Effective Method towards Cross-domain Graph Pretraining",
KDD 2024. Domains are joined by coordinators.

Every domain has a coordinator, a node with learned features that is linked to all nodes of its
domain in the batch and to the other coordinators. With :math:`\deg` without them, n_d nodes of
domain d and C coordinators, a GCN's normalised sums with self-loops become

.. math:: h'_i = s_i \Big(\sum_{j \sim i} s_j h_j + s_i h_i + t_d k_d\Big), \quad
    k'_d = t_d \Big(\sum_{i \in d} s_i h_i + \sum_{d'} t_{d'} k_{d'}\Big)

with :math:`s_i = (\deg i + 2)^{-1/2}`, :math:`t_d = (n_d + C)^{-1/2}`. A view of a batch has some
nodes dropped, some edges dropped, or the features of some nodes replaced by their graph's mean;
the kinds of both views and one share are drawn at every step. With projected sums :math:`z_g =
p(\sum_{i \in g} h_i)` over a graph's nodes, without coordinators, and a decoder q,

.. math:: \mathcal L = -\frac1G \sum_g \log \frac{e^{\cos(z^1_g, z^2_g) / \tau}}{\sum_{g' \neq g}
    e^{\cos(z^1_g, z^2_{g'}) / \tau}} + \beta \sum_{v = 1, 2} MSE(q(h^v), x^v)

The GCN encoder, the coordinators, the projection and the decoder are trained; only the encoder is
kept and frozen. The frozen vector is the sum of h over the nodes, without coordinators: new domains
have none.

Instead of the authors' FAGCN (2 x 128), the encoder has the SCGFM-ART paper's three GCN layers with
ReLU and dropout between them. The graphs of the batch take the place of subgraphs that the authors
cut out of each network by random walks. Other differences from the released code, and faults of it
that are mended:

- The projection p is built there for GraphCL's loss, but applied in SimGRACE's only; here it is
  applied.
- Augmentations there change graphs in place, so that the second view is one of the first; here both
  are views of the batch. There they are drawn once an epoch.
- Coordinators are never dropped or masked, and their features, being parameters, are not
  reconstructed.
- The reconstruction error is taken over at most ``rebuilt`` nodes of a view, drawn anew: equal in
  expectation.
- The last model is kept, as for all methods, not that of the lowest loss.
- A batch of one graph has no negatives: its loss is that of the reconstruction alone.
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
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import GCNEncoder, Linear, gcn_layer
from artlas_paper.methods.losses import contrast_views
from artlas_paper.methods.shared_features import Features, SharedFeatures
from artlas_paper.methods.sparse_matmul import sum_segments
from artlas_paper.methods.views import drop_edges, drop_nodes, mask_features

SHARES = (0.1, 0.2, 0.3)  # of the nodes or edges of a graph that a view changes
VIEWS = (drop_nodes, drop_edges, mask_features)


@dataclass(frozen=True)
class GCOPEConfig(BaselineConfig):
    """Settings of GCOPE.

    dropout: between the encoder's layers; temperature: tau; reconstruction: beta; rebuilt: on how
    many nodes of a view the reconstruction error is taken, at most.
    """

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
    """A GCN encoder; coordinators, a projection and a decoder that are discarded."""

    name = "gcope"
    pooling = "sum"
    Config = GCOPEConfig
    config: GCOPEConfig

    def build(self) -> None:
        config, hidden = self.config, self.config.hidden
        self.coordinators = nn.Parameter(torch.randn(len(config.domains), config.features))
        self.encoder = GCNEncoder(
            config.features, hidden, config.layers, dropout=config.dropout, last=False
        )
        self.projection = _perceptron(hidden, hidden)
        self.decoder = _perceptron(hidden, config.features)

    def loss(self, batch: Batch) -> Tensor:
        share = SHARES[int(torch.randint(len(SHARES), ()))]
        batch = batch.with_features(SharedFeatures.of(batch.features))
        transformed = self.encoder.transform(batch.features)
        projected, error = [], torch.zeros((), dtype=batch.dtype)
        for _ in range(2):
            view = VIEWS[int(torch.randint(len(VIEWS), ()))](batch, share)
            sums = self._propagate(view, self._transform(view.features, transformed))
            # the last layer is linear: apply it to the sums over graphs and to the decoded nodes
            pooled = self._last_layer(view.sum_pool(sums), view.sizes[:, None])
            projected.append(self.projection(pooled))
            chosen = torch.randperm(view.num_nodes)[: self.config.rebuilt]
            rebuilt = self.decoder(self._last_layer(sums.index_select(0, chosen)))
            error = error + nn.functional.mse_loss(rebuilt, view.features_of(chosen))
        return contrast_views(projected[0], projected[1], self.config.temperature) + (
            self.config.reconstruction * error
        )

    def states(self, batch: Batch) -> Tensor:
        return self.encoder(batch.features, batch)[-1]

    def _transform(self, features: Features, transformed: Features) -> SharedFeatures:
        """Apply the first linear map to a view's features.

        ``transformed`` is the result for the batch, which both views share. The rows that a view
        adds follow those of the batch in its table.
        """
        assert isinstance(features, SharedFeatures)
        assert isinstance(transformed, SharedFeatures)
        known = len(transformed.table)
        if len(features.table) == known:
            return SharedFeatures(transformed.table, features.rows)
        added = gcn_layer(self.encoder.layers, 0).transform(features.table[known:])
        return SharedFeatures(torch.cat([transformed.table, added]), features.rows)

    def _propagate(self, batch: Batch, transformed: Features) -> Tensor:
        """Compute the last layer's normalised sums, [N, hidden], with coordinators as neighbours.

        The last layer's linear map and bias are left to ``_last_layer``.
        """
        present, place = batch.domain.unique(return_inverse=True)
        links = CoordinatorLinks(batch, nn.functional.one_hot(place, len(present)).to(batch.dtype))
        heads = self.coordinators[present]
        if self.config.layers == 1:
            return links.propagate(batch.x, heads)[0]
        nodes = transformed.expand() if isinstance(transformed, SharedFeatures) else transformed
        for number, after in enumerate(self.encoder.after[:-1]):
            layer = gcn_layer(self.encoder.layers, number)
            nodes = layer.transform(nodes) if number else nodes
            nodes, heads = links.propagate(nodes, layer.transform(heads), layer.bias)
            nodes, heads = after(nodes), after(heads)
        return links.propagate(nodes, heads)[0]

    def _last_layer(self, sums: Tensor, counts: Tensor | int = 1) -> Tensor:
        """Apply the last layer's linear map, and its bias as often as nodes are summed."""
        layer = gcn_layer(self.encoder.layers, -1)
        return layer.transform(sums) + counts * layer.bias


class CoordinatorLinks:
    """A batch with C coordinators; belongs [G, C]: 1 where a graph is of a coordinator's domain."""

    def __init__(self, batch: Batch, belongs: Tensor) -> None:
        self.batch, self.belongs = batch, belongs
        self.scale = (batch.degree + 2).to(belongs.dtype).rsqrt()
        nodes = belongs.T @ batch.sizes.to(belongs.dtype)
        self.head_scale = (nodes + belongs.shape[1]).rsqrt()[:, None]

    def propagate(
        self, nodes: Tensor, heads: Tensor, bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Apply the normalised adjacency to nodes [N, c] and coordinators [C, c]; add a bias."""
        heads = self.head_scale * heads
        around, sums = _CoordinatorSums.apply(
            nodes, self.belongs @ heads, bias, self.batch, self.scale
        )
        below = self.head_scale * (self.belongs.T @ sums + heads.sum(0))
        return around, below if bias is None else below + bias


class _CoordinatorSums(torch.autograd.Function):
    """S (A + I) S V + S P K with a bias, and P'S V, for node vectors V [N, c] and K [G, c].

    P [N, G] is 1 where a node is in a graph, and a graph has its coordinator's vector in K. The map
    is symmetric in (V, K), and so its own gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, nodes: Tensor, graphs: Tensor, bias: Tensor | None, batch: Batch, scale: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.batch, ctx.scale = batch, scale
        return _CoordinatorSums.compute(nodes, graphs, bias, batch, scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        of_bias = grads[0].sum(0) if ctx.needs_input_grad[2] else None
        both = _CoordinatorSums.compute(grads[0], grads[1], None, ctx.batch, ctx.scale)
        return *both, of_bias, None, None

    @staticmethod
    def compute(
        nodes: Tensor, graphs: Tensor, bias: Tensor | None, batch: Batch, scale: Tensor
    ) -> tuple[Tensor, Tensor]:
        around = normalised_sums(nodes, bias, scale, batch.row_ptr, batch.col)
        ends = batch.node_ptr.tolist()
        for graph, (begin, end) in enumerate(itertools.pairwise(ends)):
            around[begin:end].addr_(scale[begin:end], graphs[graph])
        members = torch.arange(len(nodes))
        return around, sum_segments(nodes, batch.node_ptr, members, scale)


def _perceptron(width: int, out: int) -> nn.Module:
    return nn.Sequential(Linear(width, width), nn.ReLU(), Linear(width, out))
