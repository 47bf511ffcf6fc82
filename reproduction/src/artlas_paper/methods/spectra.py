r"""What RiemannGFM sees of a graph: eigenvectors of its Laplacian, and a breadth-first forest.

Neither depends on how nodes are numbered. For an eigenvalue :math:`\lambda` of :math:`L = I -
D^{-1/2} A D^{-1/2}` of multiplicity m with projector P, a node has :math:`\sqrt{n P_{ii} / m}` in
all m columns: an eigenspace has no basis of its own. Where m = 1 that is the size of the
eigenvector's entry, and it has a sign as well, chosen such that :math:`\sum_i u_i^3 > 0`, unless
this sum is 0. An eigenspace that does not fit into the columns as a whole is left out.
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.statistics import colours

FULL = 128  # nodes up to which all eigenvectors are found faster than some
SAME = 1e-6  # eigenvalues that differ less are one
SKEW = 1e-5  # mean cubes below this say nothing about a sign
Array = NDArray[np.float64]


def spectra(graphs: Graphs, width: int) -> NDArray[np.float32]:
    """Entries of the eigenvectors with the smallest eigenvalues, [N, width]; 0 where n < width."""
    made = np.zeros((graphs.num_nodes, width), dtype=np.float32)
    for g, (begin, end) in enumerate(itertools.pairwise(graphs.node_ptr.tolist())):
        values, vectors = _smallest(graphs.to_scipy(g).toarray(), width + 1)
        own = _invariant(values, vectors)[:, :width]
        made[begin:end, : own.shape[1]] = own
    return made


def _smallest(adjacency: Array, count: int) -> tuple[Array, Array]:
    """The eigenpairs of the normalised Laplacian with the smallest eigenvalues."""
    from scipy.linalg import eigh

    n, degree = len(adjacency), adjacency.sum(1)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
    laplacian = np.diag((degree > 0).astype(float)) - root[:, None] * adjacency * root
    if n <= FULL:
        values, vectors = eigh(laplacian, driver="evd", check_finite=False)
        return values[:count], vectors[:, :count]
    chosen = (0, min(count, n) - 1)
    return eigh(laplacian, subset_by_index=chosen, driver="evr", check_finite=False)


def _invariant(values: Array, vectors: Array) -> Array:
    """See the module; the last column is there to tell whether the one before is alone."""
    n, columns = vectors.shape
    starts = np.flatnonzero(np.append(True, np.diff(values) > SAME))
    members = np.diff(np.append(starts, columns))
    sizes = np.sqrt(n * np.add.reduceat(vectors**2, starts, axis=1) / members)
    skew = np.sqrt(n) * (vectors[:, starts] ** 3).sum(0)
    clear = (members == 1) & (np.abs(skew) > SKEW)
    signed = np.sqrt(n) * vectors[:, starts] * np.sign(skew)
    made = np.repeat(np.where(clear, signed, sizes), members, axis=1)
    if columns < n:
        made[:, starts[-1] :] = 0  # may go on beyond what was computed
    return made


def forest(graphs: Graphs, centred: bool) -> Graphs:
    """Every component's breadth-first tree, as graphs on the same nodes.

    The root is the first node of a graph if ``centred``, and otherwise, as in components without
    it, the node of the highest degree. A parent is a neighbour of the level above, again that of
    the highest degree. Ties are broken by the colours of neighbourhoods; nodes of one colour are
    roots, or parents, together.
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
    pointer = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    col = torch.from_numpy(cols[order].astype(np.int32))
    return Graphs(graphs.node_ptr, torch.from_numpy(pointer), col)


def _ranks(graphs: Graphs) -> NDArray[np.int64]:
    """Places of nodes by degree and colour, [N]; equal nodes share one."""
    degree, colour = np.diff(graphs.row_ptr.numpy()), colours(graphs)
    order = np.lexsort((colour, degree))
    new = (np.diff(degree[order]) != 0) | (colour[order][1:] != colour[order][:-1])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.concatenate([[0], np.cumsum(new)])
    return rank


def _levels(batch: Batch, roots: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Steps from the nearest root, [N]."""
    level = torch.where(torch.from_numpy(roots), 0, -1)
    depth = 0
    while (level < 0).any():
        reached = batch.neighbour_sums((level == depth).float()[:, None])[:, 0] > 0
        depth += 1
        level[reached & (level < 0)] = depth
    return level.numpy()
