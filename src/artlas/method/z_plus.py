r"""z+: a representation beyond the paper, with roles and without.

Graphs: with :math:`R = T_{mix} / \mu`, whose rows sum to one, and
:math:`s(v) = sign(v) \log(1 + |v|)`,

.. math:: z^+ = s(M R^\top [X \,|\, AX \,|\, X \circ AX \,|\, \deg X \circ X - X \circ AX])

Centres of ego-graphs: with the rows of X scaled to unit length, PageRank scores p, and the weights
:math:`a \propto p`, :math:`b \propto \sqrt{p / (\deg + 1)}`, :math:`c \propto 1`, each of which
sums to one over an ego-graph, :math:`z^+ = l_2(\mathrm{vec} \sum_i R_i \otimes b_i x_i)`. Without
roles it is :math:`[l_2(\sum a x) \,|\, l_2(\sum b x) \,|\, l_2(\sum c x)]`.

Without roles, :math:`M R^\top` becomes :math:`\mathbf 1^\top`, and no model is needed.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from artlas import kernels
from artlas.graphs.measure import normalised_degree, prepare_structure
from artlas.method.batching import GraphBatch

EPSILON = 1e-8
CACHED = 1 << 21  # number of values whose temporaries fit into the processor's cache
BLOCKS = ("x", "ax", "x_ax", "x_lx")  # X, AX, X o AX, X o LX with L = deg - A


def node_values(batch: GraphBatch) -> Tensor:
    """The values that are pooled by roles: blocks [N, 4 d], or of ego-graphs b x, [N, d].

    Blocks are [X | AX | X o AX | deg X o X - X o AX]; the degree stands in for absent features.
    """
    if batch.scores is not None:
        _, damped, _ = _weights(batch)
        return _unit_features(batch) * damped
    graphs, x = batch.graphs, batch.graphs.x
    if x is None:
        x = normalised_degree(graphs.degree, graphs.node_ptr).unsqueeze(1)
    return kernels.on(x).blocks(x, graphs.degree, prepare_structure(graphs, EPSILON))


def vector(batch: GraphBatch, pooled: Tensor) -> Tensor:
    r"""Make z+ of node values pooled by roles, :math:`M R^\top V` [G, M, w].

    Returns [G, 4 M d], block by block and role by role, or [G, M d] for ego-graphs.
    """
    if batch.scores is not None:
        return normalize(pooled.flatten(1))
    count, roles, width = pooled.shape
    out = pooled.new_empty(count, 4, roles, width // 4)
    step = max(1, CACHED // (roles * width))
    for rows, place in zip(pooled.split(step), out.split(step), strict=True):
        place.copy_(signed_log(rows).view(len(rows), roles, 4, -1).transpose(1, 2))
    return out.flatten(1)


def without_roles(batch: GraphBatch) -> Tensor:
    """Make z+ without roles, [G, 4 d], or [G, 3 d] for ego-graphs."""
    node_ptr = batch.graphs.node_ptr
    if batch.scores is None:
        return signed_log(_sums(node_values(batch), node_ptr))
    x = _unit_features(batch)
    return torch.cat([normalize(_sums(x * weight, node_ptr)) for weight in _weights(batch)], 1)


def signed_log(values: Tensor) -> Tensor:
    """sign(v) log(1 + |v|)."""
    logs = values.abs().log1p_()
    return logs.mul_(values.sign())


def _unit_features(batch: GraphBatch) -> Tensor:
    """Node features scaled to unit length, [N, d]; degree stands in for absent ones."""
    graphs = batch.graphs
    if graphs.x is None:
        return normalised_degree(graphs.degree, graphs.node_ptr).unsqueeze(1)
    return normalize(graphs.x)


def _weights(batch: GraphBatch) -> tuple[Tensor, Tensor, Tensor]:
    """The weights a, b and c of the nodes of ego-graphs, float32 [N, 1] each."""
    assert batch.scores is not None
    graphs, scores = batch.graphs, batch.scores.double()
    damped = (scores / (graphs.degree.double() + 1)).sqrt()

    def normalised(weight: Tensor) -> Tensor:
        total = _sums(weight[:, None], graphs.node_ptr)[:, 0]
        return (weight / torch.repeat_interleave(total, graphs.sizes)).float()[:, None]

    return normalised(scores), normalised(damped), normalised(torch.ones_like(scores))


def _sums(values: Tensor, node_ptr: Tensor) -> Tensor:
    """Sums of values [N, d] over the nodes of every graph, [G, d], added in float64."""
    owner = torch.repeat_interleave(torch.arange(len(node_ptr) - 1), node_ptr.diff())
    total = torch.zeros(len(node_ptr) - 1, values.shape[1], dtype=torch.float64)
    return total.index_add_(0, owner, values.double()).to(values.dtype)
