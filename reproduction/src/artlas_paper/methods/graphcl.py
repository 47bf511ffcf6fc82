r"""GraphCL: graph contrastive learning, You et al.

"Graph Contrastive Learning with Augmentations", NeurIPS 2020. Every graph is recognised among the
graphs of its batch by two augmented views.

.. math:: \mathcal L = \frac1G \sum_i -\log \frac{\exp(s_{ii})}{\sum_{j \ne i} \exp(s_{ij})}, \quad
    s_{ij} = \cos(z_i, z'_j) / T, \quad z = g(h), \quad
    h = [\,p(h^{(1)}) \,\|\, p(h^{(2)}) \,\|\, p(h^{(3)})\,]

z and z' come from the two views, g is Linear-ReLU-Linear of the width of h, and p is the sum over
the nodes. As in the released code, the positive pair is not in the denominator, and the loss has
one direction only. The GCN encoder and the projector g are trained; the projector is then
discarded, and the encoder is frozen. The frozen vector of a graph is h; that of a centre joins its
states after every layer.

The authors have two variants for such graphs. This is the semi-supervised one, because the
SCGFM-ART paper gives its rate, batch size and epochs: two views (nodes dropped in one, features
masked in the other, a share of 0.2 each), T = 0.5, masked features are the mean of their graph.
It deviates in these points:

- The encoder has the three GCN layers of the SCGFM-ART paper, not a residual GCN of width 128 or a
  GIN; batch normalisation precedes the ReLU (both variants have it, in some order).
- The read-out joins the layers, as in the unsupervised variant; the other reads the last layer.
- Batches mix domains, which GraphCL does not know: negatives may be of another domain.
- Two faults of the released views are mended: a subgraph grew among the neighbours of its first
  node only, and added edges had one direction, could be self-loops, or existed already.
- Vectors of length zero have cosine 0. A batch of one graph has no negatives; its loss is 0.

Where features are constant (social networks without attributes), a masked view is the graph itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from artlas import checks
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import GCNEncoder
from artlas_paper.methods.losses import contrast_views
from artlas_paper.methods.views import View, augment, check_views


@dataclass(frozen=True)
class GraphCLConfig(BaselineConfig):
    """Settings of GraphCL.

    temperature: T; views: the two of every graph; ratio: the share of a graph that a view changes.
    """

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
    """A GCN encoder and a projector that is discarded after pretraining."""

    name = "graphcl"
    pooling = "sum"
    Config = GraphCLConfig
    config: GraphCLConfig

    def build(self) -> None:
        config = self.config
        self.encoder = GCNEncoder(config.features, config.hidden, config.layers, norm=True)
        width = config.hidden * config.layers
        self.projector = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def loss(self, batch: Batch) -> Tensor:
        if batch.num_graphs < 2:
            return self.zero_loss()
        # views drop nodes and edges and take means, which commute with the first linear map
        transformed = batch.with_features(self.encoder.transform(batch.features))
        first, second = (
            self._project(augment(transformed, view, self.config.ratio))
            for view in self.config.views
        )
        return contrast_views(first, second, self.config.temperature)

    def _project(self, view: Batch) -> Tensor:
        """Compute z of every graph of a view with transformed features, [G, 3 hidden]."""
        pooled = [view.sum_pool(states) for states in self.encoder.from_transformed(view)]
        return self.projector(torch.cat(pooled, 1))

    def states(self, batch: Batch) -> Tensor:
        return torch.cat(self.encoder(batch.features, batch), 1)
