"""Node colours, canonical node orders and graph statistics that do not depend on numbering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs
from artlas.nodes.ego import EgoGraphs

ROUNDS = 3  # of Weisfeiler-Lehman colour refinement
DEGREES, CLUSTERINGS = 16, 10  # bins of the two histograms
COUNTS = 2  # triangles and four-cycles
COUNTED_NODES = 4096  # nodes whose two-step walks are counted at a time
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class NodeOrder:
    """The nodes of all graphs by falling degree, then by colour, then by features.

    nodes [N]: node numbers in that order, graph by graph; position [N]: the position within its
    graph of every place in the order; starts: where classes of equal degree and colour begin.
    """

    nodes: NDArray[np.int64]
    position: NDArray[np.int64]
    starts: NDArray[np.int64]


def order_nodes(graphs: Graphs) -> NodeOrder:
    """Order nodes by degree, colour and features; nodes equal in all three keep their order."""
    degree, colour = np.diff(graphs.row_ptr.numpy()), node_colours(graphs)
    first, sizes = graphs.node_ptr[:-1].numpy(), graphs.sizes.numpy()
    graph = np.repeat(np.arange(len(graphs)), sizes)
    projection = np.zeros(graphs.num_nodes)
    if graphs.x is not None:
        x = graphs.x.numpy().astype(np.float64)
        projection = (x * np.random.default_rng(0).random(x.shape[1])).sum(1)
    nodes = np.lexsort((projection, colour, -degree, graph))
    new = np.zeros(len(nodes), dtype=bool)
    for key in (degree[nodes], colour[nodes]):
        new[1:] |= key[1:] != key[:-1]
    new[first] = True
    return NodeOrder(nodes, np.arange(len(nodes)) - np.repeat(first, sizes), np.flatnonzero(new))


def node_colours(graphs: Graphs, rounds: int = ROUNDS) -> Words:
    """Hash every node's neighbourhood, uint64 [N], by Weisfeiler-Lehman refinement of degrees."""
    rows = graphs.row_ptr.numpy()
    col = graphs.col.numpy()
    own = _mix(np.diff(rows).astype(np.uint64))
    for _ in range(rounds):
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mix(own)[col], dtype=np.uint64)])
        own = _mix(
            own * np.uint64(3) + sums[rows[1:]] - sums[rows[:-1]]
        )  # wrap-around sums are exact
    return own


def _mix(words: Words) -> Words:
    """Apply the finaliser of splitmix64."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def graph_statistics(graphs: Graphs | EgoGraphs) -> NDArray[np.float32]:
    """Compute histograms of degree and clustering, and log counts of small cycles, [G, s].

    Histograms are shares of nodes; degrees have bins 0, 1, ... and one for DEGREES - 1 and more.
    Counts are log(1 + n) for n triangles and n four-cycles.
    """
    return np.concatenate([_statistics(part) for part in graphs.batches(COUNTED_NODES)])


def _statistics(graphs: Graphs) -> NDArray[np.float32]:
    from scipy.sparse import csr_array

    n, rows, col = graphs.num_nodes, graphs.row_ptr.numpy(), graphs.col.numpy()
    ones = np.ones(len(col))
    adjacency = csr_array((ones, col, rows), shape=(n, n))
    walks = (adjacency @ adjacency).tocsr()
    degree = np.diff(rows)
    corners = np.asarray((walks * adjacency).sum(1)).reshape(-1) / 2  # triangles at every node
    pairs = degree * (degree - 1) / 2
    clustering = np.divide(corners, pairs, out=np.zeros(n), where=pairs > 0)
    walks.setdiag(0)
    walks.data *= (walks.data - 1) / 4  # each four-cycle has two diagonals, seen from both ends
    diagonals = np.asarray(walks.sum(1)).reshape(-1)
    first, sizes = graphs.node_ptr[:-1].numpy(), graphs.sizes.numpy()
    graph = np.repeat(np.arange(len(graphs)), sizes)
    histograms = [
        np.bincount(graph * bins + bin_, minlength=len(graphs) * bins).reshape(-1, bins)
        / sizes[:, None]
        for bins, bin_ in (
            (DEGREES, np.minimum(degree, DEGREES - 1)),
            (CLUSTERINGS, np.minimum((clustering * CLUSTERINGS).astype(int), CLUSTERINGS - 1)),
        )
    ]
    counts = [np.add.reduceat(corners, first) / 3, np.add.reduceat(diagonals, first) / 2]
    logs = np.log1p(np.stack(counts, 1))
    return np.concatenate([*histograms, logs], 1).astype(np.float32)
