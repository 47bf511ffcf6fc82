"""From a dataset's name to its graphs: packed form, else raw files, else an archive or a download.

Nothing is downloaded but by :func:`prepare`, and nothing is believed before its counts were
compared with the paper's.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import artlas
from artlas import datasets
from artlas.errors import ReadError
from artlas.graphs.collection import Graphs
from artlas_paper.datasets import packed, raw
from artlas_paper.datasets.features import paper_features, project, released_features
from artlas_paper.datasets.packed import Manifest, UnwritableError
from artlas_paper.datasets.raw import Progress, data_root
from artlas_paper.datasets.registry import DatasetError, Entry, check, counts, find, missing

Features = Literal["paper", "released", "raw"]
State = Literal["packed", "raw files", "archive", "absent", "built in"]


@dataclass(frozen=True)
class Prepared:
    """What :func:`prepare` did: in words, the sentence of the count check, and the packed file."""

    name: str
    done: str
    check: str
    path: Path | None = None
    manifest: Manifest | None = None


def state(entry: Entry, root: Path) -> State:
    """How far a dataset is, judged without reading it."""
    if entry.role == "built-in":
        return "built in"
    if packed.find(root, entry.base or entry.name) is not None:
        return "packed"
    if not raw.absent_files(entry, root):
        return "raw files"
    return "archive" if raw.find_archive(entry, root) else "absent"


def prepare(
    name: str,
    root: str | os.PathLike[str] | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Prepared:
    """Bring a dataset into its packed form, once: a second call verifies it and does nothing."""
    entry, top = find(name), data_root(root)
    if entry.role == "built-in":
        return Prepared(entry.name, "built in, nothing to prepare", check(entry, _built_in(entry)))
    tell = progress or (lambda what, done, total: None)
    if entry.base is None:
        return _ensure(entry, top, download, True, tell)
    base = _ensure(find(entry.base), top, download, True, tell)
    sentence = check(entry, _without_column_0(_read_packed(find(entry.base), top)))
    return dataclasses.replace(
        base, name=entry.name, done=f"made of {entry.base} at load; {base.done}", check=sentence
    )


def load(
    name: str,
    root: str | os.PathLike[str] | None = None,
    features: Features = "paper",
    verbose: bool = True,
) -> Graphs:
    """The graphs of a dataset that is packed or whose raw files are in place; see ``prepare``.

    ``features`` is "paper" (graph level: padded to 56, constant 1 where there are none; node
    level: projected to 256), "released" (graph level: as they are, degree / maximum degree where
    there are none; node level: projected to 256) or "raw". Built-in graphs come as they are.
    The counts are compared with the paper's, and ``verbose`` says so in one line on stderr.
    """
    if features not in get_args(Features):
        raise DatasetError(f"features is one of {', '.join(get_args(Features))}; got {features!r}.")
    entry, top = find(name), data_root(root)
    if entry.role == "built-in":
        return _built_in(entry)
    graphs = _graphs(find(entry.base) if entry.base else entry, top)
    graphs = _without_column_0(graphs) if entry.base else graphs
    told = check(entry, graphs)
    if verbose:
        print(f"artlas.datasets.load: {entry.name}: {told}", file=sys.stderr)
    if features == "raw":
        return graphs
    if entry.level == "graph":
        return paper_features(graphs) if features == "paper" else released_features(graphs)
    if graphs.x is None:
        return graphs
    return dataclasses.replace(graphs, x=project(graphs.x))


def _built_in(entry: Entry) -> Graphs:
    makers: dict[str, Callable[[], datasets.Dataset]] = {
        "digits": datasets.digits_as_graphs,
        "families": datasets.synthetic_families,
        "networks": datasets.real_networks,
    }
    return makers[entry.name]().graphs


def _without_column_0(graphs: Graphs) -> Graphs:
    assert graphs.x is not None
    return dataclasses.replace(graphs, x=graphs.x[:, 1:].contiguous())


def _graphs(entry: Entry, top: Path) -> Graphs:
    try:
        _ensure(entry, top, False, False, lambda what, done, total: None)
    except UnwritableError:
        if raw.absent_files(entry, top):
            raise
        return raw.read(entry, top).graphs
    return _read_packed(entry, top)


def _read_packed(entry: Entry, top: Path) -> Graphs:
    try:
        return packed.read(top, entry.name)
    except ReadError as error:
        raise DatasetError(f"{error} {raw.command(entry, top)} packs it anew.") from error


def _usable(entry: Entry, top: Path, verify: bool) -> tuple[Manifest | None, str]:
    """The manifest of a packed form that is still that of its raw files, or why there is none."""
    manifest = packed.find(top, entry.name, verify)
    if manifest is None:
        broken = packed.npz_path(top, entry.name).exists()
        return None, "the packed file was not whole" if broken else ""
    if raw.absent_files(entry, top):  # nothing to compare with, or to pack anew
        return manifest, ""
    for name in (*entry.files, *entry.optional):
        path, known = top / entry.folder / name, manifest["raw"].get(name)
        if path.is_file() and (known is None or not packed.same(path, known)):
            return None, f"{name} is new" if known is None else f"{name} has changed"
    return manifest, ""


def _ensure(entry: Entry, top: Path, download: bool, verify: bool, tell: Progress) -> Prepared:
    path = packed.npz_path(top, entry.name)
    manifest, why = _usable(entry, top, verify)
    if manifest is None or (verify and _leftovers(entry, top)):
        try:
            with packed.locked(top, entry.name):
                for part in _leftovers(entry, top):
                    part.unlink(missing_ok=True)
                # Anew, because another process may have packed it while this one waited.
                manifest, why = _usable(entry, top, verify)
                if manifest is None:
                    done = _bring(entry, top, download, tell)
                    done = f"{done} anew: {why}" if why else done
                    manifest = _pack(entry, top, tell)
                    return Prepared(entry.name, done, manifest["check"], path, manifest)
        except OSError as error:
            raise DatasetError(
                f"{entry.name} cannot be prepared in {top}: {error}. "
                "To fix this, see to the space and the permissions there, or pass another --root."
            ) from error
    return Prepared(entry.name, "packed already", manifest["check"], path, manifest)


def _leftovers(entry: Entry, top: Path) -> list[Path]:
    folder = top / entry.folder
    found = [*folder.glob(".*.part"), *folder.parent.glob(".*.part")]
    return packed.leftovers(top, entry.name) + found


def _bring(entry: Entry, top: Path, download: bool, tell: Progress) -> str:
    """See to it that the raw files are in place, and say from where in words."""
    if not raw.absent_files(entry, top):
        return "packed the raw files"
    if archive := raw.find_archive(entry, top):
        tell(f"unpacking {archive.name}", 0, None)
        raw.unpack(entry, top, archive)
        if not raw.absent_files(entry, top):
            return f"unpacked {archive.name} and packed it"
    if download:
        from artlas_paper.datasets.download import download_files

        try:
            download_files(entry, top, tell)
        except ImportError as error:
            raise DatasetError(f"{_absence(entry, top)} {error}") from error
        if not raw.absent_files(entry, top):
            return "downloaded and packed it"
    raise DatasetError(_absence(entry, top))


def _absence(entry: Entry, top: Path) -> str:
    names, folder = raw.absent_files(entry, top), top / entry.folder
    zipped = f", or {entry.archive} into {folder.parent}" if entry.archive else ""
    return (
        f"{entry.name} is not here: {', '.join(names)} not in {folder}. "
        f"To fix this, run: {raw.command(entry, top)} - or put the files there by hand{zipped}."
    )


def _pack(entry: Entry, top: Path, tell: Progress) -> Manifest:
    """Read the raw files, compare the counts, and write the packed form; hold the lock."""
    tell(f"reading {entry.name}", 0, None)
    folder = top / entry.folder
    here = [name for name in (*entry.files, *entry.optional) if (folder / name).is_file()]
    # Before they are read: one that changes meanwhile is then seen to have changed.
    records = {name: packed.record(folder / name) for name in here}
    reading = raw.read(entry, top)
    manifest: Manifest = {
        "format": packed.FORMAT,
        "name": entry.name,
        "artlas": artlas.__version__,
        "size": 0,
        "sha256": "",
        "raw": records,
        "counts": counts(reading.graphs),
        "check": check(entry, reading.graphs),
        "cleaning": dict(reading.changes),
        "missing": missing(entry, reading.graphs),
        "guesses": reading.guesses,
    }
    tell(f"packing {entry.name}", 0, None)
    return packed.write(top, entry.name, reading.graphs, manifest)
