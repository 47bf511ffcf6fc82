"""The ego-graphs of a node-level dataset, found once and kept beside its packed form."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from artlas.errors import ReadError
from artlas.graphs.collection import Graphs
from artlas.nodes.ego import EgoGraphs, PprConfig, Progress, choose_centres, ego_graphs
from artlas_paper.datasets.packed import FOLDER
from artlas_paper.datasets.prepare import Features, load
from artlas_paper.datasets.raw import data_root
from artlas_paper.datasets.registry import DatasetError, find

CENTRES = 300  # of every class, in the paper


def load_egos(
    name: str,
    root: str | os.PathLike[str] | None = None,
    features: Features = "paper",
    per_class: int | None = CENTRES,
    config: PprConfig | None = None,
    progress: Progress | None = None,
    verbose: bool = True,
) -> EgoGraphs:
    """The ego-graphs of at most ``per_class`` nodes of every class, or of all nodes (None).

    Kept ones are used again only if the graph, the centres and every setting are the same.
    """
    entry = find(name)
    if entry.level != "node":
        raise DatasetError(
            f"ego-graphs are made of one network; got {entry.name}, a collection of graphs. "
            f"To fix this, use load({entry.name!r}), whose graphs are what they are."
        )
    config = PprConfig() if config is None else config
    graph, top = load(entry.name, root, features, verbose), data_root(root)
    centres = choose_centres(graph.y, per_class)
    path = egos_path(top, entry.name, per_class, config)
    kept = _kept(path, graph, centres, config)
    if kept is not None:
        return kept
    found = ego_graphs(graph, centres, config, progress)
    if os.access(path.parent, os.W_OK):  # where nothing can be kept, nothing is lost either
        found.save(path)
    return found


def egos_path(root: Path, name: str, per_class: int | None, config: PprConfig) -> Path:
    """The file that keeps the ego-graphs of a dataset made with these settings."""
    centres = "all" if per_class is None else str(per_class)
    settings = repr(dataclasses.astuple(config)).encode()
    return root / FOLDER / f"{name}.egos-{centres}-{hashlib.sha256(settings).hexdigest()[:8]}.npz"


def _kept(
    path: Path, graph: Graphs, centres: NDArray[np.int64], config: PprConfig
) -> EgoGraphs | None:
    """What is kept, if it is whole and was made of the same things."""
    try:
        egos = EgoGraphs.load(path, graph)
    except ReadError:
        return None
    same = egos.config == config and np.array_equal(egos.centres, centres)
    return egos if same else None
