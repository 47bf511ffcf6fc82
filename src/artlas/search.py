"""The nearest graphs across domains, by coordinates: the one vector that needs no features."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.embedding import table
from artlas.errors import raise_read_error
from artlas.files import stored
from artlas.files.atomic import atomic
from artlas.files.untrusted import read_npz
from artlas.method import checkpoint
from artlas.method.model import ART

EXACT = 20_000  # rows up to which every one is compared
ROWS, FACTS, INDEX = "rows.npz", "facts.json", "index.usearch"


@dataclass(frozen=True)
class Hit:
    """A graph that was found: where it is from, its number there, its label, and how far it is."""

    source: str
    index: int
    label: int | None
    distance: float


@dataclass(frozen=True, eq=False)
class Index:
    """Coordinates q of many graphs [n, K], standardised; approximate beyond EXACT rows."""

    rows: dict[str, NDArray[Any]]
    facts: dict[str, Any]
    approximate: Any = None

    def __len__(self) -> int:
        return len(self.rows["points"])

    def query(self, coordinates: Any, count: int = 10) -> list[list[Hit]]:
        """The nearest of every row of coordinates [m, K], nearest first."""
        asked = np.asarray(coordinates, dtype=np.float64)
        points = self.rows["points"]
        if asked.ndim != 2 or asked.shape[1] != points.shape[1]:
            raise ValueError(
                f"The index holds {points.shape[1]} coordinates a graph; got shape "
                f"{list(asked.shape)}. To fix this, use the model that made it."
            )
        asked = (asked - self.facts["mean"]) / self.facts["spread"]
        return [self._nearest(row, min(count, len(self))) for row in asked.astype(np.float32)]

    def _nearest(self, row: NDArray[np.float32], count: int) -> list[Hit]:
        points = self.rows["points"]
        if self.approximate is None:
            near = np.arange(len(points))
        else:  # more than asked for, then in their exact order
            near = np.sort(self.approximate.search(row, min(4 * count, len(points))).keys)
        distances = np.linalg.norm(points[near].astype(np.float64) - row, axis=1)
        order = np.argsort(distances, kind="stable")[:count]
        return [self._hit(int(near[i]), float(distances[i])) for i in order]

    def _hit(self, row: int, distance: float) -> Hit:
        label = int(self.rows["label"][row])
        known = None if label == table.UNLABELLED else label
        return Hit(str(self.rows["source"][row]), int(self.rows["index"][row]), known, distance)


def build(tables: Sequence[Path], folder: Path) -> Index:
    """Make an index of tables of vectors, all by one model, and write it into a folder."""
    parts = [table.read(path) for path in tables]
    for path, part in zip(tables, parts, strict=True):
        if part.facts["weights"] != parts[0].facts["weights"]:
            fix = "embed both with the same model"
            raise_read_error(
                path, "this was made by another model", f"that of {tables[0]} differs", fix
            )
    q = np.concatenate([np.sqrt(np.maximum(part.energies, 0.0)) for part in parts])
    mean, spread = q.mean(0, dtype=np.float64), q.std(0, dtype=np.float64)
    spread = np.where(spread > 1e-9, spread, 1.0)
    rows = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("source", "index", "label")
    }
    rows["points"] = ((q - mean) / spread).astype(np.float32)
    facts = {
        "weights": parts[0].facts["weights"],
        "model": parts[0].facts["model"],
        "mean": mean.tolist(),
        "spread": spread.tolist(),
    }
    made = Index(rows, facts, _approximate(rows["points"]) if len(q) > EXACT else None)
    _write(made, folder)
    return made


def _write(made: Index, folder: Path) -> None:
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    with atomic(part / ROWS) as out:
        np.savez(out, **made.rows)  # type: ignore[arg-type]
    stored.write_json(part / FACTS, made.facts)
    if made.approximate is not None:
        made.approximate.save(str(part / INDEX))
    if folder.exists():
        if not (folder / FACTS).exists() and any(folder.iterdir()):
            shutil.rmtree(part)
            fix = "choose a folder that does not exist yet"
            raise_read_error(folder, "this folder is no index", "other files in it", fix)
        shutil.rmtree(folder)
    part.rename(folder)


def load(folder: Path) -> Index:
    """Read an index that :func:`build` wrote."""
    if not (folder / FACTS).is_file():
        raise_read_error(
            folder, "there is no index here", f"no {FACTS}", "make one with artlas search build"
        )
    rows = read_npz(folder / ROWS)
    try:
        facts = stored.read_json(folder / FACTS)
    except json.JSONDecodeError as error:
        raise_read_error(folder / FACTS, "this is not JSON", str(error), "build the index anew")
    approximate = None
    if (folder / INDEX).exists():
        approximate = _usearch().Index.restore(str(folder / INDEX))
    return Index(rows, facts, approximate)


def check_model(index: Index, model: ART, folder: Path) -> None:
    """Refuse a model that did not make the index: its coordinates mean something else."""
    if index.facts["weights"] != checkpoint.weights_hash(model):
        fix = "pass --model with the one that made it"
        raise_read_error(folder, "this was made by another model", "different weights", fix)


def _approximate(points: NDArray[np.float32]) -> Any:
    found = _usearch().Index(ndim=points.shape[1], metric="l2sq", dtype="f32", expansion_search=256)
    # by one thread: points that several insert at once miss each other, another time others
    found.add(np.arange(len(points)), points, threads=1)
    return found


def _usearch() -> Any:
    try:
        import usearch.index
    except ImportError as error:
        raise ImportError(
            f"More than {EXACT:,} graphs are searched by usearch, which is not installed. To fix "
            "this: pip install 'artlas[search]'"
        ) from error
    return usearch.index
