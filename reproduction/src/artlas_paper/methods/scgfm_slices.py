r"""The sliced Gromov-Wasserstein distance of SCGFM between graphs and small bases.

:math:`SGW(A, B)` is the mean squared difference of the sorted columns of :math:`A \theta` and
:math:`B \theta`, both padded with zeros to D rows, for L random directions :math:`\theta` of unit
norm. It depends on the numbering of nodes. Nodes are therefore ordered by degree and colour, and
the rows of :math:`\theta` are averaged over nodes that these do not distinguish.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas_paper.methods.graph_invariants import order_nodes

PADDED = 100  # rows that the smallest graphs are padded to
PROJECTED_NODES = 1 << 14  # nodes that are projected at a time


class Slices(NamedTuple):
    """What the sliced distance needs of G graphs.

    low, high [G, M, L]: the M smallest and M largest of the padded columns of A theta, ascending;
    squares [G, L]: their sums of squares; norms [G, L]: squared norms of theta's first D rows;
    padded [G]: D. The M rows of a base meet no other of the D sorted ones.
    """

    low: Tensor
    high: Tensor
    squares: Tensor
    norms: Tensor
    padded: Tensor

    def distances(self, base: Tensor) -> Tensor:
        """Compute the distances to every base, given as B theta [K, M, L]: [G, K]."""
        base, weight = base.sort(1).values, self._weight()
        cross = base.clamp(max=0).flatten(1) @ (self.low * weight[:, None]).flatten(1).T
        cross = cross + base.clamp(min=0).flatten(1) @ (self.high * weight[:, None]).flatten(1).T
        own = (self.squares * weight).sum(1)
        return own[:, None] + weight @ base.square().sum(1).T - 2 * cross.T

    def distance(self, base: Tensor) -> Tensor:
        """Compute the distance of each graph to its own base, given as B theta [G, M, L]: [G]."""
        base = base.sort(1).values
        cross = (base.clamp(max=0) * self.low + base.clamp(min=0) * self.high).sum(1)
        return ((self.squares + base.square().sum(1) - 2 * cross) * self._weight()).sum(1)

    def double(self) -> Slices:
        """Return the same in float64."""
        return Slices(*(values.double() for values in self))

    def _weight(self) -> Tensor:
        return 1 / (self.norms * self.padded[:, None] * self.norms.shape[1])


class Directions:
    """Random directions theta, drawn from a seed; more rows do not change the first ones."""

    def __init__(self, seed: int, slices: int) -> None:
        self.seed, self.slices = seed, slices
        self._theta = np.empty((0, slices), dtype=np.float32)

    def first(self, rows: int, slices: int) -> NDArray[np.float32]:
        """Return the first rows and columns, [rows, slices]."""
        if rows > len(self._theta):
            rng = np.random.default_rng(self.seed)
            shape = (1 << (rows - 1).bit_length(), self.slices)
            self._theta = rng.standard_normal(shape, dtype=np.float32)
        return self._theta[:rows, :slices]


def project(graphs: Graphs, directions: Directions, roles: int, slices: int) -> Slices:
    """Project graphs on so many random directions, for distances to bases of M = roles nodes."""
    parts = [_project(part, directions, roles, slices) for part in graphs.batches(PROJECTED_NODES)]
    return Slices(*(torch.cat(values) for values in zip(*parts, strict=True)))


def _project(graphs: Graphs, directions: Directions, roles: int, slices: int) -> Slices:
    sizes = graphs.sizes.numpy()
    padded = np.maximum(sizes, max(PADDED, roles))
    theta = directions.first(int(padded.max()), slices)
    order = order_nodes(graphs)
    members = np.diff(np.append(order.starts, graphs.num_nodes))
    means = np.add.reduceat(theta[order.position], order.starts) / members[:, None]
    own = np.empty((graphs.num_nodes, slices), dtype=np.float32)
    own[order.nodes] = np.repeat(means, members, axis=0)
    projected = _neighbour_sums(graphs, torch.from_numpy(own))
    low, high = projected.new_empty(2, len(graphs), roles, slices)
    zeros = projected.new_zeros(roles, slices)
    for g, columns in enumerate(projected.split(sizes.tolist())):
        missing = min(int(padded[g] - sizes[g]), roles)
        columns = torch.cat([columns, zeros[:missing]]).T.contiguous()
        low[g] = columns.topk(roles, largest=False).values.T
        high[g] = columns.topk(roles).values.flip(1).T
    first = graphs.node_ptr[:-1].numpy()
    squares = np.add.reduceat(projected.numpy() ** 2, first)
    norms = np.cumsum(theta.astype(np.float64) ** 2, axis=0)[padded - 1]
    return Slices(
        low,
        high,
        torch.from_numpy(squares),
        torch.from_numpy(norms).float(),
        torch.from_numpy(padded).float(),
    )


def _neighbour_sums(graphs: Graphs, values: Tensor) -> Tensor:
    """Compute A V for values V [N, L]."""
    n = graphs.num_nodes
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        ones = torch.ones(len(graphs.col))
        adjacency = torch.sparse_csr_tensor(
            graphs.row_ptr, graphs.col.long(), ones, (n, n), check_invariants=False
        )
        return adjacency @ values
