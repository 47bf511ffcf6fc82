"""Compute the table of a run on a Ray cluster, with the same bits as in one process.

Readers cut inputs into pieces and workers compute their rows; Ray Data returns the rows in order.
The calling process writes and saves them as any run does, so either engine resumes the other's
runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import os
import pickle
import socket
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import torch

from artlas import kernels
from artlas.embedding.pieces import LoadedInput, Piece, Work, load
from artlas.embedding.table_run import Progress, Summary, TableRun
from artlas.errors import GraphCleaningWarning, GraphError

BLOCK_BYTES = 1 << 20  # pieces below this size travel together, a larger one alone
TASKS_PER_WORKER = 64  # read tasks that inputs are spread over
_INCOMPLETE = "Ray ended before all inputs were done: run the same command again."

Row = dict[str, Any]  # item: pickled, for Ray Data warns of other objects; software: its maker's


class ClusterError(RuntimeError):
    """Raised when Ray cannot be reached or gives up; says how to continue."""


@dataclass(frozen=True)
class ReadReport:
    """What precedes the pieces of an input, or the error of one that cannot be read."""

    number: int
    graphs: int = 0
    width: int = 0
    warnings: tuple[str, ...] = ()
    error: str | None = None
    visible: bool = True  # whether the reader's machine has the file


def pack(item: object) -> Row:
    """Return a row with a read task, a report or a piece."""
    return {"item": pickle.dumps(item, protocol=pickle.HIGHEST_PROTOCOL), "software": software()}


def software() -> str:
    """Return what decides about the last bits of a vector: the release and the kernels."""
    kind = f"{kernels.native.core.isa()} kernels" if kernels.available() else "the PyTorch twin"
    return f"artlas {version('artlas')} with {kind}"


def read_pieces(row: Row, work: Work, budget: int) -> Iterator[Row]:
    """Read the input of a task: yield a report, and its pieces unless the report is an error.

    A task is the number of an input, the input, and the first graphs of its saved pieces.
    """
    torch.set_num_threads(1)
    number, entry, saved = pickle.loads(row["item"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GraphCleaningWarning)
        try:
            loaded = load(entry, number, work, budget, saved)
        except (GraphError, ImportError) as error:
            yield pack(ReadReport(number, error=str(error), visible=entry.path.exists()))
            return
    messages = [str(w.message) for w in caught if issubclass(w.category, GraphCleaningWarning)]
    yield pack(ReadReport(number, loaded.graphs, loaded.width, tuple(messages)))
    yield from map(pack, loaded.pieces)


class Worker:
    """A process that holds the work, such as a model, and computes the rows of pieces."""

    def __init__(self, work: Work) -> None:
        torch.set_num_threads(1)
        self.work = work

    def __call__(self, row: Row) -> Row:
        """Compute the rows of a piece; pass on reports, and pieces that are saved already."""
        piece = pickle.loads(row["item"])
        if not isinstance(piece, Piece) or piece.graphs is None:
            return row
        rows = self.work.rows(piece.graphs, piece.name, piece.first)
        return pack(dataclasses.replace(piece, graphs=None, rows=rows))


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

    def complete(self, run: TableRun, report: Callable[[Progress], None]) -> Summary:
        """Compute what no earlier run has saved, write the table, and delete the saved parts."""
        failures: dict[str, str] = {}
        tasks = []
        for number, entry in enumerate(run.inputs):
            if number not in run.state.finished:
                entry = dataclasses.replace(entry, path=entry.path.absolute())
                tasks.append(pack((number, entry, frozenset(run.state.saved[number]))))
        if not tasks:
            return run.complete(report)
        with connected(self.address, self.workers) as ray:
            workers = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
            blocks = min(len(tasks), TASKS_PER_WORKER * workers)
            data = ray.data.from_items(tasks, override_num_blocks=blocks)
            data.context.enable_progress_bars = False
            data.context.target_max_block_size = BLOCK_BYTES
            data.context.execution_options.preserve_order = True
            # Ray Data restarts readers and workers that die and repeats their work, without limit.
            pieces = data.flat_map(
                read_pieces,
                fn_args=(run.work, run.budget),
                num_cpus=0,  # readers take no CPU from workers: whichever is ahead waits
                compute=ray.data.TaskPoolStrategy(size=min(workers, blocks)),
            )
            computed = pieces.map(
                Worker,
                fn_constructor_args=(run.work,),
                num_cpus=1,
                compute=ray.data.ActorPoolStrategy(size=workers),
            )
            loaded = group_by_input(run, computed.iter_rows())
            done = run.write(run.usable_pieces(loaded, failures), report)
        return dataclasses.replace(done, failures=failures)


def group_by_input(run: TableRun, rows: Iterator[Row]) -> Iterator[LoadedInput | Exception]:
    """Yield every input of a run with its pieces, or its error, from what Ray returns in order."""
    results = ((pickle.loads(row["item"]), row["software"]) for row in rows)
    groups = itertools.groupby(results, lambda result: result[0].number)
    for number, entry in enumerate(run.inputs):
        if number in run.state.finished:
            yield run.state.load(number, entry.name)
            continue
        _, group = next(groups, (number, iter(())))
        report, _ = next(group, (None, ""))
        if report is None:
            raise ClusterError(_INCOMPLETE)
        for text in report.warnings:
            warnings.warn(text, GraphCleaningWarning, stacklevel=2)
        if report.error is None:
            yield LoadedInput(report.graphs, report.width, _checked(report, group))
            continue
        error = report.error.replace(str(entry.path.absolute()), str(entry.path))
        if entry.path.exists() and not report.visible:
            error += " It is here, but not on the worker: use storage that all machines share."
        yield GraphError(error)


def _checked(report: ReadReport, group: Iterator[tuple[Piece, str]]) -> Iterator[Piece]:
    """Yield the pieces of one input; warn of other software, and fail if graphs are missing."""
    missing, own = report.graphs, software()
    for piece, made_by in group:
        missing -= piece.count
        if piece.rows is not None and made_by != own:
            warnings.warn(
                f"a worker has {made_by}, this process {own}: their rows agree to rounding, "
                "not to the bit.",
                RuntimeWarning,
                stacklevel=2,
            )
        yield piece
    if missing:
        raise ClusterError(_INCOMPLETE)


# --- Ray itself -----------------------------------------------------------------------------------


def import_ray() -> Any:
    """Import Ray with Ray Data, or raise an error that says how to install it."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError("Clusters need Ray: pip install 'artlas[cluster]'") from error
    return ray


