"""Local push and induced subgraphs without compiled code: the same results to the bit, slowly."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Walker:
    """The twin of the compiled walker of one graph (row_ptr, col)."""

    def __init__(
        self, row_ptr: NDArray[np.int64], col: NDArray[np.int32], threshold: float
    ) -> None:
        self.rows, self.col, self.threshold = row_ptr.tolist(), col, threshold

    def run(
        self, centres: Any, restart: float, most_pushes: int, most_nodes: int, lazy: bool, _: int
    ) -> Egos:
        """Ego-graphs of the centres, one after another."""
        found = Egos()
        for centre in centres.tolist():
            scores, pushes, stopped = self._push(centre, restart, most_pushes, lazy)
            positive = [(-score, v) for v, score in scores.items() if score > 0 and v != centre]
            best = sorted(positive)[: most_nodes - 1]
            found.add(centre, scores[centre], best, pushes, len(positive) + 1, stopped)
        return found

    def _limit(self, v: int) -> float:
        return self.threshold * float(max(self.rows[v + 1] - self.rows[v], 1))

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
            if kept > self._limit(v):
                queue.append(v)
            for w in self.col[begin:end].tolist():
                before = residual.get(w, 0.0)
                residual[w] = before + share
                if residual[w] > (limit := self._limit(w)) and before <= limit:
                    queue.append(w)
        scores = {v: reserve.get(v, 0.0) + mass for v, mass in residual.items()}
        return scores, pushes, bool(queue)


class Egos:
    """What the compiled walker returns, as lists."""

    def __init__(self) -> None:
        self.ends, self.found, self.score = [0], list[int](), list[float]()
        self.pushed, self.counted, self.broken = list[int](), list[int](), list[bool]()

    def add(
        self,
        centre: int,
        own: float,
        best: list[tuple[float, int]],
        pushes: int,
        positive: int,
        stopped: bool,
    ) -> None:
        """Append the nodes of one centre."""
        self.found += [centre, *(v for _, v in best)]
        self.score += [own, *(-score for score, _ in best)]
        self.ends.append(len(self.found))
        self.pushed.append(pushes)
        self.counted.append(positive)
        self.broken.append(stopped)

    node_ptr = property(lambda self: np.array(self.ends, dtype=np.int64))
    nodes = property(lambda self: np.array(self.found, dtype=np.int32))
    scores = property(lambda self: np.array(self.score, dtype=np.float32))
    pushes = property(lambda self: np.array(self.pushed, dtype=np.int64))
    positive = property(lambda self: np.array(self.counted, dtype=np.int64))
    stopped = property(lambda self: np.array(self.broken, dtype=np.uint8))


def induce(
    row_ptr: NDArray[np.int64],
    col: NDArray[np.int32],
    node_ptr: NDArray[np.int64],
    nodes: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """row_ptr and col of the subgraphs that the nodes of every ego induce, one after another."""
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
