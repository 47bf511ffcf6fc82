"""What a run has made so far, in a folder of its own: parts, notes, and what they belong to."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

from artlas.errors import ReadError, raise_read_error
from artlas.files import stored
from artlas.files.untrusted import read_npz

MANIFEST, BUDGET_NOTE = "manifest.json", "budget.json"


class Parts:
    """The rows of inputs in parts NUMBER-FIRST.npz; a note NUMBER.json tells that all are there.

    They outlive the process, not the machine: what is found damaged is dropped.
    """

    def __init__(self, folder: Path, wanted: dict[str, Any]) -> None:
        """Go on with the parts in a folder, which must be of the run ``wanted``, or begin."""
        self.folder = folder
        manifest = self.folder / MANIFEST
        if manifest.exists() and manifest.stat().st_size:
            if stored.read_json(manifest) != wanted:
                fix = f"delete {self.folder}, or write to another file"
                raise_read_error(
                    manifest, "another run into this file was broken off", "its parts", fix
                )
            self._drop_damaged()
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            stored.write_json(manifest, wanted, durable=False)

    def cut_by(self, budget: int) -> None:
        """Drop the parts of unfinished inputs that another budget has cut at other graphs."""
        note, content = self.folder / BUDGET_NOTE, {"budget": budget}
        if not (note.exists() and note.stat().st_size and stored.read_json(note) == content):
            for number, parts in self.begun().items():
                if self.finished(number) is None:
                    for first in parts:
                        self.part(number, first).unlink()
        stored.write_json(note, content, durable=False)

    def finished(self, number: int) -> dict[str, Any] | None:
        """How many graphs and features an input has whose parts are all there; else None."""
        done = self._note(number)
        return stored.read_json(done) if done.exists() else None

    def finish(self, number: int, graphs: int, width: int) -> None:
        """Note that all parts of an input are there."""
        content = {"graphs": graphs, "width": width}
        stored.write_json(self._note(number), content, durable=False)

    def part(self, number: int, first: int) -> Path:
        """Where the rows of an input's graphs from ``first`` on are kept."""
        return self.folder / f"{number:06d}-{first:012d}.npz"

    def begun(self) -> dict[int, set[int]]:
        """Of every input, the first graphs of the parts that are there."""
        parts: dict[int, set[int]] = {}
        for path in self.folder.glob("*.npz"):
            number, first = map(int, path.stem.split("-"))
            parts.setdefault(number, set()).add(first)
        return parts

    def _note(self, number: int) -> Path:
        return self.folder / f"{number:06d}.json"

    def _drop_damaged(self) -> None:
        """Drop what a machine that died has left without its end: parts and notes may be so."""
        rows = {
            number: sum(self._length(self.part(number, first)) for first in parts)
            for number, parts in self.begun().items()
        }
        for note in self.folder.glob("[0-9]*.json"):
            with contextlib.suppress(ReadError):
                if stored.read_json(note)["graphs"] == rows.get(int(note.stem), 0):
                    continue
            note.unlink()

    def _length(self, part: Path) -> int:
        """How many rows a part has; one that cannot be read is dropped."""
        try:
            return len(read_npz(part, only=("index",))["index"])
        except ReadError:
            part.unlink()
            return 0