@contextlib.contextmanager
def connected(address: str | None, workers: int) -> Iterator[Any]:
    """Provide Ray: the caller's if it is initialised, else one that is shut down at the end."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    ray = import_ray()
    started = not ray.is_initialized()
    if started:
        _start(ray, address or os.environ.get("RAY_ADDRESS") or "local", workers)
    # Ray Data's messages go to its log files only.
    handlers = logging.getLogger("ray.data").handlers
    levels = {h: h.level for h in handlers if isinstance(h, logging.StreamHandler)}
    for handler in levels:
        handler.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"ray\.data\.")
            yield ray
    except Exception as error:
        if not type(error).__module__.startswith("ray."):
            raise
        again = "Finished work is saved: run the same command again to resume."
        raise ClusterError(f"Ray gave up: {_one_line(error)}. {again}") from error
    finally:
        for handler, level in levels.items():
            handler.setLevel(level)
        if started:
            ray.shutdown()


def _start(ray: Any, address: str, workers: int) -> None:
    """Start Ray on this machine, or connect to an address."""
    cpus = workers if address == "local" and workers else None
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    host, _, port = address.removeprefix("ray://").rpartition(":")
    stderr = os.dup(2)
    try:
        if host and port.isdigit():  # where nothing listens, Ray 2.60 would retry for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        with open(os.devnull, "wb") as nothing:  # Ray's core reports there that it is quiet
            os.dup2(nothing.fileno(), 2)
        ray.init(address, num_cpus=cpus, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        tried = "started here" if address == "local" else f"reached at {address!r}"
        fix = "pass the address that ray start printed, or none to use this machine alone"
        wrong = f"Ray cannot be {tried}: {_one_line(error)}"
        raise ClusterError(f"{wrong}. To fix this, {fix}.") from error
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _one_line(error: BaseException) -> str:
    """Return the cause from Ray's long text: the end of a worker's traceback, or line one."""
    text, chained, _ = str(error).partition("\n\nThe above exception was the direct cause")
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1 if chained else 0].rstrip(".")
