"""Few-shot transfer: the paper's two main tables and their controls, as records in a file."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from artlas import evaluation
from artlas.files.atomic import atomic
from artlas.graphs.collection import Graphs
from artlas.nodes.ego import EgoGraphs
from artlas.training.loop import Progress
from artlas_paper import datasets
from artlas_paper.datasets.file_lock import locked
from artlas_paper.datasets.registry import find
from artlas_paper.transfer import embeddings
from artlas_paper.transfer.embeddings import Target
from artlas_paper.transfer.folds import CENTRES, PAPER, Folds

Record = dict[str, Any]
Shots = int | Literal["all"]
EPISODES, QUERIES = 50, 50
HEAD = {"graph": "prototype", "node": "linear"}


@dataclass(frozen=True)
class Episodes:
    """The episodes of a target at a number of shots, over the examples that they use."""

    shots: Shots
    labels: NDArray[np.int64]
    members: NDArray[np.int64]
    drawn: list[evaluation.Episode]
    sha256: str

    @classmethod
    def draw(cls, labels: Any, shots: Shots) -> Episodes:
        """Draw the 50 episodes, or 5 folds for ``all``, and number their examples from 0."""
        if isinstance(shots, str):
            drawn = _five_folds(np.asarray(labels))
        else:
            drawn = evaluation.draw_episodes(labels, EPISODES, shots, QUERIES)
        used = np.unique(np.concatenate([np.concatenate([e.support, e.query]) for e in drawn]))
        local = [
            evaluation.Episode(np.searchsorted(used, e.support), np.searchsorted(used, e.query))
            for e in drawn
        ]
        return cls(shots, np.asarray(labels)[used], used, local, evaluation.hash_episodes(drawn))


def _five_folds(labels: NDArray[np.int64]) -> list[evaluation.Episode]:
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(5, shuffle=True, random_state=42)
    return [evaluation.Episode(a, b) for a, b in folds.split(np.zeros(len(labels)), labels)]


def labels_of(folds: Folds, target: str) -> NDArray[np.int64]:
    """The label of every example of a target: graphs, or at most 300 nodes of every class."""
    labels = _examples(folds, target).y
    assert labels is not None
    return labels.numpy()


def shown_name(folds: Folds, target: str) -> str:
    """What a target is called in records: a network whose features are structural says so."""
    data = _examples(folds, target)
    bare = isinstance(data, EgoGraphs) and data.graph.x is None
    return f"{find(target).name}-structural" if bare else find(target).name


def _examples(folds: Folds, target: str) -> Graphs | EgoGraphs:
    if folds.level == "graph":
        return datasets.load(target, folds.root, "raw", verbose=False)
    return datasets.load_egos(target, folds.root, "raw", CENTRES, verbose=False)


def transfer(
    folds: Folds,
    target: str,
    seeds: Sequence[int],
    shots: Sequence[Shots] = (5,),
    report: Callable[[Progress], None] | None = None,
    wl: bool = False,
    only: Collection[str] | None = None,
) -> Iterable[Record]:
    """Records of every control and every variant of the model on one target; of WL if asked.

    only: the controls and variants to evaluate, if not all.
    """
    folds.sources(target)  # refuses a dataset of the other level before anything is read
    name, shown, labels = find(target).name, shown_name(folds, target), labels_of(folds, target)
    cache = folds.runs / "embeddings"
    kinds = embeddings.GRAPH_CONTROLS if folds.level == "graph" else embeddings.NODE_CONTROLS
    variants = embeddings.GRAPH_VARIANTS if folds.level == "graph" else embeddings.NODE_VARIANTS
    if only is not None:
        unknown = set(only) - set(kinds) - set(variants)
        if unknown:
            known = ", ".join([*kinds, *variants])
            raise ValueError(f"There is no variant {min(unknown)!r}. Choose from {known}.")
        kinds = {name: make for name, make in kinds.items() if name in only}
        variants = {name: how for name, how in variants.items() if name in only}
    models = {seed: folds.model(name, seed, report) for seed in seeds}
    for count in shots:
        episodes = Episodes.draw(labels, count)
        head = "linear" if count == "all" else HEAD[folds.level]
        place = Target(name, folds.root, folds.level, cache, episodes.members)
        for variant in kinds:
            began = time.perf_counter()
            found = evaluation.evaluate(
                place.control(variant), episodes.labels, episodes.drawn, head
            )
            yield record(shown, "control", variant, None, episodes, found, began)
        if wl:
            began = time.perf_counter()
            found = evaluation.evaluate(place.wl(), episodes.labels, episodes.drawn, head, "none")
            yield record(shown, "wl", "kernel", None, episodes, found, began)
        for seed, model in models.items():
            for variant, how in variants.items():
                began = time.perf_counter()
                values = place.embed(model, how)
                found = evaluation.evaluate(
                    values, episodes.labels, episodes.drawn, head, how.scaling
                )
                yield record(shown, "art", variant, seed, episodes, found, began)


def record(
    target: str,
    method: str,
    variant: str,
    seed: int | None,
    episodes: Episodes | None,
    found: evaluation.Accuracy,
    began: float,
) -> Record:
    """What is kept of one evaluation; without episodes it is of views of graphs."""
    paper = PAPER.get(target) if (method, variant) == ("art", "paper") else None
    return {
        "target": target,
        "method": method,
        "variant": variant,
        "seed": seed,
        "shots": "views" if episodes is None else episodes.shots,
        "episodes": None if episodes is None else episodes.sha256,
        "mean": round(100 * found.mean, 4),
        "std": round(100 * found.std, 4),
        "stderr": round(100 * found.std / len(found.episodes) ** 0.5, 4),
        "paper": paper if episodes is not None and episodes.shots == 5 else None,
        "seconds": round(time.perf_counter() - began, 3),
        "commit": commit(),
        "accuracies": [round(float(v), 6) for v in found.episodes],
    }


@cache
def commit() -> str:
    """The commit of the code when it was first asked for, or ``unknown`` outside a repository."""
    words = ["git", "rev-parse", "--short=10", "HEAD"]
    done = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


KEYS = ("target", "shots", "method", "variant", "seed")


def merge(path: Path, new: Iterable[Record], keys: Sequence[str] = KEYS) -> list[Record]:
    """Put records into a JSON file, in the place of older ones with the same keys.

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
    """What a record is of; None for a key that it was made without."""
    return tuple(record.get(key) for key in keys)


def read(path: Path) -> list[Record]:
    """The records of a file; none if it is not there."""
    return list(json.loads(path.read_text())) if path.exists() else []
