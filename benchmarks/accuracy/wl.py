"""Weisfeiler-Lehman colours of nodes, and how often every graph has each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from artlas.graphs.collection import Graphs

ROUNDS = 5
BUCKETS = 512
_MIXERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
Colours = NDArray[np.int64]


def start_colours(graphs: Graphs) -> Colours | None:
    """Number the nodes' labels, which are the columns of zeros and ones in x; None without any."""
    if graphs.x is None:
        return None
    x = graphs.x.numpy()
    binary = x[:, ((x == 0) | (x == 1)).all(0)]
    if not binary.shape[1]:
        return None
    return np.unique(binary, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def refine(graphs: Graphs, colours: Colours) -> Colours:
    """Do one round: nodes of equal colour and equal neighbours' colours get equal new colours.

    The neighbours' colours are compared by the sum of 64-bit hashes.
    """
    hashed = _mix(colours.astype(np.uint64))
    source = np.repeat(np.arange(graphs.num_nodes), graphs.row_ptr.diff().numpy())
    order = graphs.row_ptr.numpy()[:-1]
    around = np.zeros(graphs.num_nodes, dtype=np.uint64)
    if len(source):
        filled = np.flatnonzero(graphs.row_ptr.diff().numpy())
        around[filled] = np.add.reduceat(hashed[graphs.col.numpy()], order[filled])
    own = _mix(hashed + np.uint64(_MIXERS[0]))
    return np.unique(own + around, return_inverse=True)[1].astype(np.int64)


def colours_by_round(graphs: Graphs, rounds: int = ROUNDS) -> dict[int, Colours]:
    """Colour all nodes, by round: from round 0 where nodes have labels, and from 1 where not."""
    start = start_colours(graphs)
    colours = np.zeros(graphs.num_nodes, dtype=np.int64) if start is None else start
    found = {} if start is None else {0: start}
    for number in range(1, rounds + 1):
        colours = refine(graphs, colours)
        found[number] = colours
    return found


def counts(graphs: Graphs, colours: Colours) -> sparse.csr_array:
    """Count the nodes of every colour in every graph, [G, colours]."""
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes.numpy())
    shape = (len(graphs), int(colours.max()) + 1)
    return sparse.coo_array((np.ones(len(owner)), (owner, colours)), shape=shape).tocsr()


def grams(graphs: Graphs, rounds: int = ROUNDS) -> dict[int, NDArray[np.float64]]:
    """Compute the WL subtree kernel of all graphs, [G, G], for every last round."""
    total: Any = 0.0
    found = {}
    for number, colours in colours_by_round(graphs, rounds).items():
        features = counts(graphs, colours)
        total = total + (features @ features.T).toarray()
        found[number] = total
    return found


def hashed_features(graphs: Graphs, rounds: int = 3) -> tuple[NDArray[np.float32], dict[str, int]]:
    """Compute log(1 + count) of colours hashed into buckets, and the width of every round's part.

    The buckets of a colour do not depend on the other graphs.
    """
    start = start_colours(graphs)
    if start is None:
        hashed = _mix(np.zeros(graphs.num_nodes, dtype=np.uint64))
    else:
        x = graphs.x
        assert x is not None
        binary = ((x == 0) | (x == 1)).all(0)
        columns = np.flatnonzero(binary.numpy()).astype(np.uint64)
        hashed = (x.numpy()[:, binary.numpy()].astype(np.uint64) * _mix(columns)).sum(1)
    parts = {}
    for number in range(rounds + 1):
        if number:
            summed = np.concatenate([[np.uint64(0)], np.cumsum(_mix(hashed)[graphs.col.numpy()])])
            row_ptr = graphs.row_ptr.numpy()
            around = summed[row_ptr[1:]] - summed[row_ptr[:-1]]
            hashed = _mix(_mix(hashed + np.uint64(_MIXERS[0])) + around)
        if number or start is not None:
            buckets = (_mix(hashed) % np.uint64(BUCKETS)).astype(np.int64)
            owner = np.repeat(np.arange(len(graphs)), graphs.sizes.numpy())
            flat = np.bincount(owner * BUCKETS + buckets, minlength=len(graphs) * BUCKETS)
            parts[f"wl{number}"] = np.log1p(flat.reshape(-1, BUCKETS)).astype(np.float32)
    return np.concatenate(list(parts.values()), axis=1), dict.fromkeys(parts, BUCKETS)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash 64-bit integers one by one (SplitMix64)."""
    out = values + np.uint64(_MIXERS[0])
    out = (out ^ (out >> np.uint64(30))) * np.uint64(_MIXERS[1])
    out = (out ^ (out >> np.uint64(27))) * np.uint64(_MIXERS[2])
    return out ^ (out >> np.uint64(31))
