"""GraphGlue's links between the nodes of a graph and its virtual nodes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from artlas_paper.kernels import normalised_sums
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.sparse_matmul import SparsePattern, pointer

SAME_SCORE = 1e-5  # scores that differ by less are equal


class VirtualLinks:
    """The links between the nodes of a batch and M virtual nodes of every graph.

    scores [T, M]: of the rows of a feature table with the virtual nodes; rows int64 [N]: the row of
    every node.
    """

    def __init__(self, batch: Batch, scores: Tensor, rows: Tensor, neighbours: int) -> None:
        self.batch, count = batch, scores.shape[1]
        with torch.no_grad():
            shares = _link_shares(batch, scores.index_select(0, rows), neighbours)
            node, which = shares.nonzero(as_tuple=True)
            row_ptr = pointer(torch.bincount(node, minlength=batch.num_nodes))
        virtual = batch.graph_of[node] * count + which
        self.pattern = SparsePattern(row_ptr, virtual, batch.num_graphs * count)
        weights = scores.flatten().index_select(0, rows[node] * count + which).sigmoid()
        weights = weights * shares[node, which]
        linked = weights.new_zeros(batch.num_nodes).index_add(0, node, weights)
        self.real = (batch.degree + 1 + linked).rsqrt()
        degree = weights.new_zeros(self.pattern.columns).index_add(0, virtual, weights)
        self.own = 1 / (1 + degree)  # the normalised weight of a virtual node's self-loop
        self.weights = self.real[node] * weights * self.own.sqrt()[virtual]

    def propagate(self, x: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply the normalised adjacency by vectors of nodes, and add a bias [c].

        x [N, c] are those of real nodes, v [G M, c] those of virtual nodes.
        """
        place = self.batch.row_ptr, self.batch.col
        real = normalised_sums(x, bias, self.real, *place) + self.pattern.matmul(self.weights, v)
        return real, self._virtual(x, v) + bias

    def propagate_pooled(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Propagate without bias, and average over the real nodes of every graph: [G, c], [G M, c].

        The sum of a symmetric matrix's product is the product of its column sums.
        """
        batch = self.batch
        place = batch.row_ptr, batch.col
        columns = normalised_sums(x.new_ones(len(x), 1), None, self.real, *place)[:, 0]
        nodes = SparsePattern(batch.node_ptr, torch.arange(batch.num_nodes), batch.num_nodes)
        total = nodes.matmul(columns, x)
        ends = v.new_zeros(len(v)).index_add(0, self.pattern.col, self.weights)
        total = total + self.by_graph(ends[:, None] * v).sum(1)
        return total / batch.sizes[:, None], self._virtual(x, v)

    def by_graph(self, v: Tensor) -> Tensor:
        """View vectors of virtual nodes [G M, c] as [G, M, c]."""
        return v.unflatten(0, (self.batch.num_graphs, -1))

    def _virtual(self, x: Tensor, v: Tensor) -> Tensor:
        return self.pattern.transposed_matmul(self.weights, x) + self.own[:, None] * v


def _link_shares(batch: Batch, scores: Tensor, count: int) -> Tensor:
    """Compute the shares of nodes in the links of their graph's virtual nodes, [N, M].

    Graphs of similar sizes are padded to the largest among them and processed together.
    """
    octave = batch.sizes.double().log2().ceil().long()
    order = octave.argsort(stable=True)
    counts: list[int] = octave.unique(return_counts=True)[1].tolist()
    sizes = batch.sizes[order].split(counts)
    longest = [int(own.max()) for own in sizes]
    rows = torch.repeat_interleave(torch.tensor(longest), torch.tensor(counts))
    first = (rows.cumsum(0) - rows)[order.argsort()]  # where each graph's padded rows begin
    row = (first - batch.node_ptr[:-1])[batch.graph_of] + torch.arange(batch.num_nodes)
    padded = scores.new_full((int(rows.sum()), scores.shape[1]), -math.inf)
    padded.index_copy_(0, row, scores)
    parts = padded.split([c * n for c, n in zip(counts, longest, strict=True)])
    shares = [
        top_shares(part.view(len(own), -1, scores.shape[1]), own, count).flatten(0, 1)
        for part, own in zip(parts, sizes, strict=True)
    ]
    return torch.cat(shares).index_select(0, row)


def top_shares(scores: Tensor, sizes: Tensor, count: int) -> Tensor:
    """Choose the ``count`` best nodes of every column of scores [G, n, M], padded with -inf.

    Returns shares [G, n, M]: 1 for the best nodes, 0 for the others, and equal shares of the places
    that are left for nodes with equal scores.
    """
    count = min(count, scores.shape[1])
    places = sizes.clamp(max=count)[:, None, None]
    best = scores.topk(count, dim=1).values
    last = best.gather(1, (places - 1).expand(-1, 1, scores.shape[2]))
    margin = SAME_SCORE * (1 + last.abs())
    above, tied = scores > last + margin, (scores - last).abs() <= margin
    left = places - above.sum(1, keepdim=True)
    return above + tied * (left / tied.sum(1, keepdim=True))
