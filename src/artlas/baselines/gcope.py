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

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from artlas import checks
from artlas.baselines.base import Baseline, BaselineConfig
from artlas.baselines.batch import Batch, through
from artlas.baselines.layers import GCN, GCNLayer, Linear, cosine
from artlas.baselines.views import drop_nodes, mask_features

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
        checks.share(self, "dropout")
        checks.positive(self, "temperature")
        checks.whole(self, "rebuilt")
        checks.not_negative(self, "reconstruction")


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
        views, off = [], torch.zeros((), dtype=batch.dtype)
        for _ in range(2):
            view = VIEWS[int(torch.randint(len(VIEWS), ()))](batch, share)
            states = self._coordinated(view)
            views.append(self.projection(view.sum_pool(states)))
            chosen = torch.randperm(view.num_nodes)[: self.config.rebuilt]
            rebuilt = self.decoder(states.index_select(0, chosen))
            off = off + nn.functional.mse_loss(rebuilt, view.x_of(chosen))
        return contrast(views[0], views[1], self.config.temperature) + (
            self.config.reconstruction * off
        )

    def states(self, batch: Batch) -> Tensor:
        return self.encoder(batch.features, batch)[-1]

    def pool(self, batch: Batch, states: Tensor) -> Tensor:
        return batch.sum_pool(states)

    def _coordinated(self, batch: Batch) -> Tensor:
        """The states of nodes, [N, hidden], with the coordinators of the batch's domains."""
        present, place = batch.domain.unique(return_inverse=True)
        links = Links(batch, nn.functional.one_hot(place, len(present)).to(batch.dtype))
        nodes, heads = batch.features, self.coordinators[present]
        for layer, after in zip(self.encoder.layers, self.encoder.after, strict=True):
            assert isinstance(layer, GCNLayer)
            own, heads = links.propagate(through(layer.enter, nodes), layer.enter(heads))
            nodes, heads = after(own + layer.bias), after(heads + layer.bias)
        assert isinstance(nodes, Tensor)
        return nodes


class Links:
    """A batch with C coordinators; belongs: 1 where a graph is of a coordinator's domain, [G, C]"""

    def __init__(self, batch: Batch, belongs: Tensor) -> None:
        self.batch, self.belongs = batch, belongs
        self.scale = (batch.degree + 2).to(belongs.dtype).rsqrt()[:, None]
        nodes = belongs.T @ batch.sizes.to(belongs.dtype)
        self.head_scale = (nodes + belongs.shape[1]).rsqrt()[:, None]

    def propagate(self, nodes: Tensor, heads: Tensor) -> tuple[Tensor, Tensor]:
        """The normalised adjacency with loops times vectors of nodes [N, c] and heads [C, c]."""
        batch, nodes, heads = self.batch, self.scale * nodes, self.head_scale * heads
        around = batch.neighbour_sums(nodes) + nodes + batch.spread(self.belongs @ heads)
        below = self.belongs.T @ batch.sum_pool(nodes) + heads.sum(0)
        return self.scale * around, self.head_scale * below


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
