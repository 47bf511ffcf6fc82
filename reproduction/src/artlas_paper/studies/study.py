"""The framework of a study: one table or figure, measured job by job, written by one command.

Each study module defines a :class:`Study` with

- ``jobs(setting)``: what to measure, as a list of :class:`Job`. A job has an identity, such as
  ``{"target": "BZR", "variant": "learned", "seed": 42}``, whose keys are ``Study.keys``, and a
  function that measures it and returns a dictionary of plain values (numbers, text, lists);
- ``table(records)``: the Markdown tables of all records, beside the paper's values;
- ``figure(records)``: a Matplotlib figure (:mod:`artlas_paper.studies.plots`);
- ``protocol``: how it was measured, for a reader who sees only the page.

``artlas-paper study NAME`` (:mod:`artlas_paper.cli.study`, where a new study is registered) runs
the jobs one after another. Each result becomes a record, the identity and the values together with
the study's version, the commit and the seconds, and is merged into DIR/NAME.json at once. An
interrupted run therefore resumes, and finished jobs are not measured again; ``--again`` measures
anew what other commits measured. Raise ``Study.version`` when the same job would now give other
values: older records are then ignored and measured anew. :mod:`artlas_paper.studies.study_page`
makes NAME.md, NAME.png and NAME.svg from the records. A quick run has files of its own, NAME-quick,
and uses only the first seed unless seeds are given.

Text below the heading "Discussion" of NAME.md is written by hand. It is kept when the page is
written again, and marked as outdated if the records have changed since.

:class:`Setting` gives jobs what they share, made once: ``model(target, seed)``, the pretrained
model that never saw the target; ``sample(target)``, stratified objects with labels; and
``folds(level)`` for models pretrained in another way. ``cached(key, make)`` keeps anything else
between jobs. A long job calls ``report(done, total)`` now and then, for the progress bar.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from artlas.method import checkpoint
from artlas.method.model import ART
from artlas.training.loop import Progress
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import (
    ART_CONFIG,
    ART_EPOCHS,
    OBJECTS,
    SAMPLING_SEED,
    Level,
    art_training,
)
from artlas_paper.studies.sampling import Sample, draw_sample
from artlas_paper.transfer.folds import Folds
from artlas_paper.transfer.records import Record, commit, identity, merge, read

Value = TypeVar("Value")
ReportProgress = Callable[[int, int], None]  # steps done and steps in all, within one job
FEW = 16  # objects sampled of a target in quick runs


@dataclass(frozen=True)
class Job:
    """One thing to measure: the identity of its record and the function that measures it."""

    identity: Mapping[str, Any]
    measure: Callable[[ReportProgress], Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The values of the identity, for the progress bar."""
        return " ".join(str(value) for value in self.identity.values())


@dataclass(frozen=True)
class Study:
    """What a study measures, how its page shows it, and the command's defaults."""

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
class Setting:
    """What the jobs of one run share.

    metrics: those of the study's metrics to measure, all if empty; cache: what
    :meth:`cached` keeps between jobs.
    """

    root: Path | None
    runs: Path
    targets: tuple[str, ...]
    seeds: tuple[int, ...]
    quick: bool = False
    metrics: tuple[str, ...] = ()
    cache: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def sample_size(self) -> int:
        """The number of objects sampled from a target."""
        return FEW if self.quick else OBJECTS

    def cached(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value under a key, made when it is first asked for."""
        if key not in self.cache:
            self.cache[key] = make()
        value: Value = self.cache[key]
        return value

    def folds(self, level: Level, epochs: int = ART_EPOCHS) -> Folds:
        """Return the pretrained models of a level, trained as by ``artlas-paper transfer``."""
        training = art_training(level, epochs)
        runs = self.runs if epochs > 1 else self.runs / "quick"
        return self.cached(
            ("folds", level, epochs), lambda: Folds(level, self.root, runs, training, ART_CONFIG)
        )

    def model(self, target: str, seed: int, report: ReportProgress | None = None) -> ART:
        """Return the model that never saw a target; pretrain it now if it is not stored.

        A quick run trains a model that is not stored for one epoch, in a separate folder.
        """
        folds = self.folds(find(target).level)
        if self.quick and not (folds.folder(target, seed) / checkpoint.MODEL).exists():
            folds = self.folds(find(target).level, epochs=1)

        def show(at: Progress) -> None:
            if report is not None:
                report(at.step, at.steps)

        return self.cached(
            ("model", find(target).name, seed), lambda: folds.model(target, seed, show)
        )

    def sample(self, target: str) -> Sample:
        """Return the stratified objects of a target, with the paper's features."""
        return self.cached(
            ("sample", find(target).name),
            lambda: draw_sample(target, self.root, self.sample_size, SAMPLING_SEED),
        )


def records_path(study: Study, setting: Setting, out: Path) -> Path:
    """Return the JSON file of a study's records; a quick run has its own."""
    return out / f"{study.name}{'-quick' if setting.quick else ''}.json"


def pending_jobs(
    study: Study, setting: Setting, path: Path, remeasure: bool = False
) -> tuple[list[Job], list[Record]]:
    """Return the jobs still to do, and the records that the file already holds of the others.

    remeasure: count a job as still to do if another commit made its record.
    """
    now = commit() if remeasure else ""
    done = {
        identity(record, study.keys): record
        for record in read(path)
        if record["version"] == study.version and not (remeasure and record["commit"] != now)
    }
    pending, kept = list[Job](), list[Record]()
    for job in study.jobs(setting):
        record = done.get(identity(job.identity, study.keys))
        if record is None:
            pending.append(job)
        else:
            kept.append(record)
    return pending, kept


def run_job(study: Study, job: Job, path: Path, report: ReportProgress) -> Record:
    """Measure one job and merge its record into the file."""
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
