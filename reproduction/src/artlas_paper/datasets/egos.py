"""Ego-graphs of node-level datasets, computed once and cached beside the packed dataset."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from artlas.errors import ReadError, raise_read_error
from artlas.files.atomic import atomic
from artlas.files.untrusted import read_npz
from artlas.graphs.collection import Graphs
from artlas.nodes.ego import EgoGraphs, PprConfig, Progress, ego_graphs
from artlas_paper.datasets.centres import choose_centres
from artlas_paper.datasets.packed import FOLDER
from artlas_paper.datasets.prepare import Features, load
from artlas_paper.datasets.raw import data_root
from artlas_paper.datasets.registry import DatasetError, find
from artlas_paper.protocol import CENTRES, PPR

_ARRAYS = ("node_ptr", "nodes", "scores", "centres", "pushes", "positive", "stopped")
_SETTINGS = tuple(field.name for field in dataclasses.fields(PprConfig))


def load_examples(
    name: str,
    root: str | os.PathLike[str] | None = None,
    features: Features = "paper",
    per_class: int | None = CENTRES,
    config: PprConfig | None = None,
    verbose: bool = False,
) -> Graphs | EgoGraphs:
    """Load what is classified in a dataset: its graphs, or the ego-graphs of its nodes.

    per_class and config apply to ego-graphs alone; see :func:`load_egos`.
    """
    if find(name).level == "graph":
        return load(name, root, features, verbose)
    return load_egos(name, root, features, per_class, config, verbose=verbose)


def load_egos(
    name: str,
    root: str | os.PathLike[str] | None = None,
    features: Features = "paper",
    per_class: int | None = CENTRES,
    config: PprConfig | None = None,
    progress: Progress | None = None,
    verbose: bool = True,
) -> EgoGraphs:
    """Load the ego-graphs of at most ``per_class`` nodes of every class, or of all nodes (None).

    Cached ones are used only if the graph, the centres and every setting are the same.
    """
    entry = find(name)
    if entry.level != "node":
        raise DatasetError(
            f"ego-graphs are made of one network; got {entry.name}, a collection of graphs. "
            f"To fix this, use load({entry.name!r}), whose graphs are what they are."
        )
    config = PPR if config is None else config
    graph, top = load(entry.name, root, features, verbose), data_root(root)
    centres = choose_centres(graph.y, per_class)
    path = egos_path(top, entry.name, per_class, config)
    cached = _read_cached(path, graph, centres, config)
    if cached is not None:
        return cached
    egos = ego_graphs(graph, centres, config, progress)
    if os.access(path.parent, os.W_OK):  # a read-only data root is used without a cache
        save_egos(egos, path)
    return egos


def egos_path(root: Path, name: str, per_class: int | None, config: PprConfig) -> Path:
    """Return the file that caches the ego-graphs of a dataset for these settings."""
    centres = "all" if per_class is None else str(per_class)
    settings = repr(dataclasses.astuple(config)).encode()
    return root / FOLDER / f"{name}.egos-{centres}-{hashlib.sha256(settings).hexdigest()[:8]}.npz"


def _read_cached(
    path: Path, graph: Graphs, centres: NDArray[np.int64], config: PprConfig
) -> EgoGraphs | None:
    """Return the cached ego-graphs if the file is whole and fits the graph and the settings."""
    try:
        egos = read_egos(path, graph)
    except ReadError:
        return None
    same = egos.config == config and np.array_equal(egos.centres, centres)
    return egos if same else None


def save_egos(egos: EgoGraphs, path: Path) -> None:
    """Write the node numbers, scores and settings of ego-graphs to an .npz file, not the graph."""
    arrays = {name: getattr(egos, name) for name in _ARRAYS}
    arrays |= {f"config_{name}": getattr(egos.config, name) for name in _SETTINGS}
    with atomic(path) as out:
        np.savez(out, graph=np.frombuffer(_fingerprint(egos.graph), np.uint8), **arrays)


def read_egos(path: Path, graph: Graphs) -> EgoGraphs:
    """Read a file that :func:`save_egos` wrote, for the same graph."""
    arrays = read_npz(path)
    if set(arrays) != {"graph", *_ARRAYS, *(f"config_{name}" for name in _SETTINGS)}:
        got, fix = f"the arrays {sorted(arrays)}", "delete it: ego-graphs are then found anew"
        raise_read_error(path, "this file holds no ego-graphs", got, fix)
    if arrays.pop("graph").tobytes() != _fingerprint(graph):
        fix = "pass the graph that they were made from, or make them again"
        raise_read_error(path, "these ego-graphs belong to another graph", f"{graph!r}", fix)
    config = PprConfig(**{name: arrays.pop(f"config_{name}").item() for name in _SETTINGS})
    return EgoGraphs(graph=graph, config=config, **arrays)


def _fingerprint(graph: Graphs) -> bytes:
    digest = hashlib.sha256(graph.row_ptr.numpy().tobytes())
    digest.update(graph.col.numpy().tobytes())
    return digest.digest()
