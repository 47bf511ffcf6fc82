r"""GraphCL: graphs are told apart from one another through two augmented views.

.. math:: \mathcal L = \frac1G \sum_i -\log \frac{\exp(s_{ii})}{\sum_{j \ne i} \exp(s_{ij})}, \quad
    s_{ij} = \cos(z_i, z'_j) / T, \quad z = g(h), \quad
    h = [\,p(h^{(1)}) \,\|\, p(h^{(2)}) \,\|\, p(h^{(3)})\,]

z and z' are of the two views, g is Linear-ReLU-Linear of the width of h, p the sum over the nodes.
The positive is not in the denominator and there is one direction only, as released. The frozen
vector is h, before g; of a centre, its states after every layer.

The authors have two variants for such graphs. This is the semi-supervised one, whose rate, batch
and epochs are those that the paper of the comparison gives: two views (nodes dropped in one,
features masked in the other, a share of 0.2 each), T = 0.5, masked features are the mean of their
graph. Where it deviates:

- Three GCN layers of the comparison instead of a residual GCN of 128 or a GIN, with batch
  normalisation before the ReLU, which both variants have in some order.
- The read-out joins the layers, as in the unsupervised variant; the other has the last alone.
- Batches mix domains, since GraphCL knows of none: negatives may be of another domain.
- Released faults that are mended in the views: a subgraph grew among the neighbours of its first
  node only; added edges were of one direction, could be loops or there already.
- Vectors of length zero have cosine 0; a batch of one graph has nothing to be told from, its loss
  is 0.

Where features are constant (social networks without attributes), a masked view is the graph itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from artlas import checks
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import GCN, cosine
from artlas_paper.methods.views import View, augment, check_views


@dataclass(frozen=True)
class GraphCLConfig(BaselineConfig):
    """temperature: T; views: the two of every graph; ratio: the share that a view changes."""

    temperature: float = 0.5
    views: tuple[View, View] = ("drop_nodes", "mask_features")
    ratio: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "views", tuple(self.views))
        if len(self.views) != 2:
            raise ValueError(f"GraphCLConfig.views must be two names, got {self.views!r}.")
        check_views("GraphCLConfig", self.views, self.ratio)
        checks.positive(self, "temperature")


class GraphCL(Baseline):
    """You et al.'s graph contrastive learning."""

    name = "graphcl"
    Config = GraphCLConfig
    config: GraphCLConfig

    def build(self) -> None:
        config = self.config
        self.encoder = GCN(config.features, config.hidden, config.layers, norm=True)
        width = config.hidden * config.layers
        self.projector = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def loss(self, batch: Batch) -> Tensor:
        if batch.num_graphs < 2:
            return sum((0 * p.sum() for p in self.parameters()), torch.zeros(()))
        # views drop nodes and edges and take means, before or after a linear map: both share it
        entered = batch.with_x(self.encoder.enter(batch.features))
        one, other = (
            self.project(augment(entered, name, self.config.ratio)) for name in self.config.views
        )
        return contrast(one, other, self.config.temperature)

    def project(self, view: Batch) -> Tensor:
        """z of every graph of a view whose features have entered, [G, 3 hidden]."""
        pooled = [view.sum_pool(states) for states in self.encoder.entered(view)]
        return self.projector(torch.cat(pooled, 1))

    def states(self, batch: Batch) -> Tensor:
        return torch.cat(self.encoder(batch.features, batch), 1)

    def pool(self, batch: Batch, states: Tensor) -> Tensor:
        return batch.sum_pool(states)


def contrast(one: Tensor, other: Tensor, temperature: float) -> Tensor:
    """The loss of the vectors of two views [G, c], the positive left out of the denominator."""
    likeness = cosine(one, other) / temperature
    same = torch.eye(len(one), dtype=torch.bool)
    rest = likeness.masked_fill(same, -torch.inf)
    return (rest.logsumexp(1) - likeness.diagonal()).mean()
