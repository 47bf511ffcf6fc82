"""The folder in which a run saves finished rows, so that a later run can resume."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from artlas.embedding import table
from artlas.embedding.pieces import LoadedInput, Piece
from artlas.errors import ReadError, raise_read_error
from artlas.files import stored
from artlas.files.untrusted import read_npz

MANIFEST, BUDGET_NOTE = "manifest.json", "budget.json"
SAVE_BYTES, SAVE_SECONDS = 1 << 27, 10.0  # rows that a killed run may lose


class RunState:
    """Parts NUMBER-FIRST.npz with the rows of pieces, and a note NUMBER.json per finished input.

    Parts survive the end of the process. They are not synchronised to disk, so a crash of the
    machine may damage them: damaged parts are dropped when the run resumes.

    finished: the note of every input whose parts are all saved, its numbers of graphs and features
    by number of the input; saved: the number of rows of every part, by input and first graph.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], budget: int) -> None:
        """Resume from a folder, which must be of a run with the same settings, or create it.

        Another budget cuts inputs into other pieces, so it drops the parts of unfinished inputs.
        """
        self.folder = folder
        self.finished: dict[int, dict[str, int]] = {}
        self.saved: dict[int, dict[int, int]] = defaultdict(dict)
        self._pending, self._bytes, self._last = deque[Piece](), 0, time.monotonic()
        manifest, settings = folder / MANIFEST, json.loads(json.dumps(settings))
        if manifest.exists() and manifest.stat().st_size:
            if stored.read_json(manifest) != settings:
                wrong = "an interrupted run into this file had other inputs or settings"
                fix = f"delete {folder}, or write to another file"
                raise_read_error(manifest, wrong, "its saved parts", fix)
            self._scan({"budget": budget})
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            stored.write_json(manifest, settings, durable=False)
        stored.write_json(folder / BUDGET_NOTE, {"budget": budget}, durable=False)

    def add(self, piece: Piece) -> None:
        """Save the rows of a piece, some time later together with others."""
        assert piece.rows is not None
        self._pending.append(piece)
        self._bytes += piece.rows.nbytes
        if self._bytes >= SAVE_BYTES or time.monotonic() - self._last >= SAVE_SECONDS:
            self.save_pending()

    def save_pending(self) -> None:
        """Save the rows of all pieces added so far, and mark inputs that are now finished."""
        while self._pending:
            piece = self._pending[0]
            assert piece.rows is not None
            saved = self.saved[piece.number]
            table.write(self.part(piece.number, piece.first), [piece.rows], durable=False)
            saved[piece.first] = piece.count
            if sum(saved.values()) == piece.total:
                self.finished[piece.number] = {"graphs": piece.total, "width": piece.width}
                note = self.folder / f"{piece.number:06d}.json"
                stored.write_json(note, self.finished[piece.number], durable=False)
            self._pending.popleft()
        self._bytes, self._last = 0, time.monotonic()

    def load(self, number: int, name: str) -> LoadedInput:
        """Return a finished input, all of whose pieces are saved."""
        graphs, width = self.finished[number]["graphs"], self.finished[number]["width"]
        pieces = (
            Piece(number, name, first, count, graphs, width, saved=True)
            for first, count in sorted(self.saved[number].items())
        )
        return LoadedInput(graphs, width, pieces)

    def part(self, number: int, first: int) -> Path:
        """Return the file for the rows of an input from its graph ``first`` on."""
        return self.folder / f"{number:06d}-{first:012d}.npz"

    def _scan(self, budget: dict[str, int]) -> None:
        """Find what is saved, and delete what is damaged or was cut by another budget."""
        for path in self.folder.glob("*-*.npz"):
            number, first = map(int, path.stem.split("-"))
            try:
                self.saved[number][first] = len(read_npz(path, only=("index",))["index"])
            except ReadError:
                path.unlink()
        for path in self.folder.glob("[0-9]*.json"):
            number = int(path.stem)
            with contextlib.suppress(ReadError):
                note = stored.read_json(path)
                if note.get("graphs") == sum(self.saved[number].values()):
                    self.finished[number] = note
                    continue
            path.unlink()
        with contextlib.suppress(ReadError):
            if stored.read_json(self.folder / BUDGET_NOTE) == budget:
                return
        for number in self.saved.keys() - self.finished.keys():
            for first in self.saved.pop(number):
                self.part(number, first).unlink()
