r"""z+: the representation past the paper, with roles and without.

Graphs: with :math:`R = T_{mix} / \mu` (rows sum to one) and :math:`s(v) = sign(v) \log(1 + |v|)`,

.. math:: z^+ = s(M R^\top [X \,|\, AX \,|\, X \circ AX \,|\, \deg X \circ X - X \circ AX])

Nodes: with rows of X at unit length, scores p of the ego-graph, and weights :math:`a \propto p`,
:math:`b \propto \sqrt{p / (\deg + 1)}`, :math:`c \propto 1` that sum to one over an ego-graph,
:math:`z^+ = l_2(\mathrm{vec} \sum_i R_i \otimes b_i x_i)`; without roles it is
:math:`[l_2(\sum a x) \,|\, l_2(\sum b x) \,|\, l_2(\sum c x)]`.

Without roles :math:`M R^\top` is :math:`\mathbf 1^\top`, and no model is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from artlas import kernels
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import normalised_degree, structure_of
from artlas.io.reading import as_graphs
from artlas.nodes.ego import EgoGraphs

EPSILON = 1e-8
CACHED = 1 << 21  # values whose few arrays stay in a cache
# M R' V of every graph, [G, M, d], for values V [N, d] of all nodes
Pool = Callable[[Graphs, Tensor], Tensor]


def graph_blocks(graphs: Graphs) -> Tensor:
    """[X | AX | X o AX | deg X o X - X o AX] of every node, [N, 4 d]; degree stands in for X."""
    x = graphs.x
    if x is None:
        x = normalised_degree(graphs.degree, graphs.node_ptr).unsqueeze(1)
    return kernels.blocks(x, graphs.degree, structure_of(graphs, EPSILON))


def embed(data: Graphs | EgoGraphs, pool: Pool | None = None) -> Tensor:
    """z+ of graphs, or of the centres of ego-graphs."""
    return embed_egos(data, pool) if isinstance(data, EgoGraphs) else embed_graphs(data, pool)


def embed_graphs(graphs: Graphs, pool: Pool | None = None) -> Tensor:
    """z+ of graphs, [G, 4 M d] block by block and role by role, or [G, 4 d] without roles."""
    blocks = graph_blocks(as_graphs(graphs))
    if pool is None:
        return signed_log(_sums(blocks, graphs.node_ptr))
    by_role = pool(graphs, blocks)  # [G, M, 4 d]
    count, roles, width = by_role.shape
    out = by_role.new_empty(count, 4, roles, width // 4)
    step = max(1, CACHED // (roles * width))
    for rows, place in zip(by_role.split(step), out.split(step), strict=True):
        place.copy_(signed_log(rows).view(len(rows), roles, 4, -1).transpose(1, 2))
    return out.flatten(1)


def embed_egos(egos: EgoGraphs, pool: Pool | None = None) -> Tensor:
    """z+ of the centres of ego-graphs, [C, M d], or [C, 3 d] without roles."""
    graphs = egos[:]
    if graphs.x is None:
        x = normalised_degree(graphs.degree, graphs.node_ptr).unsqueeze(1)
    else:
        x = graphs.x / graphs.x.norm(dim=1, keepdim=True).clamp_min(1e-12)
    scores = torch.from_numpy(egos.scores).double()
    damped = (scores / (graphs.degree.double() + 1)).sqrt()
    if pool is not None:
        weighted = x * _shares(damped, graphs.node_ptr)[:, None]
        return unit(pool(graphs, weighted).flatten(1))
    parts = [
        unit(_sums(x * _shares(weight, graphs.node_ptr)[:, None], graphs.node_ptr))
        for weight in (scores, damped, torch.ones_like(scores))
    ]
    return torch.cat(parts, 1)


def signed_log(values: Tensor) -> Tensor:
    """sign(v) log(1 + |v|)."""
    logs = values.abs().log1p_()
    return logs.mul_(values.sign())


def unit(rows: Tensor) -> Tensor:
    """Rows at unit length; rows of zeros stay."""
    return rows / rows.norm(dim=1, keepdim=True).clamp_min(1e-12)


def _sums(values: Tensor, node_ptr: Tensor) -> Tensor:
    owner = torch.repeat_interleave(torch.arange(len(node_ptr) - 1), node_ptr.diff())
    total = torch.zeros(len(node_ptr) - 1, values.shape[1], dtype=torch.float64)
    return total.index_add_(0, owner, values.double()).to(values.dtype)


def _shares(weight: Tensor, node_ptr: Tensor) -> Tensor:
    """Weights [N] that sum to one over every graph, float32."""
    total = _sums(weight[:, None], node_ptr)[:, 0]
    return (weight / torch.repeat_interleave(total, node_ptr.diff())).float()
