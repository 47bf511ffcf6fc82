"""Readers of the TU text files, streaming, that keep only the graphs asked for."""

from __future__ import annotations

import lzma
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

CHUNK = 1 << 24
Edges = np.ndarray
Sample = list[tuple[int, Edges]]


def read_sample(root: Path, name: str, count: int, seed: int) -> Sample:
    """A fixed-seed sample of `count` graphs of a TU data set as (nodes, edges [2, E])."""
    indicator = _integers(root, name, "graph_indicator")
    sizes = np.bincount(indicator - 1)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(sizes), size=count, replace=False))
    first = np.concatenate([[0], np.cumsum(sizes)])
    kept = _edges_of(root, name, np.isin(np.arange(len(sizes)), chosen)[indicator - 1])
    owner = indicator[kept[:, 0]] - 1
    return [(int(sizes[g]), (kept[owner == g] - first[g]).T.copy()) for g in chosen]


def _edges_of(root: Path, name: str, wanted: np.ndarray) -> np.ndarray:
    """The directed edges (zero-based, [E, 2]) that start at a wanted node."""
    parts = []
    with _open(root, name, "A") as stream:
        for text in _line_blocks(stream):
            pairs = _parse(text).reshape(-1, 2) - 1
            parts.append(pairs[wanted[pairs[:, 0]]])
    return np.concatenate(parts)


def _line_blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Large blocks of whole lines."""
    rest = b""
    while block := stream.read(CHUNK):
        block = rest + block
        cut = block.rfind(b"\n") + 1
        rest = block[cut:]
        if cut:
            yield block[:cut]
    if rest.strip():
        yield rest


def _parse(text: bytes) -> np.ndarray:
    """All integers of comma- and line-separated text."""
    return np.fromstring(text.strip().replace(b"\n", b","), dtype=np.int64, sep=",")


def _integers(root: Path, name: str, part: str) -> np.ndarray:
    """One whole TU file of one integer per line."""
    with _open(root, name, part) as stream:
        return _parse(stream.read())


def _open(root: Path, name: str, part: str) -> IO[bytes]:
    """A TU file from `NAME_part.txt.xz` or from inside `NAME.zip`."""
    packed = root / "tu" / f"{name}_{part}.txt.xz"
    if packed.exists():
        return lzma.open(packed)
    archive = zipfile.ZipFile(root / "tu" / f"{name}.zip")
    member = next(m for m in archive.namelist() if m.endswith(f"/{name}_{part}.txt"))
    return archive.open(member)
