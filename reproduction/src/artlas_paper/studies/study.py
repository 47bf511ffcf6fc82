"""The frame of a study: one table or figure of the paper, made by one command.

A study is a module with a :class:`Study` in it, which says

- ``jobs(setting)``: what is to be measured, as a list of :class:`Job`. A job has an identity, such
  as ``{"target": "BZR", "variant": "learned", "seed": 42}``, whose names are ``Study.keys``, and a
  function that measures it and returns a dictionary of plain values (numbers, text, lists);
- ``table(records)``: the Markdown of all records, tables and all, with the paper's values beside;
- ``figure(records)``: a Matplotlib figure (:func:`artlas_paper.figures.blank`);
- ``protocol``: how it was measured, in words, for a reader who has only the table.

``artlas-paper study NAME`` (:mod:`artlas_paper.cli.study`, where a new study is put into the list at the end)
runs the jobs one after the other. Each result is a record, the identity and the values with the
study's version, the commit and the seconds, and is merged into DIR/NAME.json at once: what is
interrupted goes on where it was, and what is there is not measured again, which the command says;
with ``--again`` it measures anew what other commits measured. Raise ``Study.version`` when the same
job would now give other values: older records are then made anew. From the records of
the file :func:`write_report` makes NAME.md, NAME.png and NAME.svg. A quick run has its own files,
NAME-quick, and takes the first seed alone unless seeds are asked for.

What a person wrote below the heading "Discussion" of NAME.md is kept when the file is written anew,
and is said to be of earlier records if they have changed since.

:class:`Setting` gives jobs what they share, each once: ``model(target, seed)``, the pretrained
model that never saw the target, ``sample(target)``, its stratified objects with labels, and
``folds(level)`` for whatever is pretrained in another way; ``once(key, make)`` keeps anything else
between jobs. A job that takes long calls ``report(done, total)`` now and then, for the bar.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from artlas.files.atomic import atomic
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.method.model import ART
from artlas.training.loop import Progress
from artlas_paper import datasets, figures
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import (
    ART_CONFIG,
    ART_EPOCHS,
    OBJECTS,
    SAMPLING_SEED,
    Level,
    art_training,
)
from artlas_paper.transfer.folds import Folds
from artlas_paper.transfer.records import Record, commit, identity, merge, read

Made = TypeVar("Made")
Report = Callable[[int, int], None]  # steps done, and of how many, within one job
FEW = 16  # objects sampled of a target in quick runs
DISCUSSION = "## Discussion"


@dataclass(frozen=True)
class Job:
    """One thing to measure: what its record is of, and how it is made."""

    identity: Mapping[str, Any]
    measure: Callable[[Report], Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The identity in a few words."""
        return " ".join(str(value) for value in self.identity.values())


@dataclass(frozen=True)
class Study:
    """What is measured, how it is shown, and the command's defaults; see the module."""

    name: str
    title: str
    protocol: str
    keys: tuple[str, ...]
    targets: tuple[str, ...]
    seeds: tuple[int, ...]
    jobs: Callable[[Setting], Iterable[Job]]
    table: Callable[[Sequence[Record]], str]
    figure: Callable[[Sequence[Record]], Any]
    quick_targets: tuple[str, ...] = ("BZR",)
    version: int = 1


@dataclass(frozen=True)
class Sample:
    """Stratified objects of a target: its graphs, or ego-graphs of its nodes.

    members: numbers of the objects in the dataset [n]; labels: their classes from 0 [n].
    """

    target: str
    level: Level
    members: NDArray[np.int64]
    labels: NDArray[np.int64]
    graphs: Graphs


@dataclass(frozen=True)
class Setting:
    """What the jobs of a run share; ``parts``: those of a study's parts that are wanted, if any."""

    root: Path | None
    runs: Path
    targets: tuple[str, ...]
    seeds: tuple[int, ...]
    quick: bool = False
    parts: tuple[str, ...] = ()

    @property
    def objects(self) -> int:
        """How many objects of a target are sampled."""
        return FEW if self.quick else OBJECTS

    @cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What ``make`` gives, made when it is first asked for under this key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def folds(self, level: Level, epochs: int = ART_EPOCHS) -> Folds:
        """The pretrained models of a level, with the settings of ``artlas-paper transfer``."""
        training = art_training(level, epochs)
        runs = self.runs if epochs > 1 else self.runs / "quick"
        return self.once(
            ("folds", level, epochs), lambda: Folds(level, self.root, runs, training, ART_CONFIG)
        )

    def model(self, target: str, seed: int, report: Report | None = None) -> ART:
        """The model that never saw a target, pretrained now if it is not kept.

        In a quick run a model that is not kept is trained for one epoch, in a folder of its own.
        """
        folds = self.folds(find(target).level)
        if self.quick and not (folds.folder(target, seed) / checkpoint.MODEL).exists():
            folds = self.folds(find(target).level, epochs=1)

        def show(at: Progress) -> None:
            if report is not None:
                report(at.step, at.steps)

        return self.once(
            ("model", find(target).name, seed), lambda: folds.model(target, seed, show)
        )

    def sample(self, target: str) -> Sample:
        """The stratified objects of a target, with the paper's features."""
        return self.once(
            ("sample", find(target).name), lambda: draw_sample(target, self.root, self.objects)
        )


