"""Files of graphs to one table of vectors, in parts: a run that is broken off goes on.

Three things are done at once: the next input is read, graphs are embedded, and rows are written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import shutil
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.embedding import table
from artlas.embedding.pipeline import Task, ahead, behind, in_parallel
from artlas.embedding.run_state import Parts
from artlas.embedding.table import Vectors
from artlas.errors import GraphError, raise_read_error
from artlas.graphs.collection import Graphs
from artlas.io.reading import read
from artlas.method import checkpoint
from artlas.method.batching import nodes_within_budget, split_by_budget
from artlas.method.energy import coverage
from artlas.method.model import ART
from artlas.method.representations import check_representation, feature_names

TABLE = "table"  # as which it is written, among the parts
BUDGET = 1 << 25  # bytes that a batch may take; there is one for every thread
UNKEPT_BYTES, UNKEPT_SECONDS = 1 << 27, 10.0  # what a run that is killed may lose
READ_AHEAD = 1 << 26  # bytes of an input up to which it is read while another is embedded


@dataclass(frozen=True)
class Input:
    """A file, or a folder in TU layout, what it is called in the table, and its format if given.

    digest: of its bytes, where the file is a copy and says nothing by its date.
    """

    path: Path
    name: str
    format: str | None = None
    digest: str | None = None

    def stamp(self) -> list[object]:
        """What changes when the input does."""
        if self.digest is not None:
            return [self.name, self.format, self.digest]
        found = [file.stat() for file in self._files()]
        return [self.name, self.format, [[stat.st_size, stat.st_mtime_ns] for stat in found]]

    def size(self) -> int:
        """Its bytes on disk."""
        return sum(file.stat().st_size for file in self._files())

    def _files(self) -> list[Path]:
        files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        return [file for file in files if file.exists()]


@dataclass(frozen=True)
class Progress:
    """How far a run is: graphs done, and of which input, the i-th of so many.

    share: of the work, by bytes of the inputs; kept: the share that was there when it began.
    """

    graphs: int
    name: str
    number: int
    inputs: int
    share: float = 0.0
    kept: float = 0.0

    def left(self, passed: float) -> float | None:
        """Seconds left, after so many of work; None while nothing tells."""
        made = self.share - self.kept
        return passed * (1 - self.share) / made if made > 0 else None


@dataclass
class Outcome:
    """What a run has done: rows written, and inputs that could not be used, with the reason."""

    graphs: int = 0
    failures: dict[str, str] = dataclasses.field(default_factory=dict)


def describe(model: ART, graphs: Graphs, representation: str, name: str, first: int = 0) -> Vectors:
    """The rows of some graphs of an input, numbered from ``first``."""
    z, energies, residuals = model.embed_with_energies(graphs, representation)
    width = 0 if graphs.x is None else graphs.x.shape[1]
    facts = {
        "representation": representation,
        "model": dataclasses.asdict(model.config),
        "weights": checkpoint.weights_hash(model),
        "names": feature_names(model.config, representation, width),
    }
    return Vectors(
        source=np.full(len(graphs), name),
        index=np.arange(first, first + len(graphs)),
        label=labels_of(graphs),
        coverage=coverage(energies, model.config.coverage_temperature).cpu().numpy(),
        residual=residuals.amax(1).cpu().numpy(),
        energies=energies.cpu().numpy(),
        z=z.cpu().numpy(),
        facts=facts,
    )


def labels_of(graphs: Graphs) -> NDArray[np.int64]:
    """The class of every graph, UNLABELLED where there are none."""
    y = graphs.y
    if y is None or y.shape != (len(graphs),) or y.is_floating_point():
        return np.full(len(graphs), table.UNLABELLED)
    return y.numpy().astype(np.int64)


def check_width(entry: Input, own: int, text: str, width: tuple[str, int] | None) -> None:
    """Refuse an input whose nodes have other features than those of the first, (name, width)."""
    if width is not None and width[1] != own:
        wrong = f"its nodes have {own} features, those of {width[0]} have {width[1]}"
        raise_read_error(entry.path, wrong, text, "embed it into a file of its own")


@dataclass(frozen=True)
class Piece:
    """Graphs of an input, from the ``first`` on, of so many in all, for one part."""

    number: int
    first: int
    total: int
    graphs: Graphs


@dataclass(frozen=True)
class EmbeddedPiece:
    """The rows of a piece; ``kept`` if its part is there."""

    number: int
    first: int
    total: int
    width: int
    rows: Vectors
    kept: bool = False

    @property
    def stop(self) -> int:
        """The number of the first graph behind it."""
        return self.first + len(self.rows)


class _Waiting:
    """Pieces to be worked on at once."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.nodes = 0

    def add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.nodes += piece.graphs.num_nodes

    def take(self) -> list[Piece]:
        taken, self.pieces, self.nodes = self.pieces, [], 0
        return taken


