"""Embed the inputs of a run on a Ray cluster, with the same bits as in one process.

Readers cut inputs into pieces and workers embed them, in any order. The calling process saves the
rows in the run's own state, so either engine resumes what the other has begun.
"""

from __future__ import annotations

import dataclasses
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

import artlas
from artlas import kernels
from artlas.embedding.pieces import Input, Piece, check_width, cut_into_pieces, embed_piece
from artlas.embedding.ray_session import ClusterError, connected, import_ray
from artlas.embedding.run import Progress, Run, Summary
from artlas.errors import GraphCleaningWarning, GraphError
from artlas.io.reading import read
from artlas.method.model import ART

BLOCK_BYTES = 1 << 20  # pieces below this size travel together, a larger one alone
TASKS_PER_WORKER = 64  # read tasks that inputs are spread over

Row = dict[str, bytes]


@dataclass(frozen=True)
class ReadTask:
    """An input for a reader; saved: first graphs of its pieces that are on disk already."""

    number: int
    entry: Input
    saved: frozenset[int]


@dataclass(frozen=True)
class ReadReport:
    """Warnings about an input that was read, or the error of one that cannot be read."""

    number: int
    warnings: tuple[str, ...] = ()
    error: str | None = None
    visible: bool = True  # whether the reader's machine has the file


def read_pieces(row: Row, model: ART, budget: int) -> Iterator[Row]:
    """Read the input of a task: yield a report and its pieces, or only the report of an error."""
    torch.set_num_threads(1)
    task, _ = _unpack(row)
    entry = task.entry
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GraphCleaningWarning)
        try:
            graphs = read(entry.path, entry.format, verbose=False)
        except (GraphError, ImportError) as error:
            report = ReadReport(task.number, error=str(error), visible=entry.path.exists())
            yield _pack(report)
            return
    cleaning = [w.message for w in caught if issubclass(w.category, GraphCleaningWarning)]
    yield _pack(ReadReport(task.number, tuple(map(str, cleaning))))
    graphs = dataclasses.replace(graphs, ids=None)  # names of nodes need not travel
    for piece in cut_into_pieces(graphs, task.number, entry.name, model, budget, task.saved):
        yield _pack(piece)


