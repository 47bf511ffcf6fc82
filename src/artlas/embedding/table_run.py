"""Turn files of graphs into one table: read, cut into pieces, compute their rows, save, write.

The next input is read, rows are computed and others written at the same time. Pieces and the
order of rows depend on the inputs and the budget alone, and the bits of a row on its graph alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from artlas.embedding import table
from artlas.embedding.pieces import Input, LoadedInput, Piece, Work, load
from artlas.embedding.pipeline import map_in_order
from artlas.embedding.run_state import RunState
from artlas.embedding.table import Rows
from artlas.errors import GraphError, raise_read_error
from artlas.graphs.collection import Graphs

BUDGET = 1 << 25  # bytes of working memory of a batch; every thread has a batch
READ_AHEAD_BYTES = 1 << 26  # a larger input is read only when all before it are embedded
ROUNDING = 1e-12  # shares that differ by less are the same: sums of them are rounded
READ_AHEAD = 2  # inputs read while another is cut into pieces


@dataclass(frozen=True)
class Progress:
    """How far a run is: rows so far, and the input of the last ones with its number.

    share: of the work done, by bytes of the inputs; resumed: share that an earlier run had done.
    """

    graphs: int
    name: str
    number: int
    inputs: int
    share: float = 0.0
    resumed: float = 0.0

    def seconds_left(self, elapsed: float) -> float | None:
        """Estimate the seconds left after ``elapsed`` ones; None before the first new row."""
        new = self.share - self.resumed
        return elapsed * (1 - self.share) / new if new > ROUNDING else None


@dataclass(frozen=True)
class Summary:
    """What a run did: the rows it wrote, and why inputs were left out, by name.

    totals: sums over all rows of what the work counts.
    """

    graphs: int = 0
    failures: dict[str, str] = dataclasses.field(default_factory=dict)
    totals: tuple[float, ...] = ()


class TableRun:
    """One table to be written, from its inputs and the work that makes rows of graphs.

    Where an earlier run with the same settings was interrupted, this one resumes: rows are saved
    as parts in a folder beside the table, from time to time and when the run is interrupted.
    """

    def __init__(
        self, out: Path, inputs: Sequence[Input], work: Work, budget: int = BUDGET
    ) -> None:
        table.check_format(out)
        self.out, self.inputs, self.work, self.budget = out, inputs, work, budget
        self.sizes = [entry.size() for entry in inputs]
        self.planned = 0  # nodes times bases in pieces so far; kernels.done() counts those aligned
        settings = {**work.settings(), "inputs": [entry.fingerprint() for entry in inputs]}
        self.state = RunState(out.with_name(f".{out.name}.parts"), settings, budget)

    def complete(self, report: Callable[[Progress], None]) -> Summary:
        """Compute what no earlier run has saved, write the table, and delete the saved parts."""
        threads, failures = torch.get_num_threads(), dict[str, str]()
        # Each batch has one thread: threads that share a batch wait for each other at every step.
        pool = ThreadPoolExecutor(threads, "artlas-embed", torch.set_num_threads, (1,))
        reader = ThreadPoolExecutor(1, "artlas-read")
        loaded = map_in_order(
            self._load,
            range(len(self.inputs)),
            reader,
            READ_AHEAD,
            runs_alone=lambda number: self.sizes[number] > READ_AHEAD_BYTES,
        )
        computed = map_in_order(
            self._rows_of_batch,
            self._batches(self.usable_pieces(loaded, failures)),
            pool,
            threads + 2,
            runs_alone=lambda batch: batch[0].oversized,
        )
        with contextlib.closing(loaded), contextlib.closing(computed):
            done = self.write(itertools.chain.from_iterable(computed), report)
        return dataclasses.replace(done, failures=failures)

    def usable_pieces(
        self, loaded: Iterable[LoadedInput | Exception], failures: dict[str, str]
    ) -> Iterator[Piece]:
        """Yield the pieces of all inputs that can be used; add the others to ``failures``.

        loaded: for every input what was read, or the error. An input is refused if its nodes have
        another number of features than the work needs, or else than those of the first usable one.
        """
        reference = self.work.reference
        for entry, content in zip(self.inputs, loaded, strict=True):
            try:
                if isinstance(content, Exception):
                    raise content
                reference = reference or (entry.name, content.width)
                if content.width != reference[1]:
                    those = f"those of {reference[0]} have {reference[1]}"
                    wrong = f"its nodes have {content.width} features, {those}"
                    raise_read_error(
                        entry.path, wrong, f"{content.graphs:,} graphs", self.work.remedy
                    )
            except (GraphError, ImportError) as error:
                failures[entry.name] = str(error)
                continue
            yield from content.pieces

    def write(self, pieces: Iterable[Piece], report: Callable[[Progress], None]) -> Summary:
        """Write the table from pieces with rows, in order.

        Rows are saved as parts if the run is interrupted, and the parts deleted if it is not.
        """
        graphs, totals = 0, list[tuple[float, ...]]()
        rows = self._record(pieces, totals, report)
        try:
            if (first := next(rows, None)) is not None:
                rows = itertools.chain([first], rows)
                graphs = table.write(self.out, rows, unfinished=self.state.folder / "table")
        except BaseException:
            with contextlib.suppress(OSError):
                self.state.save_pending()
            raise
        shutil.rmtree(self.state.folder)
        return Summary(graphs, totals=tuple(map(math.fsum, zip(*totals, strict=True))))

    def _load(self, number: int) -> LoadedInput | Exception:
        """Read an input and cut it into pieces, unless all of them are saved."""
        entry, state = self.inputs[number], self.state
        if number in state.finished:
            return state.load(number, entry.name)
        try:
            return load(entry, number, self.work, self.budget, state.saved[number].keys())
        except (GraphError, ImportError) as error:
            return error

    def _batches(self, pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
        """Group consecutive small pieces within the budget; a saved piece is a batch by itself."""
        batch, nodes = list[Piece](), 0
        for piece in pieces:
            room = self.work.nodes_within(self.budget, piece.width)
            size = room if piece.graphs is None else piece.graphs.num_nodes
            if batch and nodes + size > room:
                yield batch
                batch, nodes = [], 0
            batch.append(piece)
            nodes += size
            if piece.graphs is not None:
                self.planned += size * self.work.bases
            if nodes >= room:
                yield batch
                batch, nodes = [], 0
        if batch:
            yield batch

    def _rows_of_batch(self, pieces: list[Piece]) -> list[Piece]:
        """Compute rows in one call; return the pieces with them, saved ones as they are."""
        graphs = [piece.graphs for piece in pieces if piece.graphs is not None]
        if not graphs:
            return pieces
        joined = graphs[0]  # one that is alone is not copied: what was derived of it is used again
        if len(graphs) > 1:
            joined = Graphs.concat(part.with_labels(None) for part in graphs)
        rows = self.work.rows(joined, pieces[0].name, pieces[0].first)
        result, start = [], 0
        for piece, part in zip(pieces, graphs, strict=True):
            own = rows.slice(start, start + piece.count).replace(
                source=np.full(piece.count, piece.name),
                index=np.arange(piece.first, piece.first + piece.count),
                label=self.work.labels(part),
            )
            result.append(dataclasses.replace(piece, graphs=None, rows=own))
            start += piece.count
        return result

    def _record(
        self,
        pieces: Iterable[Piece],
        totals: list[tuple[float, ...]],
        report: Callable[[Progress], None],
    ) -> Iterator[Rows]:
        """Yield the rows of pieces in order; have them saved and counted, and report progress."""
        starts, total = [0, *itertools.accumulate(self.sizes)], max(1, sum(self.sizes))
        graphs, resumed = 0, 0.0
        for piece in pieces:
            rows = piece.rows
            if rows is None:
                rows = table.read_rows(self.state.part(piece.number, piece.first))
            else:
                self.state.add(piece)
            size, end = self.sizes[piece.number], piece.first + piece.count
            graphs += piece.count
            resumed += piece.saved * piece.count / piece.total * size / total
            share = (starts[piece.number] + end / piece.total * size) / total
            totals.append(self.work.count(rows))
            report(Progress(graphs, piece.name, piece.number, len(self.inputs), share, resumed))
            yield rows
