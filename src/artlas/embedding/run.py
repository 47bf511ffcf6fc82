"""Embed files of graphs into one table: read, cut into pieces, embed, save, write.

The next input is read, pieces are embedded and rows are written at the same time. Pieces and the
order of rows depend on the inputs and the budget alone, and the bits of a row on its graph alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from artlas.embedding import table
from artlas.embedding.pieces import Input, LoadedInput, Piece, embed_piece, graph_labels, load
from artlas.embedding.pipeline import map_in_order
from artlas.embedding.run_state import RunState
from artlas.embedding.table import Vectors
from artlas.errors import GraphError, raise_read_error
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.method.batching import nodes_within_budget
from artlas.method.model import ART
from artlas.method.representations import check_representation

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
    """What a run did: the rows it wrote, and why inputs were left out, by name."""

    graphs: int = 0
    failures: dict[str, str] = dataclasses.field(default_factory=dict)


class Run:
    """One table to be written, from its inputs, a model and a representation.

    Where an earlier run with the same settings was interrupted, this one resumes: rows are saved
    as parts in a folder beside the table, from time to time and when the run is interrupted.
    """

    def __init__(
        self,
        out: Path,
        inputs: Sequence[Input],
        model: ART,
        representation: str,
        budget: int = BUDGET,
    ) -> None:
        check_representation(representation)
        table.check_format(out)
        self.out, self.inputs, self.model = out, inputs, model
        self.representation, self.budget = representation, budget
        self.sizes = [entry.size() for entry in inputs]
        self.planned = 0  # nodes times bases in pieces so far; kernels.done() counts those aligned
        settings = {
            "representation": representation,
            "weights": checkpoint.weights_hash(model),
            "model": dataclasses.asdict(model.config),
            "inputs": [entry.fingerprint() for entry in inputs],
        }
        self.state = RunState(out.with_name(f".{out.name}.parts"), settings, budget)

    def embed(self, report: Callable[[Progress], None]) -> Summary:
        """Embed what no earlier run has saved, write the table, and delete the saved parts."""
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
        embedded = map_in_order(
            self._embed_batch,
            self._batches(self.usable_pieces(loaded, failures)),
            pool,
            threads + 2,
            runs_alone=lambda batch: batch[0].oversized,
        )
        with contextlib.closing(loaded), contextlib.closing(embedded):
            graphs = self.write(itertools.chain.from_iterable(embedded), report)
        return Summary(graphs, failures)

    def usable_pieces(
        self, loaded: Iterable[LoadedInput | Exception], failures: dict[str, str]
    ) -> Iterator[Piece]:
        """Yield the pieces of all inputs that can be used; add the others to ``failures``.

        loaded: for every input what was read, or the error. An input is refused if its nodes have
        another number of features than those of the first usable one.
        """
        reference: tuple[str, int] | None = None
        for entry, content in zip(self.inputs, loaded, strict=True):
            try:
                if isinstance(content, Exception):
                    raise content
                reference = reference or (entry.name, content.width)
                if content.width != reference[1]:
                    those = f"those of {reference[0]} have {reference[1]}"
                    wrong = f"its nodes have {content.width} features, {those}"
                    got, fix = f"{content.graphs:,} graphs", "embed it into another file"
                    raise_read_error(entry.path, wrong, got, fix)
            except (GraphError, ImportError) as error:
                failures[entry.name] = str(error)
                continue
            yield from content.pieces

    def write(self, pieces: Iterable[Piece], report: Callable[[Progress], None]) -> int:
        """Write the table from embedded pieces in order, and return the number of rows.

        Rows are saved as parts if the run is interrupted, and the parts deleted if it is not.
        """
        graphs, rows = 0, self._record(pieces, report)
        try:
            if (first := next(rows, None)) is not None:
                rows = itertools.chain([first], rows)
                graphs = table.write(self.out, rows, unfinished=self.state.folder / "table")
        except BaseException:
            with contextlib.suppress(OSError):
                self.state.save_pending()
            raise
        shutil.rmtree(self.state.folder)
        return graphs

    def _load(self, number: int) -> LoadedInput | Exception:
        """Read an input and cut it into pieces, unless all of them are saved."""
        entry, state = self.inputs[number], self.state
        if number in state.finished:
            return state.load(number, entry.name)
        try:
            return load(entry, number, self.model, self.budget, state.saved[number].keys())
        except (GraphError, ImportError) as error:
            return error

    def _batches(self, pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
        """Group consecutive small pieces within the budget; a saved piece is a batch by itself."""
        batch, nodes = list[Piece](), 0
        for piece in pieces:
            room = nodes_within_budget(self.model.config, piece.width, self.budget)
            size = room if piece.graphs is None else piece.graphs.num_nodes
            if batch and nodes + size > room:
                yield batch
                batch, nodes = [], 0
            batch.append(piece)
            nodes += size
            if piece.graphs is not None:
                self.planned += size * self.model.config.bases
            if nodes >= room:
                yield batch
                batch, nodes = [], 0
        if batch:
            yield batch

    def _embed_batch(self, pieces: list[Piece]) -> list[Piece]:
        """Embed pieces in one call; return them with rows in place of graphs, saved ones as is."""
        graphs = [piece.graphs for piece in pieces if piece.graphs is not None]
        if not graphs:
            return pieces
        joined = graphs[0]  # one that is alone is not copied: what was derived of it is used again
        if len(graphs) > 1:
            joined = Graphs.concat(part.with_labels(None) for part in graphs)
        rows = embed_piece(self.model, joined, self.representation, pieces[0].name, pieces[0].first)
        result, start = [], 0
        for piece, part in zip(pieces, graphs, strict=True):
            own = dataclasses.replace(
                rows.slice(start, start + piece.count),
                source=np.full(piece.count, piece.name),
                index=np.arange(piece.first, piece.first + piece.count),
                label=graph_labels(part),
            )
            result.append(dataclasses.replace(piece, graphs=None, rows=own))
            start += piece.count
        return result

    def _record(
        self, pieces: Iterable[Piece], report: Callable[[Progress], None]
    ) -> Iterator[Vectors]:
        """Yield the rows of pieces in order; have them saved, and report progress."""
        starts, total = [0, *itertools.accumulate(self.sizes)], max(1, sum(self.sizes))
        graphs, resumed = 0, 0.0
        for piece in pieces:
            rows = piece.rows
            if rows is None:
                rows = table.read(self.state.part(piece.number, piece.first))
            else:
                self.state.add(piece)
            size, end = self.sizes[piece.number], piece.first + piece.count
            graphs += piece.count
            resumed += piece.saved * piece.count / piece.total * size / total
            share = (starts[piece.number] + end / piece.total * size) / total
            report(Progress(graphs, piece.name, piece.number, len(self.inputs), share, resumed))
            yield rows
