"""Double-edge swaps: other graphs with the same degrees, simple as before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs

ATTEMPTS = 100  # at most, for every swap that is wanted
BLOCK = 4096  # random numbers drawn at once


@dataclass(frozen=True, eq=False)
class Rewired:
    """Graphs after swaps; realised: the share of its edges that a graph lost, [G]; swaps: [G]."""

    graphs: Graphs
    realised: NDArray[np.float64]
    swaps: NDArray[np.int64]


def rewire(graphs: Graphs, ratio: float, seed: int) -> Rewired:
    r"""Swap so many pairs of edges of every graph that ``ratio`` of them would be new.

    A swap replaces edges {a, b}, {c, d}, drawn uniformly, by {a, d}, {c, b} unless that makes a
    loop or an edge that is there. There are :math:`\mathrm{round}(p |E| / 2)` swaps, or fewer where
    100 attempts for each do not find them. Every degree, and x, y and ids, stay. As swaps also hit
    edges that are new, the realised ratio is below p: :math:`1 - e^{-p}` in a large sparse graph.

    What becomes of graph g depends on it, on g and on the seed; a larger ratio goes on where a
    smaller one ended.
    """
    if not 0 <= ratio <= 1:
        raise ValueError(f"A ratio of edges is between 0 and 1, got {ratio!r}.")
    ends, realised, swaps = [], [], []
    for g, graph in enumerate(graphs):
        row = np.repeat(np.arange(graph.num_nodes), graph.row_ptr.diff().numpy())
        once = row < graph.col.numpy()
        edges = np.column_stack([row[once], graph.col.numpy()[once]]).astype(np.int64)
        rng = np.random.default_rng((seed, g))
        found, count = swap(edges, round(ratio * len(edges) / 2), rng)
        ends.append(found + int(graphs.node_ptr[g]))
        before, after = (np.sort(pair, 1) @ (graph.num_nodes, 1) for pair in (edges, found))
        realised.append(float(np.mean(~np.isin(before, after))) if len(edges) else 0.0)
        swaps.append(count)
    made = _with_edges(graphs, np.concatenate(ends))
    return Rewired(made, np.array(realised), np.array(swaps))


def swap(
    edges: NDArray[np.int64], wanted: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    """Make ``wanted`` double-edge swaps of a simple graph, edges [E, 2], if they are found.

    Returns the edges in the same places, and how many swaps there were.
    """
    if len(edges) < 2:
        return edges, 0
    tails, heads = edges.T.tolist()
    span = int(edges.max()) + 1
    there = set((edges.min(1) * span + edges.max(1)).tolist())  # {a, b} as one number
    done, draws = 0, iter(list[list[int]]())
    for _ in range(ATTEMPTS * wanted):
        if done == wanted:
            break
        drawn = next(draws, None)
        if drawn is None:
            draws = iter(rng.integers((len(tails), len(tails), 2), size=(BLOCK, 3)).tolist())
            drawn = next(draws)
        i, j, turn = drawn
        a, b, c, d = tails[i], heads[i], tails[j], heads[j]
        if turn:
            c, d = d, c
        first = a * span + d if a < d else d * span + a
        second = b * span + c if b < c else c * span + b
        if a == d or b == c or first in there or second in there:
            continue  # also when i is j: then both are there
        there.remove(a * span + b if a < b else b * span + a)
        there.remove(c * span + d if c < d else d * span + c)
        there.add(first)
        there.add(second)
        heads[i], tails[j], heads[j] = d, c, b
        done += 1
    return np.column_stack([tails, heads]), done


def _with_edges(graphs: Graphs, edges: NDArray[np.int64]) -> Graphs:
    """The same nodes with other edges [E, 2] of the same degrees."""
    both = np.concatenate([edges, edges[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    col = torch.from_numpy(both[order, 1].astype(np.int32))
    return Graphs(graphs.node_ptr, graphs.row_ptr, col, graphs.x, graphs.y, graphs.ids)
