"""Files of graphs to one table of vectors, in parts: a run that is broken off goes on."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from artlas import checkpoint, vectors
from artlas.energy import coverage
from artlas.entrance import GraphError
from artlas.formats.api import read
from artlas.formats.files import refuse
from artlas.graphs import Graphs
from artlas.model import ART, BUDGET
from artlas.represent import check_representation, feature_names
from artlas.vectors import Vectors

MANIFEST, BUDGET_NOTE = "manifest.json", "budget.json"


@dataclass(frozen=True)
class Input:
    """A file, or a folder in TU layout, what it is called in the table, and its format if given."""

    path: Path
    name: str
    format: str | None = None

    def stamp(self) -> list[object]:
        """What changes when the input does."""
        files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        found = [file.stat() for file in files if file.exists()]
        return [self.name, self.format, [[stat.st_size, stat.st_mtime_ns] for stat in found]]


@dataclass(frozen=True)
class Progress:
    """How far a run is: graphs done, and of which input, the i-th of so many."""

    graphs: int
    name: str
    number: int
    inputs: int


@dataclass
class Outcome:
    """What a run has done: rows written, and inputs that could not be used, with the reason."""

    graphs: int = 0
    failures: dict[str, str] = dataclasses.field(default_factory=dict)


def describe(model: ART, graphs: Graphs, representation: str, name: str, first: int = 0) -> Vectors:
    """The rows of some graphs of an input, numbered from ``first``."""
    z, energies, residuals = model.describe(graphs, representation)
    width = 0 if graphs.x is None else graphs.x.shape[1]
    facts = {
        "representation": representation,
        "model": dataclasses.asdict(model.config),
        "weights": checkpoint.weights_hash(model),
        "names": feature_names(model.config, representation, width),
    }
    labels = np.full(len(graphs), vectors.UNLABELLED)
    y = graphs.y
    if y is not None and y.shape == labels.shape and not y.is_floating_point():
        labels = y.numpy().astype(np.int64)
    return Vectors(
        source=np.full(len(graphs), name),
        index=np.arange(first, first + len(graphs)),
        label=labels,
        coverage=coverage(energies, model.config.coverage_temperature).cpu().numpy(),
        residual=residuals.amax(1).cpu().numpy(),
        energies=energies.cpu().numpy(),
        z=z.cpu().numpy(),
        facts=facts,
    )


def check_width(entry: Input, own: int, text: str, width: tuple[str, int] | None) -> None:
    """Refuse an input whose nodes have other features than those of the first, (name, width)."""
    if width is not None and width[1] != own:
        wrong = f"its nodes have {own} features, those of {width[0]} have {width[1]}"
        refuse(entry.path, wrong, text, "embed it into a file of its own")


class Run:
    """The parts of a table that is being made, beside where it will be."""

    def __init__(self, out: Path, inputs: Sequence[Input], model: ART, representation: str) -> None:
        check_representation(representation)
        vectors.ending(out)
        self.out, self.inputs, self.model, self.representation = out, inputs, model, representation
        self.folder = out.with_name(f".{out.name}.parts")
        settings = {
            "representation": representation,
            "weights": checkpoint.weights_hash(model),
            "model": dataclasses.asdict(model.config),
            "inputs": [entry.stamp() for entry in inputs],
        }
        wanted = json.loads(json.dumps(settings))
        manifest = self.folder / MANIFEST
        if manifest.exists():
            if checkpoint.read_json(manifest) != wanted:
                fix = f"delete {self.folder}, or write to another file"
                refuse(manifest, "another run into this file was broken off", "its parts", fix)
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            checkpoint.write_json(manifest, wanted)

    def work(self, report: Callable[[Progress], None], budget: int = BUDGET) -> Outcome:
        """Embed what is not embedded yet, join the parts into the table, and delete them."""
        self.cut_by(budget)
        outcome = Outcome()
        width: tuple[str, int] | None = None
        for number, entry in enumerate(self.inputs):
            kept = self.finished(number)
            if kept is not None:
                outcome.graphs += kept["graphs"]
                width = width or (entry.name, kept["width"])
                continue
            try:
                graphs = read(entry.path, entry.format, verbose=False)
                own = graphs.num_features
                check_width(entry, own, repr(graphs), width)
            except (GraphError, ImportError) as error:
                outcome.failures[entry.name] = str(error)
                continue
            width = width or (entry.name, own)
            for part, first in self._parts(graphs, budget):
                path = self.part(number, first)
                if not path.exists():
                    made = describe(self.model, part, self.representation, entry.name, first)
                    vectors.write(path, [made])
                outcome.graphs += len(part)
                report(Progress(outcome.graphs, entry.name, number, len(self.inputs)))
            self.finish(number, len(graphs), own)
        return self.join(outcome)

    def cut_by(self, budget: int) -> None:
        """Drop the parts of unfinished inputs that another budget has cut at other graphs."""
        note = self.folder / BUDGET_NOTE
        if note.exists() and checkpoint.read_json(note)["budget"] != budget:
            for number, parts in self.begun().items():
                if self.finished(number) is None:
                    for first in parts:
                        self.part(number, first).unlink()
        checkpoint.write_json(note, {"budget": budget})

    def finished(self, number: int) -> dict[str, Any] | None:
        """How many graphs and features an input has whose parts are all there; else None."""
        done = self.folder / f"{number:06d}.json"
        return checkpoint.read_json(done) if done.exists() else None

    def finish(self, number: int, graphs: int, width: int) -> None:
        """Note that all parts of an input are there."""
        content = {"graphs": graphs, "width": width}
        checkpoint.write_json(self.folder / f"{number:06d}.json", content)

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

    def join(self, outcome: Outcome) -> Outcome:
        """Write the table from the parts of all finished inputs, and delete them."""
        if outcome.graphs:
            vectors.write(self.out, self._kept())
        shutil.rmtree(self.folder)
        return outcome

    def _parts(self, graphs: Graphs, budget: int) -> Iterator[tuple[Graphs, int]]:
        first = 0
        for part in self.model.cut(graphs, budget):
            yield part, first
            first += len(part)

    def _kept(self) -> Iterator[Vectors]:
        finished = {path.stem for path in self.folder.glob("*.json")}
        found = sorted(self.folder.glob("*.npz"))
        return (vectors.read(path) for path in found if path.stem.split("-")[0] in finished)
