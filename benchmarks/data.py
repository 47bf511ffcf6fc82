"""Make the batches that are measured: samples of the benchmark files, and random graphs."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from artlas_paper import datasets
from artlas_paper.random_graphs import random_edges

BATCH = 64
SEED = 0
Sample = list[tuple[int, np.ndarray]]
# mean number of nodes, its standard deviation, and mean degree
SIZES_AND_DEGREE = {"NCI1": (29.87, 13.6, 2.16), "COLLAB": (74.49, 62.0, 65.97)}


@dataclass(frozen=True)
class Batch:
    """A named batch of graphs, and its origin."""

    name: str
    origin: str
    graphs: Sample

    @property
    def nodes(self) -> int:
        """The number of nodes of all graphs together."""
        return sum(n for n, _ in self.graphs)

    def edge_lists(self) -> list[tuple[int, torch.Tensor]]:
        """Return the graphs as `artlas.Graphs.from_edges` takes them."""
        return [(n, torch.from_numpy(edges)) for n, edges in self.graphs]


def data_root() -> Path | None:
    """Return a root with the raw benchmark files, from $ARTLAS_DATA or beside the project."""
    if "ARTLAS_DATA" in os.environ:
        return Path(os.environ["ARTLAS_DATA"])
    install = Path(__file__).resolve().parents[2] / "shared" / "data" / "install"
    if not install.exists():
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = cache / "artlas" / "bench-data"
    subprocess.run([sys.executable, install, root], check=True, capture_output=True)
    return root


def real_batches(name: str, batches: int, seed: int) -> list[Batch]:
    """Cut one fixed-seed sample of a TU data set into batches of 64."""
    sample = real_batch(name, batches * BATCH, seed)
    origin = sample.origin.replace(f": {batches * BATCH} ", f": {BATCH} ")
    cuts = range(0, batches * BATCH, BATCH)
    return [Batch(name, origin, sample.graphs[cut : cut + BATCH]) for cut in cuts]


def real_batch(name: str, count: int = BATCH, seed: int = SEED) -> Batch:
    """Sample a TU data set with a fixed seed, or generate graphs of its sizes if it is absent."""
    root = data_root()
    if root is None:
        origin = f"generated, sizes of {name} (no benchmark files beside the project)"
        return Batch(name, origin, _generate_like(name, count, seed))
    graphs = datasets.load(name, root, "raw", verbose=False)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(graphs), size=count, replace=False))
    sample = []
    for graph in graphs[chosen]:
        source = np.repeat(np.arange(graph.num_nodes), graph.row_ptr.diff())
        sample.append((graph.num_nodes, np.stack([source, graph.col.numpy().astype(np.int64)])))
    return Batch(name, f"{name}: {count} real graphs, seed {seed}", sample)


def random_batch(name: str, count: int, nodes: int, degree: float) -> Batch:
    """Generate graphs of uniform random edges, `degree` neighbours on average."""
    rng = np.random.default_rng(SEED)
    graphs = [(nodes, random_edges(rng, nodes, degree)) for _ in range(count)]
    return Batch(name, f"{count} random graphs, {nodes} nodes, degree {degree:g}", graphs)


def _generate_like(name: str, count: int, seed: int) -> Sample:
    """Generate random graphs with the mean size, spread of sizes and mean degree of a data set."""
    mean, spread, degree = SIZES_AND_DEGREE[name]
    rng = np.random.default_rng(seed)
    shape = (mean / spread) ** 2
    sizes = np.maximum(4, rng.gamma(shape, mean / shape, size=count).round().astype(int))
    return [(int(n), random_edges(rng, int(n), min(degree, n - 1))) for n in sizes]
