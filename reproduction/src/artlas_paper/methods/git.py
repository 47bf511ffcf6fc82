r"""GIT (Wang et al., "Towards Graph Foundation Models: Learning Generalities Across Graphs via
Task-Trees"): what two corrupted task-trees of a graph have in common.

The task of a graph is a tree with a virtual node above all its nodes, whose vector is
:math:`z = W\,\mathrm{mean}_i h_i + b` of the nodes' states h. Two views lose a share of the feature
columns and of the edges; with a predictor g and a stopped gradient sg,

.. math:: \mathcal L = \tfrac1{2G} \sum_g \big[ 1 - \cos(\mathrm{sg}\,z^1_g, g(z^2_g)) + 1 -
    \cos(\mathrm{sg}\,z^2_g, g(z^1_g)) \big] + \tfrac\lambda G \sum_g KL\big(\sigma(\bar z^1)
    \,\|\, \sigma(z^1_g)\big)

with the soft-max :math:`\sigma` and the mean :math:`\bar z^1` over the batch. The frozen vector is
z of the uncorrupted graph; that of a centre is W h + b of the centre alone.

Other than the authors' GraphSAGE (mean, 2 x 768): the paper's three GCN layers, each with batch
normalisation, ReLU and dropout; no schedule of the rate, no clipping. What else differs, or is
mended, in the released code:

- Messages go up the tree alone. There the virtual node, with zero features, is a neighbour of every
  node in pretraining, but gone when graphs are embedded.
- Edges to the virtual node are not dropped: the mean is over all nodes in both views.
- The KL is over the task-trees. There it is over all nodes that were sampled, of which the first
  only are task-trees.
- An encoder by moving average is kept up there and never used; it is left out. Reconstruction of
  features and edges is off there by default, and left out.
- An ego-graph is a graph like any other: its tree is over all its nodes, not over the centre alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, kl_div

from artlas import checks
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch, entering
from artlas_paper.methods.layers import GCN, BatchNorm, Dropout, Linear


@dataclass(frozen=True)
class GiTConfig(BaselineConfig):
    """columns, edges: shares that a view loses; dropout: of the encoder, apart: of the predictor;
    towards: lambda, the weight of the KL to the mean."""

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
    """An encoder, the linear map of the virtual node, and a predictor that is discarded."""

    name = "git"
    Config = GiTConfig
    config: GiTConfig

    def build(self) -> None:
        config, hidden = self.config, self.config.hidden
        self.encoder = GCN(config.features, hidden, config.layers, True, config.dropout)
        self.root = Linear(hidden, hidden)
        self.predictor = nn.Sequential(
            Linear(hidden, hidden),
            nn.ReLU(),
            BatchNorm(hidden),
            Dropout(config.apart),
            Linear(hidden, hidden),
        )

    def loss(self, batch: Batch) -> Tensor:
        one, other = (self._tree(self._view(batch)) for _ in range(2))
        found = self._unlike(one, other) + self._unlike(other, one)
        return found / 2 + self.config.towards * apart_from_mean(one)

    def states(self, batch: Batch) -> Tensor:
        return self.root(self.encoder(batch.features, batch)[-1])

    def _tree(self, batch: Batch) -> Tensor:
        """The vectors of the virtual nodes, [G, hidden]."""
        return self.root(batch.mean_pool(self.encoder(batch.features, batch)[-1]))

    def _view(self, batch: Batch) -> Batch:
        """The batch without some columns and edges."""
        config = self.config
        columns = (torch.rand(self.config.features) >= config.columns).to(batch.dtype)
        kept = batch.chance(int(torch.randint(2**31, ()))) >= config.edges
        return batch.keep_entries(kept).with_x(
            entering(lambda rows: rows * columns, batch.features)
        )

    def _unlike(self, target: Tensor, source: Tensor) -> Tensor:
        return 1 - cosine_similarity(target.detach(), self.predictor(source)).mean()


def apart_from_mean(z: Tensor) -> Tensor:
    """The mean over graphs of KL(soft-max of the mean of z || soft-max of z_g), z [G, c]."""
    return kl_div(z.log_softmax(1), z.mean(0).softmax(0).expand_as(z), reduction="batchmean")
