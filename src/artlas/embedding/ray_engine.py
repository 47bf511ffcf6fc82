"""The work of :meth:`artlas.embedding.run.Run.work` by the workers of a Ray cluster, with the same bits.

Readers turn inputs into chunks of graphs, workers turn chunks into rows, in any order, and this
process keeps the books: a part is written under the name that one process alone would use, so what
one engine has begun the other can go on with.
"""

from __future__ import annotations

import dataclasses
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

import artlas
from artlas import kernels
from artlas.embedding import table
from artlas.embedding.ray_session import ClusterError, connected, load
from artlas.embedding.run import Input, Outcome, Progress, Run, check_width, describe
from artlas.embedding.table import Vectors
from artlas.errors import GraphCleaningWarning, GraphError
from artlas.graphs.collection import Graphs
from artlas.io.reading import read
from artlas.method.batching import BUDGET, split_by_budget
from artlas.method.model import ART

BLOCK = 1 << 20  # bytes: smaller chunks travel together, a larger one alone
READS = 64  # tasks for each worker that inputs are spread over

Row = dict[str, bytes]


@dataclass(frozen=True)
class Job:
    """An input for a reader, with the first graphs of its parts that are there already."""

    number: int
    entry: Input
    kept: frozenset[int]


@dataclass(frozen=True)
class Found:
    """What a reader saw in an input: so many graphs and features, or an error."""

    number: int
    graphs: int = 0
    width: int = 0
    text: str = ""
    error: str | None = None
    there: bool = True
    warned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chunk:
    """Graphs of an input, from the ``first`` on, for a worker."""

    number: int
    name: str
    first: int
    graphs: Graphs


@dataclass(frozen=True)
class Part:
    """What became of a chunk; no rows if they are there already."""

    number: int
    first: int
    graphs: int
    rows: Vectors | None = None
    maker: str = ""


def read_job(row: Row, model: ART, budget: int) -> Iterator[Row]:
    """One input as it was found, and its chunks; an input that cannot be read is no exception."""
    torch.set_num_threads(1)
    job: Job = _unpacked(row)
    entry = job.entry
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GraphCleaningWarning)
        try:
            graphs = read(entry.path, entry.format, verbose=False)
        except (GraphError, ImportError) as error:
            yield _packed(Found(job.number, error=str(error), there=entry.path.exists()))
            return
    told = [w for w in caught if issubclass(w.category, GraphCleaningWarning)]
    warned = tuple(str(warning.message) for warning in told)
    size, width = len(graphs), graphs.num_features
    yield _packed(Found(job.number, size, width, repr(graphs), warned=warned))
    first = 0
    for part in split_by_budget(model.config, graphs, budget):
        if first in job.kept:
            yield _packed(Part(job.number, first, len(part)))
        else:
            bare = dataclasses.replace(part, ids=None)
            yield _packed(Chunk(job.number, entry.name, first, bare))
        first += len(part)


class Worker:
    """A process that has the model, and turns chunks into parts."""

    def __init__(self, model: ART, representation: str) -> None:
        cpus = load().get_runtime_context().get_assigned_resources().get("CPU", 1)
        torch.set_num_threads(max(1, int(cpus)))
        self.model, self.representation = model, representation

    def __call__(self, row: Row) -> Row:
        chunk = _unpacked(row)
        if not isinstance(chunk, Chunk):
            return row
        made = describe(self.model, chunk.graphs, self.representation, chunk.name, chunk.first)
        return _packed(Part(chunk.number, chunk.first, len(chunk.graphs), made, maker()))


@dataclass(frozen=True)
class Cluster:
    """Where the workers are, and how many.

    workers: processes of one CPU each, 0 for as many as there are CPUs; address: as of ``ray
    start``, by default that in RAY_ADDRESS, else a Ray of our own on this machine.
    """

    workers: int = 0
    address: str | None = None

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ValueError(f"workers is 0 or more, got {self.workers}.")
        load()

    def work(self, run: Run, report: Callable[[Progress], None], budget: int = BUDGET) -> Outcome:
        """Embed what is not embedded yet, join the parts into the table, and delete them."""
        run.cut_by(budget)
        books, begun = _Books(run, report), run.begun()
        jobs = [
            Job(number, _absolute(entry), frozenset(begun.get(number, ())))
            for number, entry in enumerate(run.inputs)
            if run.finished(number) is None
        ]
        if jobs:
            with connected(self.address, self.workers) as ray:
                for item in self._stream(ray, run, jobs, budget):
                    books.take(item)
        return run.join(books.outcome())

    def _stream(self, ray: Any, run: Run, jobs: list[Job], budget: int) -> Iterator[Found | Part]:
        """What readers and workers give, as it comes."""
        workers = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        blocks = min(len(jobs), READS * workers)
        items = ray.data.from_items(list(map(_packed, jobs)), override_num_blocks=blocks)
        items.context.enable_progress_bars = False
        items.context.target_max_block_size = BLOCK
        # Ray Data starts dead workers anew and repeats what they had begun, as often as it takes.
        # Readers take no CPU from the workers: whoever is ahead waits for the other.
        chunks = items.flat_map(
            read_job,
            fn_args=(run.model, budget),
            num_cpus=0,
            compute=ray.data.TaskPoolStrategy(size=min(workers, blocks)),
        )
        parts = chunks.map(
            Worker,
            fn_constructor_args=(run.model, run.representation),
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
        )
        for row in parts.iter_rows():
            yield _unpacked(row)