def draw_sample(target: str, root: Path | None, count: int = OBJECTS) -> Sample:
    """So many objects of a target, stratified by class with SAMPLING_SEED; the paper's features."""
    entry = find(target)
    examples = datasets.load_examples(entry.name, root, "paper")
    assert examples.y is not None
    members = stratified(examples.y.numpy(), count)
    chosen = examples[members]
    assert chosen.y is not None
    labels = np.unique(chosen.y.numpy(), return_inverse=True)[1].reshape(-1)
    return Sample(entry.name, entry.level, members, labels, chosen)


def stratified(labels: Any, count: int, seed: int = SAMPLING_SEED) -> NDArray[np.int64]:
    """So many examples, from every class in proportion to its size, ascending, [n].

    Shares are rounded by largest remainder (ties: lower class), and a class keeps at least one.
    """
    known = np.asarray(labels)
    classes, sizes = np.unique(known, return_counts=True)
    count = min(count, len(known))
    if count < len(classes):
        raise ValueError(
            f"{count} examples cannot be stratified over {len(classes)} classes. "
            f"To fix this, ask for at least {len(classes)}."
        )
    exact = sizes * (count / len(known))
    share = np.maximum(np.floor(exact).astype(np.int64), 1)
    while share.sum() < count:
        share[np.argmax(exact - share)] += 1
    while share.sum() > count:  # classes of less than one share were rounded up
        share[np.argmax(np.where(share > 1, share - exact, -np.inf))] -= 1
    rng = np.random.default_rng(seed)
    parts = [
        rng.choice(np.flatnonzero(known == label), size, replace=False)
        for label, size in zip(classes, share, strict=True)
    ]
    return np.sort(np.concatenate(parts))


def file_of(study: Study, setting: Setting, out: Path) -> Path:
    """The JSON file of a study's records; a quick run has its own."""
    return out / f"{study.name}{'-quick' if setting.quick else ''}.json"


def plan(
    study: Study, setting: Setting, path: Path, again: bool = False
) -> tuple[list[Job], list[Record]]:
    """The jobs that are left to do, and the records of the others, which a file has already.

    again: leave those to do, too, whose records another commit made.
    """
    now = commit() if again else ""
    done = {
        identity(record, study.keys): record
        for record in read(path)
        if record["version"] == study.version and not (again and record["commit"] != now)
    }
    left, kept = list[Job](), list[Record]()
    for job in study.jobs(setting):
        record = done.get(identity(job.identity, study.keys))
        if record is None:
            left.append(job)
        else:
            kept.append(record)
    return left, kept


def measure(study: Study, job: Job, path: Path, report: Report) -> Record:
    """Measure one job and keep its record in the file."""
    began = time.perf_counter()
    values = job.measure(report)
    record: Record = {
        **job.identity,
        **values,
        "version": study.version,
        "seconds": round(time.perf_counter() - began, 3),
        "commit": commit(),
    }
    merge(path, [record], study.keys)
    return record


def write_report(study: Study, path: Path) -> list[Path]:
    """NAME.md, NAME.png and NAME.svg of the records in NAME.json; nothing if there are none."""
    records = [record for record in read(path) if record["version"] == study.version]
    if not records:
        return []
    page = path.with_suffix(".md")
    made = markdown(study, records, path.stem, page.read_text() if page.exists() else "")
    with atomic(page) as out:
        out.write(made.encode())
    return [page, *figures.save(study.figure(records), path.with_suffix(""))]


def markdown(study: Study, records: Sequence[Record], stem: str, older: str = "") -> str:
    """The page of a study: title, protocol, provenance, table, figure, and the older discussion."""
    quick = stem.endswith("-quick")
    parts = [
        f"# {study.title}",
        study.protocol + (f" This is a quick run, of {FEW} objects a target." if quick else ""),
        f"    {command_of(study, records, quick)}",
        f"{_provenance(records)}, records `{digest(records)}`.",
        study.table(records),
        f"![{study.title}]({stem}.png)",
    ]
    _, found, text = older.partition(f"\n{DISCUSSION}\n")
    if found:
        before = older.partition("records `")[2].partition("`")[0]
        note = f"(Written for the records `{before}`, which have changed since.)"
        if before != digest(records) and "which have changed since.)" not in text:
            text = f"\n{note}\n{text}"
        parts.append(f"{DISCUSSION}\n\n{text.strip()}")
    return "\n\n".join(parts) + "\n"


def command_of(study: Study, records: Sequence[Record], quick: bool) -> str:
    """The command that makes these records, of every target and seed that is in them."""
    words = [f"artlas-paper study {study.name} --root ROOT --out DIR"]
    for key in ("target", "seed"):
        found = sorted({str(r[key]) for r in records if r.get(key) is not None})
        if found:
            words.append(f"--{key}s {','.join(found)}")
    return " ".join([*words, "--quick"] if quick else words)


def _provenance(records: Sequence[Record]) -> str:
    seeds = sorted({r["seed"] for r in records if r.get("seed") is not None})
    commits = ", ".join(sorted({r["commit"] for r in records}))
    seconds = sum(r["seconds"] for r in records)
    drawn = f"Seeds {', '.join(map(str, seeds))}; commits" if seeds else "Commits"
    return f"{drawn} {commits}; {seconds:,.0f} s"


def digest(records: Iterable[Record]) -> str:
    """Eight digits that change with any value of the records but their time and commit."""
    values = [{k: v for k, v in r.items() if k not in ("seconds", "commit")} for r in records]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def rows(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in body)])


def ordered(records: Sequence[Record], key: str, order: Sequence[Any]) -> list[Any]:
    """The values of a key that records have, those of ``order`` first and in its order."""
    found = {record[key] for record in records}
    return [v for v in order if v in found] + sorted(found - set(order), key=str)
