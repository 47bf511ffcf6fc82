"""Write a synthetic graph in Reddit's raw layout, with communities and skewed degrees."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

NODES, ENTRIES, CLASSES, WIDTH = 232_965, 114_615_892, 41, 602


def write_reddit(
    folder: Path,
    nodes: int = NODES,
    entries: int = ENTRIES,
    classes: int = CLASSES,
    width: int = WIDTH,
    seed: int = 0,
) -> None:
    """Write reddit_data.npz and reddit_graph.npz with exactly these counts."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    share = np.sort(rng.dirichlet(np.full(classes, 2.0)))
    counts = np.maximum(nodes // (4 * classes), (share * nodes).astype(np.int64))
    counts[-1] += nodes - counts.sum()
    block = np.concatenate([[0], np.cumsum(counts)])
    number = rng.permutation(nodes)  # so that communities are not runs of ids
    label = np.empty(nodes, dtype=np.int64)
    label[number] = np.repeat(np.arange(classes), counts)
    pairs = _pairs(rng, block, counts, entries // 2)
    low, high = number[pairs // nodes].astype(np.int32), number[pairs % nodes].astype(np.int32)
    np.savez(
        folder / "reddit_graph.npz",
        row=np.concatenate([low, high]),
        col=np.concatenate([high, low]),
        data=np.ones(entries, dtype=np.float32),
        shape=np.array([nodes, nodes]),
        format=np.array(b"coo"),
    )
    del low, high, pairs
    feature = np.empty((nodes, width))
    for start in range(0, nodes, 1 << 14):
        part = label[start : start + (1 << 14)]
        feature[start : start + len(part)] = rng.standard_normal((len(part), width))
        feature[start : start + len(part), : min(width, classes)] += np.eye(classes)[part][
            :, :width
        ]
    np.savez(
        folder / "reddit_data.npz",
        feature=feature,
        label=label,
        node_ids=np.arange(nodes),
        node_types=np.ones(nodes, dtype=np.int64),
    )


def _pairs(
    rng: np.random.Generator, block: np.ndarray, counts: np.ndarray, wanted: int
) -> np.ndarray:
    """Draw distinct pairs, coded as low * nodes + high, 7 of 10 within a community."""
    nodes, kept = int(block[-1]), np.empty(0, dtype=np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    while len(kept) < wanted:
        count = int(1.2 * (wanted - len(kept))) + 64
        u = (nodes * rng.random(count) ** 1.2).astype(np.int64)  # skewed: low ids are hubs
        inside = block[owner[u]] + (counts[owner[u]] * rng.random(count)).astype(np.int64)
        v = np.where(rng.random(count) < 0.7, inside, rng.integers(0, nodes, count))
        low, high = np.minimum(u, v), np.maximum(u, v)
        kept = np.concatenate([kept, (low * nodes + high)[low != high]])
        kept.sort()  # numpy.unique hashes, which takes minutes at this size
        kept = kept[np.concatenate([[True], kept[1:] != kept[:-1]])]
    surplus = rng.choice(len(kept), len(kept) - wanted, replace=False, shuffle=False)
    return np.delete(kept, surplus)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    write_reddit(parser.parse_args().folder)