class Worker:
    """A process that holds the model and embeds pieces."""

    def __init__(self, model: ART, representation: str) -> None:
        cpus = import_ray().get_runtime_context().get_assigned_resources().get("CPU", 1)
        torch.set_num_threads(max(1, int(cpus)))
        self.model, self.representation = model, representation

    def __call__(self, row: Row) -> Row:
        """Embed a piece; pass on reports, and pieces that are saved already."""
        piece, _ = _unpack(row)
        if not isinstance(piece, Piece) or piece.graphs is None:
            return row
        rows = embed_piece(self.model, piece.graphs, self.representation, piece.name, piece.first)
        return _pack(dataclasses.replace(piece, graphs=None, rows=rows))


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster.

    workers: processes of one CPU each, 0 for one per CPU; address: as for ``ray start``, by
    default that in RAY_ADDRESS, else Ray is started on this machine.
    """

    workers: int = 0
    address: str | None = None

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ValueError(f"workers is 0 or more, got {self.workers}.")
        import_ray()

    def embed(self, run: Run, report: Callable[[Progress], None]) -> Summary:
        """Embed what no earlier run has saved, assemble the table, and delete the saved parts."""
        collector, state = Collector(run, report), run.state
        tasks = [
            ReadTask(
                number,
                dataclasses.replace(entry, path=entry.path.absolute()),
                frozenset(state.saved[number]),
            )
            for number, entry in enumerate(run.inputs)
            if number not in state.finished
        ]
        if tasks:
            with connected(self.address, self.workers) as ray:
                for item, made_by in self._stream(ray, run, tasks):
                    collector.add(item, made_by)
        return collector.assemble()

    def _stream(self, ray: Any, run: Run, tasks: list[ReadTask]) -> Iterator[tuple[Any, str]]:
        """Yield what readers and workers return, in any order.

        Ray Data restarts dead workers and repeats their work, without a limit.
        """
        workers = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        blocks = min(len(tasks), TASKS_PER_WORKER * workers)
        data = ray.data.from_items([_pack(task) for task in tasks], override_num_blocks=blocks)
        data.context.enable_progress_bars = False
        data.context.target_max_block_size = BLOCK_BYTES
        pieces = data.flat_map(
            read_pieces,
            fn_args=(run.model, run.budget),
            num_cpus=0,  # readers take no CPU from workers: whichever is ahead waits
            compute=ray.data.TaskPoolStrategy(size=min(workers, blocks)),
        )
        embedded = pieces.map(
            Worker,
            fn_constructor_args=(run.model, run.representation),
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
        )
        yield from map(_unpack, embedded.iter_rows())


class Collector:
    """Save pieces as they come; accept or refuse inputs in their order, as one process does.

    known: numbers of graphs and features of every input of which a piece came, or its error.
    """

    def __init__(self, run: Run, report: Callable[[Progress], None]) -> None:
        self.run, self.state, self.report = run, run.state, report
        self.known: dict[int, tuple[int, int] | str] = {
            number: (note["graphs"], note["width"]) for number, note in run.state.finished.items()
        }
        self.failures: dict[int, str] = {}
        self.expected: tuple[str, int] | None = None
        self.graphs = sum(sum(parts.values()) for parts in run.state.saved.values())
        self.software = {software()}
        self.decided = 0  # inputs accepted or refused so far
        self._decide()

    def add(self, item: ReadReport | Piece, made_by: str) -> None:
        """Add what a reader or a worker with this software returned; repetitions have no effect."""
        number, inputs = item.number, self.run.inputs
        if isinstance(item, ReadReport):
            for text in item.warnings:
                warnings.warn(text, GraphCleaningWarning, stacklevel=2)
            if item.error is not None:
                self.known[number] = _local_error(inputs[number], item)
        elif number not in self.failures:
            self.known[number] = item.total, item.width
            if item.first not in self.state.saved[number]:
                self.state.save(item)
                self.graphs += item.count
                self._compare(made_by)
            if number < self.decided:
                self.state.finish_if_complete(number, item.total, item.width)
        self._decide()
        done = len(self.state.finished)
        name, count = inputs[number].name, len(inputs)
        self.report(Progress(self.graphs, name, done, count, done / count))

    def assemble(self) -> Summary:
        """Write the table; an error if Ray ended before all inputs were finished or refused."""
        if len(self.state.finished) + len(self.failures) < len(self.run.inputs):
            raise ClusterError("Ray ended before all inputs were done: run the same command again.")
        inputs = self.run.inputs
        return self.run.assemble({inputs[n].name: text for n, text in self.failures.items()})

    def _decide(self) -> None:
        """Accept or refuse inputs, up to the first of which nothing is known yet."""
        while (number := self.decided) in self.known:
            entry, known = self.run.inputs[number], self.known[number]
            try:
                if isinstance(known, str):
                    raise GraphError(known)
                graphs, width = known
                check_width(entry, width, graphs, self.expected)
                self.expected = self.expected or (entry.name, width)
                self.state.finish_if_complete(number, graphs, width)
            except GraphError as error:
                self.failures[number] = str(error)
                self.graphs -= sum(self.state.saved[number].values())
            self.decided += 1

    def _compare(self, made_by: str) -> None:
        if made_by not in self.software:
            self.software.add(made_by)
            warnings.warn(
                f"a worker has {made_by}, this process {software()}: their vectors agree to "
                "rounding, not to the bit.",
                RuntimeWarning,
                stacklevel=3,
            )


def software() -> str:
    """Return what decides about the last bits of a vector: the release and the kernels."""
    kind = "the PyTorch twin"
    if kernels.available():
        from artlas.kernels import native

        kind = f"{native.isa()} kernels"
    return f"artlas {artlas.__version__} with {kind}"


def _pack(item: ReadTask | ReadReport | Piece) -> Row:
    # Pickled here because Ray Data warns of objects that Arrow has no type for.
    return {"item": pickle.dumps((item, software()), protocol=pickle.HIGHEST_PROTOCOL)}


def _unpack(row: Row) -> tuple[Any, str]:
    item, made_by = pickle.loads(row["item"])
    return item, made_by


def _local_error(entry: Input, report: ReadReport) -> str:
    """Return a reader's error with the path as it was given to this process."""
    text = (report.error or "").replace(str(entry.path.absolute()), str(entry.path))
    if entry.path.exists() and not report.visible:
        text += (
            " It is there on this machine, but not for the worker: inputs must lie under the same "
            "path on storage that all machines of the cluster share."
        )
    return text
