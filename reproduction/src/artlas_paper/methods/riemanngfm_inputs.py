r"""RiemannGFM's inputs: eigenvectors of a graph's Laplacian, and breadth-first trees.

Neither depends on the numbering of nodes. For an eigenvalue :math:`\lambda` of :math:`L = I -
D^{-1/2} A D^{-1/2}` of multiplicity m with projector P, node i has :math:`\sqrt{n P_{ii} / m}`
in all m columns, because an eigenspace has no canonical basis. For m = 1 this is the absolute value
of the eigenvector's entry; it then has a sign, too, chosen such that :math:`\sum_i u_i^3 > 0`,
unless this sum is 0. An eigenspace that does not fit into the columns as a whole is left out.
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.graph_invariants import node_colours

FULL = 128  # number of nodes up to which all eigenvectors are found faster than some
SAME_VALUE = 1e-6  # eigenvalues that differ by less are equal
LEAST_SKEW = 1e-5  # mean cubes below this do not determine a sign
Array = NDArray[np.float64]


def laplacian_features(graphs: Graphs, width: int) -> NDArray[np.float32]:
    """Compute entries of the eigenvectors with the smallest eigenvalues, [N, width].

    Graphs of fewer nodes than the width have zeros in the last columns.
    """
    features = np.zeros((graphs.num_nodes, width), dtype=np.float32)
    for g, (begin, end) in enumerate(itertools.pairwise(graphs.node_ptr.tolist())):
        values, vectors = _smallest_eigenpairs(graphs.to_scipy(g).toarray(), width + 1)
        own = _invariant_entries(values, vectors)[:, :width]
        features[begin:end, : own.shape[1]] = own
    return features


def _smallest_eigenpairs(adjacency: Array, count: int) -> tuple[Array, Array]:
    """Compute the eigenpairs of the normalised Laplacian with the smallest eigenvalues."""
    from scipy.linalg import eigh

    n, degree = len(adjacency), adjacency.sum(1)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
    laplacian = np.diag((degree > 0).astype(float)) - root[:, None] * adjacency * root
    if n <= FULL:
        values, vectors = eigh(laplacian, driver="evd", check_finite=False)
        return values[:count], vectors[:, :count]
    chosen = (0, min(count, n) - 1)
    return eigh(laplacian, subset_by_index=chosen, driver="evr", check_finite=False)


def _invariant_entries(values: Array, vectors: Array) -> Array:
    """Replace eigenvectors by what their eigenspaces determine (see the module).

    The caller drops the last column: it shows whether the one before is alone in its eigenspace.
    """
    n, columns = vectors.shape
    starts = np.flatnonzero(np.append(True, np.diff(values) > SAME_VALUE))
    members = np.diff(np.append(starts, columns))
    sizes = np.sqrt(n * np.add.reduceat(vectors**2, starts, axis=1) / members)
    skew = np.sqrt(n) * (vectors[:, starts] ** 3).sum(0)
    clear = (members == 1) & (np.abs(skew) > LEAST_SKEW)
    signed = np.sqrt(n) * vectors[:, starts] * np.sign(skew)
    entries = np.repeat(np.where(clear, signed, sizes), members, axis=1)
    if columns < n:
        entries[:, starts[-1] :] = 0  # the eigenspace may exceed what was computed
    return entries


def breadth_first_trees(graphs: Graphs, centred: bool) -> Graphs:
    """Compute every component's breadth-first tree, as graphs on the same nodes.

    If ``centred``, the first node of a graph is the root of its component. Any other component is
    rooted at its node of the highest degree. A parent is a neighbour on the level above, again that
    of the highest degree. Colours of neighbourhoods break ties; nodes of equal degree and colour
    are roots, or parents, together.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    batch, n = Batch.of(graphs.with_features(None)), graphs.num_nodes
    rank = _ranks(graphs)
    ends = graphs.row_ptr.numpy(), graphs.col.numpy()
    pattern = csr_array((np.ones(len(ends[1]), dtype=np.int8), ends[1], ends[0]), shape=(n, n))
    component = connected_components(pattern, directed=False)[1]
    if centred:
        rank[graphs.node_ptr[:-1].numpy()] = n
    highest = np.full(component.max() + 1, -1)
    np.maximum.at(highest, component, rank)
    level = _levels(batch, rank == highest[component])

    child, parent = batch.row.numpy(), ends[1]
    upward = level[parent] == level[child] - 1
    child, parent = child[upward], parent[upward]
    best = np.full(n, -1)
    np.maximum.at(best, child, rank[parent])
    chosen = rank[parent] == best[child]
    child, parent = child[chosen].astype(np.int64), parent[chosen].astype(np.int64)
    rows, cols = np.concatenate([child, parent]), np.concatenate([parent, child])
    order = np.argsort(rows * n + cols)
    row_ptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    col = torch.from_numpy(cols[order].astype(np.int32))
    return Graphs(graphs.node_ptr, torch.from_numpy(row_ptr), col)


def _ranks(graphs: Graphs) -> NDArray[np.int64]:
    """Rank nodes by degree and colour, [N]; equal nodes have equal ranks."""
    degree, colour = np.diff(graphs.row_ptr.numpy()), node_colours(graphs)
    order = np.lexsort((colour, degree))
    new = (np.diff(degree[order]) != 0) | (colour[order][1:] != colour[order][:-1])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.concatenate([[0], np.cumsum(new)])
    return rank


def _levels(batch: Batch, roots: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the steps from the nearest root, [N]."""
    level = torch.where(torch.from_numpy(roots), 0, -1)
    depth = 0
    while (level < 0).any():
        reached = batch.neighbour_sums((level == depth).float()[:, None])[:, 0] > 0
        depth += 1
        level[reached & (level < 0)] = depth
    return level.numpy()
