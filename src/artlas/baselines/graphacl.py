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
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from artlas import checks
from artlas.baselines.base import Baseline, BaselineConfig
from artlas.baselines.batch import Batch
from artlas.baselines.layers import GCN, Linear
from artlas.baselines.sparse import products, weighted_bags
from artlas.kernels import unit


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
        states = self.encoder(batch.features, batch)[-1]
        with torch.no_grad():
            wanted = unit(self.target(batch.features, batch)[-1])
        chosen = torch.randperm(batch.num_nodes)[: self.config.negatives]
        return foretelling_error(
            batch, unit(self.predictor(states)), wanted, unit(states), chosen,
            self.config.temperature,
        )  # fmt: skip

    @torch.no_grad()
    def settle(self) -> None:
        """The target follows the encoder."""
        pairs = zip(self.target.parameters(), self.encoder.parameters(), strict=True)
        for target, own in pairs:
            target.lerp_(own, 1 - self.config.momentum)

    def states(self, batch: Batch) -> Tensor:
        return self.encoder(batch.features, batch)[-1]


def foretelling_error(
    batch: Batch, q: Tensor, u: Tensor, v: Tensor, chosen: Tensor, temperature: float
) -> Tensor:
    """The loss of unit vectors [N, c]; chosen: the nodes that stand for all others, [n]."""
    rest = _LogSums.apply(v, v[chosen] / temperature)
    rest = rest + math.log(batch.num_nodes / len(chosen))
    share = 1 / (batch.degree + 1).to(q.dtype)
    own = (q * u).sum(1) / temperature
    others = _Products.apply(q, u, batch.row_ptr, batch.col) / temperature
    # -s + log(e^s + e^rest) = softplus(rest - s)
    total = (share * nn.functional.softplus(rest - own)).sum()
    wide = nn.functional.softplus(rest.index_select(0, batch.row) - others)
    return (total + (share[batch.row] * wide).sum()) / batch.num_nodes


class _LogSums(torch.autograd.Function):
    """log sum_k exp(v_i . w_k) for rows of v [N, c] and w [n, c]; no shift, so for short vectors.

    The matrix of the exponentials is kept as it is and scaled on its narrow side in the gradients.
    """

    @staticmethod
    def forward(ctx: Any, v: Tensor, w: Tensor) -> Tensor:
        terms = (v @ w.T).exp_()
        sums = terms.sum(1)
        ctx.save_for_backward(v, w, terms, sums)
        return sums.log()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        v, w, terms, sums = ctx.saved_tensors
        scale = (grads[0] / sums)[:, None]
        return (terms @ w).mul_(scale), terms.T @ (scale * v)


class _Products(torch.autograd.Function):
    """q_i . u_j for every entry (i, j) of the adjacency, [E]; u has no gradient."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, u: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
        ctx.saved = u, row_ptr, col
        return products(q, u, row_ptr, col)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        u, row_ptr, col = ctx.saved
        return weighted_bags(u, row_ptr, col, grads[0]), None, None, None
