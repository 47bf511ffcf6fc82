"""Rewire simple graphs by double-edge swaps, which keep every degree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.graphs.collection import Graphs

ATTEMPTS = 100  # at most, per swap wanted
BLOCK = 4096  # random numbers drawn at once


@dataclass(frozen=True, eq=False)
class Rewired:
    """Graphs after swaps; realised: the share of edges lost [G]; swaps: their number [G]."""

    graphs: Graphs
    realised: NDArray[np.float64]
    swaps: NDArray[np.int64]


def rewire(graphs: Graphs, ratio: float, seed: int) -> Rewired:
    r"""Swap enough pairs of edges of each graph to replace the share ``ratio`` of them.

    A swap replaces edges {a, b}, {c, d}, drawn uniformly, by {a, d}, {c, b}, unless that makes a
    loop or a double edge. A ratio p takes :math:`\mathrm{round}(p |E| / 2)` swaps, or fewer where
    100 attempts for each do not find them. Degrees, x, y and ids are kept. As swaps also hit edges
    that are already new, the realised ratio is below p: :math:`1 - e^{-p}` in a large sparse graph.

    The result for graph g depends only on that graph, on g and on the seed; a larger ratio
    continues the swaps of a smaller one.
    """
    if not 0 <= ratio <= 1:
        raise ValueError(f"A ratio of edges must be between 0 and 1, got {ratio!r}.")
    ends, realised, swaps = [], [], []
    for g, graph in enumerate(graphs):
        row = np.repeat(np.arange(graph.num_nodes), graph.row_ptr.diff().numpy())
        once = row < graph.col.numpy()
        edges = np.column_stack([row[once], graph.col.numpy()[once]]).astype(np.int64)
        rng = np.random.default_rng((seed, g))
        new_edges, count = swap_edges(edges, round(ratio * len(edges) / 2), rng)
        ends.append(new_edges + int(graphs.node_ptr[g]))
        before, after = (np.sort(pair, 1) @ (graph.num_nodes, 1) for pair in (edges, new_edges))
        realised.append(float(np.mean(~np.isin(before, after))) if len(edges) else 0.0)
        swaps.append(count)
    rewired = _with_edges(graphs, np.concatenate(ends))
    return Rewired(rewired, np.array(realised), np.array(swaps))


def swap_edges(
    edges: NDArray[np.int64], wanted: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    """Make up to ``wanted`` double-edge swaps of a simple graph with edges [E, 2].

    Returns the edges in the same positions, and the number of swaps made.
    """
    if len(edges) < 2:
        return edges, 0
    tails, heads = edges.T.tolist()
    span = int(edges.max()) + 1
    present = set((edges.min(1) * span + edges.max(1)).tolist())  # {a, b} as one number
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
        if a == d or b == c or first in present or second in present:
            continue  # also when i is j: then both are present
        present.remove(a * span + b if a < b else b * span + a)
        present.remove(c * span + d if c < d else d * span + c)
        present.add(first)
        present.add(second)
        heads[i], tails[j], heads[j] = d, c, b
        done += 1
    return np.column_stack([tails, heads]), done


def _with_edges(graphs: Graphs, edges: NDArray[np.int64]) -> Graphs:
    """Replace the edges of graphs by others [E, 2] of the same degrees."""
    both = np.concatenate([edges, edges[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    col = torch.from_numpy(both[order, 1].astype(np.int32))
    return Graphs(graphs.node_ptr, graphs.row_ptr, col, graphs.x, graphs.y, graphs.ids)