class _Books:
    """What is known of every input; verdicts fall in the order of the inputs, as in one process."""

    def __init__(self, run: Run, report: Callable[[Progress], None]) -> None:
        self.run, self.report = run, report
        self.found: dict[int, Found] = {}
        self.seen: set[tuple[int, int]] = set()
        self.rows: Counter[int] = Counter()
        self.failures: dict[int, str] = {}
        self.width: tuple[str, int] | None = None
        self.judged = self.done = self.graphs = 0
        self.makers = {maker()}
        self._judge()

    def take(self, item: Found | Part) -> None:
        """Enter what came, and finish the input that it completes."""
        if isinstance(item, Found):
            self.found[item.number] = item
            for text in item.warned:
                warnings.warn(text, GraphCleaningWarning, stacklevel=2)
            self._judge()
        elif item.number not in self.failures and (item.number, item.first) not in self.seen:
            if item.rows is not None:
                table.write(self.run.part(item.number, item.first), [item.rows])
                self._compare(item.maker)
            self.seen.add((item.number, item.first))
            self.rows[item.number] += item.graphs
            self.graphs += item.graphs
            self._finish(item.number)
        name, inputs = self.run.inputs[item.number].name, len(self.run.inputs)
        self.report(Progress(self.graphs, name, self.done, inputs, self.done / inputs))

    def outcome(self) -> Outcome:
        """What the run has done, once nothing more comes."""
        if self.done + len(self.failures) < len(self.run.inputs):
            raise ClusterError("Ray ended before all inputs were done: run the same command again.")
        names = {self.run.inputs[n].name: text for n, text in sorted(self.failures.items())}
        return Outcome(self.graphs, names)

    def _judge(self) -> None:
        """Decide on the inputs up to the first that nothing is known of."""
        for number in range(self.judged, len(self.run.inputs)):
            entry, found = self.run.inputs[number], self.found.get(number)
            kept = self.run.finished(number) if found is None else None
            if kept is not None:
                self.width = self.width or (entry.name, kept["width"])
                self.graphs += kept["graphs"]
                self.done += 1
            elif found is None:
                return
            else:
                self._decide(number, entry, found)
            self.judged = number + 1
            self._finish(number)

    def _decide(self, number: int, entry: Input, found: Found) -> None:
        try:
            if found.error is not None:
                raise GraphError(_as_named(entry, found))
            check_width(entry, found.width, found.text, self.width)
            self.width = self.width or (entry.name, found.width)
        except GraphError as error:
            self.failures[number] = str(error)
            self.graphs -= self.rows.pop(number, 0)
            del self.found[number]

    def _finish(self, number: int) -> None:
        found = self.found.get(number)
        if found is not None and number < self.judged and self.rows[number] == found.graphs:
            self.run.finish(number, found.graphs, found.width)
            self.done += 1

    def _compare(self, name: str) -> None:
        if name not in self.makers:
            self.makers.add(name)
            warnings.warn(
                f"a worker has {name}, this process {maker()}: their vectors agree to rounding, "
                "not to the bit.",
                RuntimeWarning,
                stacklevel=3,
            )


def maker() -> str:
    """What decides about the last bits of a vector: the release and the kernels."""
    kind = "the PyTorch twin"
    if kernels.available():
        from artlas.kernels import native

        kind = f"{native.isa()} kernels"
    return f"artlas {artlas.__version__} with {kind}"


def _packed(item: Job | Found | Chunk | Part) -> Row:
    # as bytes: Ray stores other objects too, but warns that they are not of a type of Arrow
    return {"item": pickle.dumps(item, protocol=pickle.HIGHEST_PROTOCOL)}


def _unpacked(row: Row) -> Any:
    return pickle.loads(row["item"])


def _absolute(entry: Input) -> Input:
    return dataclasses.replace(entry, path=entry.path.absolute())


def _as_named(entry: Input, found: Found) -> str:
    """An error of a reader, with the path as it was given here."""
    text = (found.error or "").replace(str(entry.path.absolute()), str(entry.path))
    if entry.path.exists() and not found.there:
        text += (
            " It is there on this machine, but not for the worker: inputs must lie under the same "
            "path on storage that all machines of the cluster share."
        )
    return text
