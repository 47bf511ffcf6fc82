r"""GraphACL: the asymmetric contrastive learning of Xiao et al.

"Simple and Asymmetric Graph Contrastive Learning without Augmentations", NeurIPS 2023. A node
predicts its neighbours; a predictor makes the relation asymmetric.

.. math:: \mathcal L = \frac1N \sum_i \frac1{|\mathcal N_i|} \sum_{j \in \mathcal N_i}
    \Big[ -\frac{q_i \cdot \bar u_j}{\tau} +
    \log\Big( e^{q_i \cdot \bar u_j / \tau} + \sum_k e^{\bar v_i \cdot \bar v_k / \tau} \Big) \Big]

v is the state of the online encoder, u that of the target encoder, and q = g(v) for a linear
predictor g; all are normalised (bars; q as well). A node is its own neighbour, too. The encoder and
the predictor are trained by gradients; the target's weights follow the encoder's as a moving
average after every step. Target and predictor are then discarded, and the encoder is frozen. The
frozen vectors are v, not normalised: their mean, or the centre's.

Deviations, and choices where sources are silent:

- The sum over all k has N x N terms, too many for a batch of ego-graphs. It is taken over
  ``negatives`` random nodes of the batch, the same for all i, and multiplied by N / negatives: an
  unbiased estimate, and exact if there are no more nodes than that. Terms lie within
  exp(+-1 / tau), so that 512 are enough: with 1024 the loss differs in the third decimal.
- Nodes are those of a batch of graphs of several domains instead of one network's, so most
  negatives belong to other graphs, and many to other domains.
- The encoder has three layers, 64 or 128 wide, as in the SCGFM-ART paper; the released ones have
  one or two of 1024 to 2048, and the authors report that width matters. There is no activation
  after the last layer.
- tau = 0.99 and the momentum 0.97 are the medians of the five released settings.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from artlas import checks
from artlas_paper.kernels import unit
from artlas_paper.kernels.graphacl_loss import prediction_error
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import GCNEncoder, Linear


@dataclass(frozen=True)
class GraphACLConfig(BaselineConfig):
    """Settings of GraphACL.

    temperature: tau; momentum: the share that the target keeps of itself in a step; negatives: how
    many random nodes all others are contrasted with in a step.
    """

    temperature: float = 0.99
    momentum: float = 0.97
    negatives: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(self, "temperature", least=0.02)  # exp(1 / 0.02) is still a float32
        checks.fraction(self, "momentum")
        checks.integer(self, "negatives")


class GraphACL(Baseline):
    """An online encoder, and a target encoder and a predictor that are discarded."""

    name = "graphacl"
    Config = GraphACLConfig
    config: GraphACLConfig

    def build(self) -> None:
        config = self.config
        self.encoder = GCNEncoder(config.features, config.hidden, config.layers, last=False)
        self.target = copy.deepcopy(self.encoder).requires_grad_(False)
        self.predictor = Linear(config.hidden, config.hidden)

    def loss(self, batch: Batch) -> Tensor:
        online, target = self._split(self.encoder, batch), self._split(self.target, batch)
        states = [self.encoder.from_transformed(part)[-1] for part in online]
        chosen = torch.randperm(batch.num_nodes)[: self.config.negatives]
        negatives, begin = [], 0
        for rows in states:
            own = chosen[(chosen >= begin) & (chosen < begin + len(rows))]
            negatives.append(rows[own - begin])
            begin += len(rows)
        others = unit(torch.cat(negatives))
        total = others.new_zeros(())
        for part, target_part, rows in zip(online, target, states, strict=True):
            u = unit(self.target.from_transformed(target_part)[-1])
            q, v = unit(self.predictor(rows)), unit(rows)
            place = part.row_ptr, part.col, batch.num_nodes
            total = total + prediction_error(q, u, v, others, *place, self.config.temperature)
        return total

    def _split(self, encoder: GCNEncoder, batch: Batch) -> list[Batch]:
        """Split the batch, after the encoder's first linear map, into a few graphs at a time."""
        transformed = batch.with_features(encoder.transform(batch.features))
        return transformed.split(self.config.hidden)

    @torch.no_grad()
    def after_step(self) -> None:
        """Move the target towards the encoder."""
        pairs = zip(self.target.parameters(), self.encoder.parameters(), strict=True)
        for target, online in pairs:
            target.lerp_(online, 1 - self.config.momentum)

    def states(self, batch: Batch) -> Tensor:
        return self.encoder(batch.features, batch)[-1]
