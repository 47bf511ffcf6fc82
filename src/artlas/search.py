"""Find the nearest graphs across domains by their coordinates, which need no node features."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.embedding import table
from artlas.errors import import_extra, raise_read_error
from artlas.files import stored
from artlas.files.atomic import atomic
from artlas.files.untrusted import read_npz
from artlas.method import checkpoint
from artlas.method.model import ART

EXACT = 20_000  # largest number of rows that are all compared with a query
ROWS, FACTS, INDEX = "rows.npz", "facts.json", "index.usearch"  # files of an index
_IDENTITY = ("source", "index", "label")


@dataclass(frozen=True)
class Hit:
    """A graph near a query: its input, its number there, its label, and its distance."""

    source: str
    index: int
    label: int | None
    distance: float


@dataclass(frozen=True, eq=False)
class Index:
    """Standardised coordinates of many graphs, and what identifies the graphs.

    rows: points [n, K], source, index and label [n]; facts: the model, mean and spread of the
    coordinates; approximate: a usearch index of the points, if there are more than EXACT.
    """

    rows: dict[str, NDArray[Any]]
    facts: dict[str, Any]
    approximate: Any = None

    def __len__(self) -> int:
        return len(self.rows["points"])

    def query(self, coordinates: Any, count: int = 10) -> list[list[Hit]]:
        """Return the graphs nearest to every row of coordinates [m, K], nearest first."""
        queries = np.asarray(coordinates, dtype=np.float64)
        width = self.rows["points"].shape[1]
        if queries.ndim != 2 or queries.shape[1] != width:
            wrong = f"The index holds {width} coordinates a graph; got shape {list(queries.shape)}."
            raise ValueError(f"{wrong} To fix this, use the model that made it.")
        queries = (queries - self.facts["mean"]) / self.facts["spread"]
        return [self._nearest(query, min(count, len(self))) for query in queries.astype(np.float32)]

    def _nearest(self, query: NDArray[np.float32], count: int) -> list[Hit]:
        points = self.rows["points"]
        if self.approximate is None:
            near = np.arange(len(points))
        else:  # four times as many as asked for, ordered by their exact distances below
            near = np.sort(self.approximate.search(query, min(4 * count, len(points))).keys)
        distances = np.linalg.norm(points[near].astype(np.float64) - query, axis=1)
        hits = []
        for i in np.argsort(distances, kind="stable")[:count]:
            source, index, label = (self.rows[name][near[i]] for name in _IDENTITY)
            known = None if label == table.UNLABELLED else int(label)
            hits.append(Hit(str(source), int(index), known, float(distances[i])))
        return hits


def build(tables: Sequence[Path], folder: Path) -> Index:
    """Build an index of tables of vectors, all made by one model, and write it into a folder."""
    parts = [table.read(path) for path in tables]
    facts = {name: parts[0].facts[name] for name in ("weights", "model")}
    for path, part in zip(tables, parts, strict=True):
        if part.facts["weights"] != facts["weights"]:
            got, fix = f"that of {tables[0]} differs", "embed both with the same model"
            raise_read_error(path, "this was made by another model", got, fix)
    q = np.concatenate([np.sqrt(np.maximum(part.energies, 0.0)) for part in parts])
    mean, spread = q.mean(0, dtype=np.float64), q.std(0, dtype=np.float64)
    spread = np.where(spread > 1e-9, spread, 1.0)
    rows = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _IDENTITY}
    rows["points"] = ((q - mean) / spread).astype(np.float32)
    approximate = _build_approximate(rows["points"]) if len(q) > EXACT else None
    facts |= {"mean": mean.tolist(), "spread": spread.tolist()}
    index = Index(rows, facts, approximate)
    _write(index, folder)
    return index


def _write(index: Index, folder: Path) -> None:
    """Write an index beside the folder, and replace the folder if it is empty or an index."""
    unfinished = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    with atomic(unfinished / ROWS) as out:
        np.savez(out, **index.rows)  # type: ignore[arg-type]
    stored.write_json(unfinished / FACTS, index.facts)
    if index.approximate is not None:
        index.approximate.save(str(unfinished / INDEX))
    if folder.exists():
        if not (folder / FACTS).exists() and any(folder.iterdir()):
            shutil.rmtree(unfinished)
            raise_read_error(folder, "this folder is no index", "other files", "choose a new one")
        shutil.rmtree(folder)
    unfinished.rename(folder)


def load(folder: Path) -> Index:
    """Load an index that :func:`build` wrote."""
    if not (folder / FACTS).is_file():
        raise_read_error(folder, "there is no index here", f"no {FACTS}", "run artlas search build")
    large = (folder / INDEX).exists()
    approximate = _usearch().Index.restore(str(folder / INDEX)) if large else None
    return Index(read_npz(folder / ROWS), stored.read_json(folder / FACTS), approximate)


def check_model(index: Index, model: ART, folder: Path) -> None:
    """Refuse a model that did not make the index, as its coordinates have other meanings."""
    if index.facts["weights"] != checkpoint.weights_hash(model):
        fix = "pass --model with the one that made it"
        raise_read_error(folder, "this was made by another model", "different weights", fix)


def _build_approximate(points: NDArray[np.float32]) -> Any:
    index = _usearch().Index(ndim=points.shape[1], metric="l2sq", dtype="f32", expansion_search=256)
    # With one thread: points inserted at once may miss each other, differently every time.
    index.add(np.arange(len(points)), points, threads=1)
    return index


def _usearch() -> Any:
    needed = f"More than {EXACT:,} graphs are searched by usearch"
    return import_extra("usearch.index", needed, "search")
