r"""GiT: graph generality identifier on task-trees, Wang et al.

"Towards Graph Foundation Models: Learning Generalities Across Graphs via Task-Trees", ICML 2025.
Two corrupted task-trees of a graph are made to agree.

The task-tree of a graph has a virtual root above all its nodes, whose vector is
:math:`z = W\,\mathrm{mean}_i h_i + b` for the nodes' states h. Two views lose a share of the
feature columns and of the edges; with a predictor g and the stop-gradient sg,

.. math:: \mathcal L = \tfrac1{2G} \sum_g \big[ 1 - \cos(\mathrm{sg}\,z^1_g, g(z^2_g)) + 1 -
    \cos(\mathrm{sg}\,z^2_g, g(z^1_g)) \big] + \tfrac\lambda G \sum_g KL\big(\sigma(\bar z^1)
    \,\|\, \sigma(z^1_g)\big)

with the softmax :math:`\sigma` and the mean :math:`\bar z^1` over the batch. The GCN encoder, the
root's linear map and the predictor are trained; the predictor is then discarded, and the rest is
frozen. The frozen vector is z of the uncorrupted graph; that of a centre is W h + b of the centre.

Instead of the authors' GraphSAGE (mean, 2 x 768), the encoder has the SCGFM-ART paper's three GCN
layers, each with batch normalisation, ReLU and dropout; there is no learning-rate schedule and no
clipping. Other differences from the released code, and faults of it that are mended:

- Messages pass up the tree only. In the released code, the root has zero features and is a
  neighbour of every node in pretraining, but is absent when graphs are embedded.
- Edges to the root are not dropped: the mean is over all nodes in both views.
- The KL divergence is over the task-trees. In the released code it is over all sampled nodes, of
  which only the first are roots.
- The released code keeps a moving-average encoder but never uses it, and reconstructs features and
  edges only as an option; both are left out.
- An ego-graph is a graph like any other: its tree is over all its nodes, not the centre alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, kl_div

from artlas import checks
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import BatchNorm, Dropout, GCNEncoder, Linear
from artlas_paper.methods.shared_features import map_features
from artlas_paper.methods.views import drop_edges


@dataclass(frozen=True)
class GiTConfig(BaselineConfig):
    """Settings of GiT.

    columns, edges: the shares of feature columns and edges that a view loses; dropout: of the
    encoder; apart: the dropout of the predictor; towards: lambda, the weight of the KL divergence.
    """

    columns: float = 0.2
    edges: float = 0.2
    dropout: float = 0.15
    apart: float = 0.5
    towards: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.fraction(self, "columns", "edges", "dropout", "apart")
        checks.non_negative(self, "towards")


class GiT(Baseline):
    """A GCN encoder, the linear map of the virtual root, and a predictor that is discarded."""

    name = "git"
    Config = GiTConfig
    config: GiTConfig

    def build(self) -> None:
        config, hidden = self.config, self.config.hidden
        self.encoder = GCNEncoder(config.features, hidden, config.layers, True, config.dropout)
        self.root = Linear(hidden, hidden)
        self.predictor = nn.Sequential(
            Linear(hidden, hidden),
            nn.ReLU(),
            BatchNorm(hidden),
            Dropout(config.apart),
            Linear(hidden, hidden),
        )

    def loss(self, batch: Batch) -> Tensor:
        first, second = (self._roots(self._view(batch)) for _ in range(2))
        distance = self._distance(first, second) + self._distance(second, first)
        return distance / 2 + self.config.towards * divergence_from_mean(first)

    def states(self, batch: Batch) -> Tensor:
        return self.root(self.encoder(batch.features, batch)[-1])

    def _roots(self, batch: Batch) -> Tensor:
        """Compute the vectors of the virtual roots, [G, hidden]."""
        return self.root(batch.mean_pool(self.encoder(batch.features, batch)[-1]))

    def _view(self, batch: Batch) -> Batch:
        """Set random feature columns to zero and drop random edges."""
        columns = (torch.rand(self.config.features) >= self.config.columns).to(batch.dtype)
        masked = map_features(lambda rows: rows * columns, batch.features)
        return drop_edges(batch, self.config.edges).with_features(masked)

    def _distance(self, target: Tensor, source: Tensor) -> Tensor:
        """Compute the mean cosine distance of predictions from their targets without gradient."""
        return 1 - cosine_similarity(target.detach(), self.predictor(source)).mean()


def divergence_from_mean(z: Tensor) -> Tensor:
    """Average KL(softmax(mean of z) || softmax(z_g)) over the graphs g, for z [G, c]."""
    return kl_div(z.log_softmax(1), z.mean(0).softmax(0).expand_as(z), reduction="batchmean")
