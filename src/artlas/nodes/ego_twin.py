"""Local push and induced subgraphs without compiled code: the same bits, but slowly."""

from __future__ import annotations

import itertools
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Walker:
    """Find ego-graphs of one graph (row_ptr, col), as the compiled walker does."""

    def __init__(
        self, row_ptr: NDArray[np.int64], col: NDArray[np.int32], threshold: float
    ) -> None:
        self.rows, self.col = row_ptr.tolist(), col
        self.limits = (threshold * np.diff(row_ptr).clip(1)).tolist()

    def run(
        self, centres: Any, restart: float, most_pushes: int, most_nodes: int, lazy: bool, _: int
    ) -> SimpleNamespace:
        """Find the ego-graphs of the centres: their nodes and scores, three figures of each."""
        ends, nodes, kept, figures = [0], [], [], []
        for centre in centres.tolist():
            scores, pushes, stopped = self._push(centre, restart, most_pushes, lazy)
            positive = [(-score, v) for v, score in scores.items() if score > 0 and v != centre]
            best = sorted(positive)[: most_nodes - 1]
            nodes += [centre, *(v for _, v in best)]
            kept += [scores[centre], *(-score for score, _ in best)]
            ends.append(len(nodes))
            figures.append((pushes, len(positive) + 1, stopped))
        columns = np.array(figures, dtype=np.int64).reshape(-1, 3).T
        return SimpleNamespace(
            node_ptr=np.array(ends, dtype=np.int64),
            nodes=np.array(nodes, dtype=np.int32),
            scores=np.array(kept, dtype=np.float32),
            pushes=columns[0],
            positive=columns[1],
            stopped=columns[2],
        )

    def _push(
        self, centre: int, restart: float, most_pushes: int, lazy: bool
    ) -> tuple[dict[int, float], int, bool]:
        residual, reserve, queue, pushes = {centre: 1.0}, {centre: 0.0}, deque([centre]), 0
        while queue:
            if pushes == most_pushes:
                break
            v = queue.popleft()
            mass, begin, end = residual[v], self.rows[v], self.rows[v + 1]
            pushes += 1
            if begin == end:
                reserve[v], residual[v] = reserve.get(v, 0.0) + mass, 0.0
                continue
            reserve[v] = reserve.get(v, 0.0) + restart * mass
            moving = (1.0 - restart) * mass
            kept = 0.5 * moving if lazy else 0.0
            share = (moving - kept) / float(end - begin)
            residual[v] = kept
            if kept > self.limits[v]:
                queue.append(v)
            for w in self.col[begin:end].tolist():
                before = residual.get(w, 0.0)
                residual[w] = before + share
                if before <= self.limits[w] < residual[w]:
                    queue.append(w)
        scores = {v: reserve.get(v, 0.0) + mass for v, mass in residual.items()}
        return scores, pushes, bool(queue)


def induce(
    row_ptr: NDArray[np.int64],
    col: NDArray[np.int32],
    node_ptr: NDArray[np.int64],
    nodes: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return row_ptr and col of the subgraphs that the nodes of every ego-graph induce."""
    from scipy.sparse import csr_array

    size = len(row_ptr) - 1
    whole = csr_array((np.ones(len(col), dtype=np.int8), col, row_ptr), shape=(size, size))
    lengths, cols = [np.zeros(1, dtype=np.int64)], [np.empty(0, dtype=np.int32)]
    for begin, end in itertools.pairwise(node_ptr):
        part = whole[nodes[begin:end]][:, nodes[begin:end]].tocsr()
        part.sort_indices()
        lengths.append(np.diff(part.indptr).astype(np.int64))
        cols.append((part.indices + begin).astype(np.int32))
    return np.cumsum(np.concatenate(lengths)), np.concatenate(cols)
