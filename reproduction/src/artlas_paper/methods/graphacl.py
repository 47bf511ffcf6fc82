r"""GraphACL: a node foretells its neighbours, by a predictor that makes the relation one-sided.

.. math:: \mathcal L = \frac1N \sum_i \frac1{|\mathcal N_i|} \sum_{j \in \mathcal N_i}
    \Big[ -\frac{q_i \cdot \bar u_j}{\tau} +
    \log\Big( e^{q_i \cdot \bar u_j / \tau} + \sum_k e^{\bar v_i \cdot \bar v_k / \tau} \Big) \Big]

v is the encoder's state, u that of a target whose weights follow the encoder's as a moving average
after every step, q = g(v) with a linear g; all are normalised (bars; q as well). A node is a
neighbour of its own. There is no augmentation. The frozen vectors are v, not normalised and not q:
their mean, or the centre's.

Deviations, and choices where sources are silent:

- The sum over all k is N x N, too much for a batch of ego-graphs. It is taken over ``negatives``
  random nodes of the batch, the same for all i, and multiplied by N / negatives: an unbiased
  estimate, and exact where there are no more nodes than that. Terms lie within exp(+-1 / tau), so
  that 512 are enough: with 1024 the loss of the benchmark's batches differs in the third decimal.
- The nodes are those of a batch of graphs of several domains instead of one network's, so most
  negatives are of other graphs and many of other domains.
- Three layers as the comparison has them, 64 or 128 wide; released are one or two of 1024 to 2048,
  and the authors report that width matters. No activation after the last.
- tau = 0.99 and the average's 0.97 are the medians of the five released settings.
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
from artlas_paper.methods.layers import GCN, Linear


@dataclass(frozen=True)
class GraphACLConfig(BaselineConfig):
    """temperature: tau; momentum: what the target keeps of itself in a step; negatives: nodes that
    the others are compared with in a step."""

    temperature: float = 0.99
    momentum: float = 0.97
    negatives: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(self, "temperature")
        checks.share(self, "momentum")
        checks.whole(self, "negatives")
        if self.temperature < 0.02:  # exp(1 / 0.02) is a float yet
            raise ValueError(
                f"GraphACLConfig.temperature must be at least 0.02, got {self.temperature!r}."
            )


class GraphACL(Baseline):
    """Xiao et al.'s asymmetric contrastive learning."""

    name = "graphacl"
    Config = GraphACLConfig
    config: GraphACLConfig

    def build(self) -> None:
        config = self.config
        self.encoder = GCN(config.features, config.hidden, config.layers, last=False)
        self.target = copy.deepcopy(self.encoder).requires_grad_(False)
        self.predictor = Linear(config.hidden, config.hidden)

    def loss(self, batch: Batch) -> Tensor:
        parts, wanted = self._parts(self.encoder, batch), self._parts(self.target, batch)
        states = [self.encoder.entered(part)[-1] for part in parts]
        chosen = torch.randperm(batch.num_nodes)[: self.config.negatives]
        w, begin = [], 0
        for rows in states:
            own = chosen[(chosen >= begin) & (chosen < begin + len(rows))]
            w.append(rows[own - begin])
            begin += len(rows)
        others = unit(torch.cat(w))
        total = others.new_zeros(())
        for part, target, rows in zip(parts, wanted, states, strict=True):
            u = unit(self.target.entered(target)[-1])
            q, v = unit(self.predictor(rows)), unit(rows)
            place = part.row_ptr, part.col, batch.num_nodes
            total = total + prediction_error(q, u, v, others, *place, self.config.temperature)
        return total

    def _parts(self, encoder: GCN, batch: Batch) -> list[Batch]:
        """Few graphs at a time, whose features have entered an encoder."""
        return batch.with_x(encoder.enter(batch.features)).parts(self.config.hidden)

    @torch.no_grad()
    def after_step(self) -> None:
        """The target follows the encoder."""
        pairs = zip(self.target.parameters(), self.encoder.parameters(), strict=True)
        for target, own in pairs:
            target.lerp_(own, 1 - self.config.momentum)

    def states(self, batch: Batch) -> Tensor:
        return self.encoder(batch.features, batch)[-1]
