r"""GraphMAE: the masked graph autoencoder of Hou et al.

"GraphMAE: Self-Supervised Masked Graph Autoencoders", KDD 2022. Masked node features are
reconstructed from the nodes around them.

.. math:: \mathcal L = \frac1{|M|} \sum_{v \in M} (1 - \cos(\hat x_v, x_v))^\alpha, \quad
    \hat X = f_D(A,\, \mathrm{remask}(W f_E(A, \tilde X)))

M is a random half of the nodes of a batch. In :math:`\tilde X`, a share ``replace`` of M has the
features of another node, and the rest of M has a learned token (initially zero). Re-masking sets
the rows of M to zero again before the decoder, which therefore reconstructs them from their
neighbours alone. :math:`f_E` is a GCN of three layers, :math:`f_D` one of a single layer, and W a
linear map without bias. All of them and the token are trained; only the encoder is kept and frozen.
The frozen vectors are its last states of the unmasked graph: their mean, or the centre's.

Deviations, and choices where sources are silent:

- The SCGFM-ART paper prescribes the GCN of three layers for the encoder. The decoder is a GCN as
  well, although attention is reported to reconstruct better.
- mask 0.5, alpha 2 (the defaults of the released program, whose weight decay the SCGFM-ART paper
  uses) and replace 0.1; PReLU, batch normalisation and dropout 0.2 are from the released settings
  for graph classification. These settings differ by dataset, but a model of many domains has one.
- All graphs are read out by the mean over nodes; the released pooling differs by dataset.
- Batches mix domains, and a node's features may be replaced by those of another domain's node.
- Nodes whose features are all zero have cosine 0. Where features are constant the task is trivial,
  and nearly all that is learnt comes from the other domains; the authors use degrees as features
  there, but the SCGFM-ART paper does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from artlas import checks
from artlas_paper.kernels import linear, unit
from artlas_paper.methods.base import Baseline, BaselineConfig
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import GCNEncoder, GCNLayer, Linear
from artlas_paper.methods.shared_features import Features, SharedFeatures


@dataclass(frozen=True)
class GraphMAEConfig(BaselineConfig):
    """Settings of GraphMAE.

    mask: the share of nodes that are masked; replace: the share of these that get another node's
    features; alpha: the power of the loss; dropout: after the encoder's layers.
    """

    mask: float = 0.5
    replace: float = 0.1
    alpha: float = 2.0
    dropout: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(self, "mask")
        checks.fraction(self, "replace", "dropout")
        if self.mask > 1:
            raise ValueError(f"GraphMAEConfig.mask must be at most 1, got {self.mask!r}.")
        if not 1 <= self.alpha < torch.inf:
            raise ValueError(f"GraphMAEConfig.alpha must be at least 1, got {self.alpha!r}.")


class GraphMAE(Baseline):
    """A GCN encoder; a mask token, a linear map and a GCN decoder that are discarded."""

    name = "graphmae"
    Config = GraphMAEConfig
    config: GraphMAEConfig

    def build(self) -> None:
        config = self.config
        self.encoder = GCNEncoder(
            config.features, config.hidden, config.layers, True, config.dropout, nn.PReLU
        )
        self.token = nn.Parameter(torch.zeros(config.features))
        self.between = Linear(config.hidden, config.hidden, bias=False)
        self.decoder = GCNLayer(config.hidden, config.features)

    def loss(self, batch: Batch) -> Tensor:
        if batch.num_nodes < 2:  # batch normalisation needs two, and one has no neighbour
            return self.zero_loss()
        masked = torch.randperm(batch.num_nodes)[: max(1, int(self.config.mask * batch.num_nodes))]
        states = self.encoder(self.mask_features(batch.features, masked), batch)[-1]
        reconstructed = self.decode(batch, states, masked)
        return scaled_cosine_error(reconstructed, batch.features_of(masked), self.config.alpha)

    def mask_features(self, features: Features, masked: Tensor) -> SharedFeatures:
        """Replace the features of masked nodes by the token, or by another node's for a share."""
        shared = SharedFeatures.of(features)
        replaced = int(self.config.replace * len(masked))
        rows = shared.rows.clone()
        rows[masked[:replaced]] = shared.rows[torch.randperm(len(rows))[:replaced]]
        rows[masked[replaced:]] = len(shared.table)
        return SharedFeatures(torch.cat([shared.table, self.token[None]]), rows)

    def decode(self, batch: Batch, states: Tensor, masked: Tensor) -> Tensor:
        """Reconstruct the features of masked nodes [n, d] after setting their states to zero.

        W is applied to sums over neighbours instead of every node: equal, and for fewer rows.
        """
        sums = batch.propagate(states.index_fill(0, masked, 0.0))
        mapped = self.between(sums.index_select(0, masked))
        return linear(mapped, self.decoder.lin.weight, self.decoder.bias)

    def states(self, batch: Batch) -> Tensor:
        return self.encoder(batch.features, batch)[-1]


def scaled_cosine_error(reconstructed: Tensor, x: Tensor, alpha: float) -> Tensor:
    """Compute the mean scaled cosine error of rows [n, d]."""
    return (1 - (unit(reconstructed) * unit(x)).sum(1)).clamp(min=0).pow(alpha).mean()