class Run(Parts):
    """A table that is being made, and its parts beside where it will be.

    An input is cut into pieces as ``ART.cut`` does; the rows of each are a part, and an input all
    of whose parts are there has a note. Rows go into the table at once, and are kept as parts when
    enough came together, or when the run breaks off.
    """

    def __init__(self, out: Path, inputs: Sequence[Input], model: ART, representation: str) -> None:
        check_representation(representation)
        table.ending(out)
        self.out, self.inputs, self.model, self.representation = out, inputs, model, representation
        self.planned = 0  # nodes times bases that were handed out so far; kernels.done counts them
        self._unkept, self._bytes, self._since = deque[EmbeddedPiece](), 0, time.monotonic()
        settings = {
            "representation": representation,
            "weights": checkpoint.weights_hash(model),
            "model": dataclasses.asdict(model.config),
            "inputs": [entry.stamp() for entry in inputs],
        }
        super().__init__(out.with_name(f".{out.name}.parts"), json.loads(json.dumps(settings)))

    def work(self, report: Callable[[Progress], None], budget: int = BUDGET) -> Outcome:
        """Embed what is not embedded yet, write the table, and delete the parts."""
        self.cut_by(budget)
        outcome, sizes = Outcome(), [entry.size() for entry in self.inputs]
        before, total, kept = [0, *itertools.accumulate(sizes)], max(1, sum(sizes)), 0.0
        try:
            tasks = self._tasks(outcome, budget)
            with (
                behind(self._write, 2) as put,
                contextlib.closing(in_parallel(tasks, torch.get_num_threads())) as made,
            ):
                for one in itertools.chain.from_iterable(made):
                    put(one)
                    outcome.graphs += len(one.rows)
                    kept += one.kept * len(one.rows) / one.total * sizes[one.number] / total
                    done = before[one.number] + one.stop / one.total * sizes[one.number]
                    name, count = self.inputs[one.number].name, len(self.inputs)
                    at = Progress(outcome.graphs, name, one.number, count, done / total, kept)
                    report(at)
        except BaseException:
            with contextlib.suppress(OSError):
                self._keep()
            raise
        shutil.rmtree(self.folder)
        return outcome

    def join(self, outcome: Outcome) -> Outcome:
        """Write the table from the parts of all finished inputs, and delete them."""
        if outcome.graphs:
            done = {number for number in self.begun() if self.finished(number) is not None}
            found = sorted(self.folder.glob("*.npz"))
            kept = [path for path in found if int(path.stem.split("-")[0]) in done]
            table.write(self.out, map(table.read, kept))
        shutil.rmtree(self.folder)
        return outcome

    def _write(self, pieces: Iterator[EmbeddedPiece]) -> None:
        """Write the rows as the table, if there are any; on the way they are kept."""
        rows = self._keeping(pieces)
        first = next(rows, None)
        if first is not None:
            table.write(self.out, itertools.chain([first], rows), part=self.folder / TABLE)

    def _keeping(self, pieces: Iterator[EmbeddedPiece]) -> Iterator[Vectors]:
        for one in pieces:
            if not one.kept:
                self._unkept.append(one)
                self._bytes += one.rows.nbytes
                long = time.monotonic() - self._since >= UNKEPT_SECONDS
                if long or self._bytes >= UNKEPT_BYTES:
                    self._keep()
            yield one.rows

    def _keep(self) -> None:
        """Write the parts that are not there yet, and note the inputs that end with them."""
        while self._unkept:
            one = self._unkept[0]
            table.write(self.part(one.number, one.first), [one.rows], durable=False)
            if one.stop == one.total:
                self.finish(one.number, one.total, one.width)
            self._unkept.popleft()
        self._bytes, self._since = 0, time.monotonic()

    def _tasks(
        self, outcome: Outcome, budget: int
    ) -> Generator[Task[list[EmbeddedPiece]], None, None]:
        """What makes the rows of all inputs that can be used, in order; small inputs together."""
        begun = self.begun()
        width: tuple[str, int] | None = None
        waiting = _Waiting()
        with contextlib.closing(self._read()) as inputs:
            for number, found in inputs:
                entry = self.inputs[number]
                if isinstance(found, dict):
                    width = width or (entry.name, found["width"])
                    yield from self._describing(waiting)
                    for first in sorted(begun.get(number, ())):
                        words = number, first, found["graphs"], found["width"]
                        yield Task(partial(self._kept, *words))
                    continue
                try:
                    if isinstance(found, Exception):
                        raise found
                    check_width(entry, found.num_features, repr(found), width)
                except (GraphError, ImportError) as error:
                    outcome.failures[entry.name] = str(error)
                    continue
                width = width or (entry.name, found.num_features)
                first, room = 0, nodes_within_budget(self.model.config, found.num_features, budget)
                for graphs in split_by_budget(self.model.config, found, budget):
                    if first in begun.get(number, ()):
                        yield from self._describing(waiting)
                        words = number, first, len(found), found.num_features
                        yield Task(partial(self._kept, *words))
                    else:
                        if waiting.nodes + graphs.num_nodes > room:
                            yield from self._describing(waiting)
                        waiting.add(Piece(number, first, len(found), graphs))
                        if graphs.num_nodes > room:
                            yield from self._describing(waiting, alone=True)
                    first += len(graphs)
        yield from self._describing(waiting)

    def _kept(self, number: int, first: int, total: int, width: int) -> list[EmbeddedPiece]:
        rows = table.read(self.part(number, first))
        return [EmbeddedPiece(number, first, total, width, rows, kept=True)]

    def _describing(
        self, waiting: _Waiting, alone: bool = False
    ) -> Iterator[Task[list[EmbeddedPiece]]]:
        self.planned += waiting.nodes * self.model.config.bases
        if pieces := waiting.take():
            yield Task(partial(self._describe, pieces), alone)

    def _describe(self, pieces: list[Piece]) -> list[EmbeddedPiece]:
        """The rows of pieces, which are worked on at once."""
        names = [self.inputs[one.number].name for one in pieces]
        if len(pieces) == 1:
            (one,) = pieces
            rows = describe(self.model, one.graphs, self.representation, names[0], one.first)
            return [EmbeddedPiece(one.number, one.first, one.total, one.graphs.num_features, rows)]
        joined = Graphs.concat(one.graphs.with_labels(None) for one in pieces)
        rows = describe(self.model, joined, self.representation, "")
        made, start = [], 0
        for one, name in zip(pieces, names, strict=True):
            stop = start + len(one.graphs)
            own = dataclasses.replace(
                rows.rows(start, stop),
                source=np.full(len(one.graphs), name),
                index=np.arange(one.first, one.first + len(one.graphs)),
                label=labels_of(one.graphs),
            )
            made.append(EmbeddedPiece(one.number, one.first, one.total, joined.num_features, own))
            start = stop
        return made

    def _read(self) -> Generator[tuple[int, Graphs | dict[str, Any] | Exception], None, None]:
        """Every input in order: its graphs, its note where it is finished, or what is wrong."""
        small = [entry.size() <= READ_AHEAD for entry in self.inputs]
        for early, numbers in itertools.groupby(range(len(small)), small.__getitem__):
            found = (self._look(number) for number in numbers)
            with contextlib.closing(ahead(found, 1) if early else found) as inputs:
                yield from inputs

    def _look(self, number: int) -> tuple[int, Graphs | dict[str, Any] | Exception]:
        done, entry = self.finished(number), self.inputs[number]
        if done is not None:
            return number, done
        try:
            return number, read(entry.path, entry.format, verbose=False)
        except (GraphError, ImportError) as error:
            return number, error
