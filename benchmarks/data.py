"""The graphs that are measured: batches from the benchmark files, and generated ones."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.tu import Sample, read_sample

BATCH = 64
SEED = 0
STAND_IN = {"NCI1": (29.87, 13.6, 2.16), "COLLAB": (74.49, 62.0, 65.97)}


@dataclass(frozen=True)
class Batch:
    """A named batch of graphs, and where it came from."""

    name: str
    origin: str
    graphs: Sample

    @property
    def nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return sum(n for n, _ in self.graphs)

    def without_loops(self) -> Batch:
        """The same graphs, self-loops (COLLAB has a few) dropped."""
        clean = [(n, edges[:, edges[0] != edges[1]]) for n, edges in self.graphs]
        return replace(self, graphs=clean)

    def edge_lists(self) -> list[tuple[int, torch.Tensor]]:
        """The graphs as `artlas.Graphs.from_edges` takes them."""
        return [(n, torch.from_numpy(edges)) for n, edges in self.graphs]


def data_root() -> Path:
    """The folder of benchmark files: $ARTLAS_DATA, else `shared/data` beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("ARTLAS_DATA") or beside)


def cache_folder() -> Path:
    """Where parsed samples are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "artlas" / "bench"


def real_batches(name: str, batches: int, seed: int) -> list[Batch]:
    """Batches of 64 from one fixed-seed sample of a TU data set."""
    sample = real_batch(name, batches * BATCH, seed)
    origin = sample.origin.replace(f": {batches * BATCH} ", f": {BATCH} ")
    cuts = range(0, batches * BATCH, BATCH)
    return [Batch(name, origin, sample.graphs[cut : cut + BATCH]) for cut in cuts]


def real_batch(name: str, count: int = BATCH, seed: int = SEED) -> Batch:
    """A fixed-seed sample of a TU data set, or generated graphs of its sizes if absent."""
    root = data_root()
    if not any((root / "tu").glob(f"{name}[._]*")):
        return Batch(
            name, f"generated, sizes of {name} (no file in {root})", _stand_in(name, count, seed)
        )
    cached = cache_folder() / f"{name}-{count}-seed{seed}.npz"
    if not cached.exists():
        _save(cached, read_sample(root, name, count, seed))
    batch = Batch(name, f"{name}: {count} real graphs, seed {seed}", _load(cached))
    return batch.without_loops()


def random_batch(name: str, count: int, nodes: int, degree: float) -> Batch:
    """Generated graphs: uniform random pairs of nodes, `degree` neighbours on average."""
    rng = np.random.default_rng(SEED)
    graphs = [(nodes, random_edges(rng, nodes, degree)) for _ in range(count)]
    return Batch(name, f"{count} random graphs, {nodes} nodes, degree {degree:g}", graphs)


def random_edges(rng: np.random.Generator, nodes: int, degree: float) -> np.ndarray:
    """About nodes * degree / 2 distinct pairs, both directions, [2, E]."""
    wanted = min(round(nodes * degree / 2), nodes * (nodes - 1) // 2)
    codes = np.empty(0, dtype=np.int64)
    while len(codes) < wanted:
        drawn = rng.integers(0, nodes, size=(2, wanted - len(codes) + 16))
        drawn = np.sort(drawn[:, drawn[0] != drawn[1]], axis=0)
        codes = np.unique(np.concatenate([codes, drawn[0] * nodes + drawn[1]]))
    codes = rng.permutation(codes)[:wanted]
    low, high = np.divmod(codes, nodes)
    return np.stack([np.concatenate([low, high]), np.concatenate([high, low])])


def _stand_in(name: str, count: int, seed: int) -> Sample:
    """Random graphs with the mean size, spread of sizes and mean degree of a data set."""
    mean, spread, degree = STAND_IN[name]
    rng = np.random.default_rng(seed)
    shape = (mean / spread) ** 2
    sizes = np.maximum(4, rng.gamma(shape, mean / shape, size=count).round().astype(int))
    return [(int(n), random_edges(rng, int(n), min(degree, n - 1))) for n in sizes]


def _save(path: Path, graphs: Sample) -> None:
    """Write a sample as one npz, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.stem}.{os.getpid()}.partial.npz")
    np.savez_compressed(
        partial,
        nodes=np.array([n for n, _ in graphs]),
        entries=np.array([edges.shape[1] for _, edges in graphs]),
        edges=np.concatenate([edges for _, edges in graphs], axis=1).astype(np.int32),
    )
    partial.replace(path)


def _load(path: Path) -> Sample:
    """Read a sample written by `_save`."""
    with np.load(path, allow_pickle=False) as stored:
        cuts = np.cumsum(stored["entries"])[:-1]
        parts = np.split(stored["edges"].astype(np.int64), cuts, axis=1)
        return [(int(n), part.copy()) for n, part in zip(stored["nodes"], parts, strict=True)]
