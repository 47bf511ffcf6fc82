"""Records of evaluations, and the JSON files that keep them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from artlas import evaluation
from artlas.files.atomic import atomic
from artlas_paper.datasets.file_lock import locked
from artlas_paper.protocol import SHOTS
from artlas_paper.published_results import ART_ACCURACY
from artlas_paper.transfer.episodes import Episodes

Record = dict[str, Any]
KEYS = ("target", "shots", "method", "variant", "seed")


def record(
    target: str,
    method: str,
    variant: str,
    seed: int | None,
    episodes: Episodes | None,
    accuracy: evaluation.Accuracy,
    began: float,
) -> Record:
    """Return the record of one evaluation; without episodes, it is one of views of graphs.

    began: of the evaluation, in :func:`time.perf_counter`'s seconds.
    """
    paper = ART_ACCURACY.get(target) if (method, variant) == ("art", "paper") else None
    return {
        "target": target,
        "method": method,
        "variant": variant,
        "seed": seed,
        "shots": "views" if episodes is None else episodes.shots,
        "episodes": None if episodes is None else episodes.sha256,
        "mean": round(100 * accuracy.mean, 4),
        "std": round(100 * accuracy.std, 4),
        "stderr": round(100 * accuracy.std / len(accuracy.episodes) ** 0.5, 4),
        "paper": paper if episodes is not None and episodes.shots == SHOTS else None,
        "seconds": round(time.perf_counter() - began, 3),
        "commit": commit(),
        "accuracies": [round(float(v), 6) for v in accuracy.episodes],
    }


@cache
def commit() -> str:
    """Return the commit of the code when first asked for, ``unknown`` outside a repository."""
    words = ["git", "rev-parse", "--short=10", "HEAD"]
    done = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def merge(path: Path, new: Iterable[Record], keys: Sequence[str] = KEYS) -> list[Record]:
    """Merge records into a JSON file, where they replace older ones with the same keys.

    Several processes may do so at once, each for a part of a table.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        kept = {identity(record, keys): record for record in read(path)}
        kept |= {identity(record, keys): record for record in new}
        records = sorted(kept.values(), key=lambda r: tuple(map(str, identity(r, keys))))
        with atomic(path) as out:
            lines = ",\n".join(json.dumps(record) for record in records)
            out.write(f"[\n{lines}\n]\n".encode())
    return records


def identity(record: Mapping[str, Any], keys: Sequence[str] = KEYS) -> tuple[Any, ...]:
    """Return what identifies a record among others: its values of some keys, None if absent."""
    return tuple(record.get(key) for key in keys)


def read(path: Path) -> list[Record]:
    """Read the records of a file; none if there is no file."""
    return list(json.loads(path.read_text())) if path.exists() else []
