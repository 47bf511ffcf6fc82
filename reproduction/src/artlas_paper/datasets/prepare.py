"""Load a dataset by name: from its packed form, else raw files, else an archive or a download.

Only :func:`prepare` downloads. The counts of every dataset are compared with the paper's before it
is used.
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
from artlas_paper.datasets.download import download_files
from artlas_paper.datasets.features import paper_features, project, released_features
from artlas_paper.datasets.packed import Manifest, UnwritableError
from artlas_paper.datasets.raw import Progress, data_root
from artlas_paper.datasets.registry import DatasetError, Entry, check, counts, find, missing

Features = Literal["paper", "released", "raw"]
State = Literal["packed", "raw files", "archive", "absent", "built in"]


@dataclass(frozen=True)
class Prepared:
    """What :func:`prepare` did, in words; the result of the count check; and the packed file."""

    name: str
    done: str
    check: str
    path: Path | None = None
    manifest: Manifest | None = None


def state(entry: Entry, root: Path) -> State:
    """Return how far a dataset is prepared, without reading it."""
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
    """Pack a dataset, and download it where needed; a second call only verifies the packed file."""
    entry, top = find(name), data_root(root)
    if entry.role == "built-in":
        return Prepared(entry.name, "built in, nothing to prepare", check(entry, _built_in(entry)))
    report = progress or (lambda what, done, total: None)
    if entry.base is None:
        return _ensure_packed(entry, top, download, True, report)
    base = _ensure_packed(find(entry.base), top, download, True, report)
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
    """Load a dataset that is packed or whose raw files are in place; see :func:`prepare`.

    ``features`` is "paper" (graph level: padded to 56, constant 1 where there are none; node
    level: projected to 256), "released" (graph level: as they are, degree / maximum degree where
    there are none; node level: projected to 256) or "raw". Built-in graphs come as they are.
    The counts are compared with the paper's; ``verbose`` prints the result on stderr.
    """
    if features not in get_args(Features):
        raise DatasetError(f"features is one of {', '.join(get_args(Features))}; got {features!r}.")
    entry, top = find(name), data_root(root)
    if entry.role == "built-in":
        return _built_in(entry)
    graphs = _read(find(entry.base) if entry.base else entry, top)
    graphs = _without_column_0(graphs) if entry.base else graphs
    sentence = check(entry, graphs)
    if verbose:
        print(f"artlas.datasets.load: {entry.name}: {sentence}", file=sys.stderr)
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


def _read(entry: Entry, top: Path) -> Graphs:
    try:
        _ensure_packed(entry, top, False, False, lambda what, done, total: None)
    except UnwritableError:
        if raw.absent_files(entry, top):
            raise
        return raw.read(entry, top).graphs
    return _read_packed(entry, top)


def _read_packed(entry: Entry, top: Path) -> Graphs:
    try:
        return packed.read(top, entry.name)
    except ReadError as error:
        raise DatasetError(f"{error} {raw.prepare_command(entry, top)} packs it anew.") from error


def _usable(entry: Entry, top: Path, verify: bool) -> tuple[Manifest | None, str]:
    """Return the manifest if the packed file is whole and up to date, else None and the reason."""
    manifest = packed.find(top, entry.name, verify)
    if manifest is None:
        broken = packed.npz_path(top, entry.name).exists()
        return None, "the packed file was not whole" if broken else ""
    if raw.absent_files(entry, top):  # nothing to compare with, or to pack anew
        return manifest, ""
    for name in (*entry.files, *entry.optional):
        path, known = top / entry.folder / name, manifest["raw"].get(name)
        if path.is_file() and (known is None or not packed.is_unchanged(path, known)):
            return None, f"{name} is new" if known is None else f"{name} has changed"
    return manifest, ""


def _ensure_packed(
    entry: Entry, top: Path, download: bool, verify: bool, report: Progress
) -> Prepared:
    """Pack a dataset unless its packed file is usable; ``verify`` compares checksums, too."""
    path = packed.npz_path(top, entry.name)
    manifest, why = _usable(entry, top, verify)
    if manifest is None or (verify and _leftovers(entry, top)):
        try:
            with packed.locked(top, entry.name):
                for part in _leftovers(entry, top):
                    part.unlink(missing_ok=True)
                # Another process may have packed it while this one waited for the lock.
                manifest, why = _usable(entry, top, verify)
                if manifest is None:
                    done = _provide_raw_files(entry, top, download, report)
                    done = f"{done} anew: {why}" if why else done
                    manifest = _pack(entry, top, report)
                    return Prepared(entry.name, done, manifest["check"], path, manifest)
        except OSError as error:
            raise DatasetError(
                f"{entry.name} cannot be prepared in {top}: {error}. "
                "To fix this, see to the space and the permissions there, or pass another --root."
            ) from error
    return Prepared(entry.name, "packed already", manifest["check"], path, manifest)


def _leftovers(entry: Entry, top: Path) -> list[Path]:
    folder = top / entry.folder
    downloads = [*folder.glob(".*.part"), *folder.parent.glob(".*.part")]
    return packed.leftovers(top, entry.name) + downloads


def _provide_raw_files(entry: Entry, top: Path, download: bool, report: Progress) -> str:
    """Make sure that the raw files are in place, and return in words where they come from."""
    if not raw.absent_files(entry, top):
        return "packed the raw files"
    if archive := raw.find_archive(entry, top):
        report(f"unpacking {archive.name}", 0, None)
        raw.unpack(entry, top, archive)
        if not raw.absent_files(entry, top):
            return f"unpacked {archive.name} and packed it"
    if download:
        try:
            download_files(entry, top, report)
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
        f"To fix this, run: {raw.prepare_command(entry, top)} - or put the files there by "
        f"hand{zipped}."
    )


def _pack(entry: Entry, top: Path, report: Progress) -> Manifest:
    """Read the raw files, compare the counts, and write the packed form; needs the lock."""
    report(f"reading {entry.name}", 0, None)
    folder = top / entry.folder
    here = [name for name in (*entry.files, *entry.optional) if (folder / name).is_file()]
    # Before they are read, so that a file that changes meanwhile is noticed.
    records = {name: packed.file_record(folder / name) for name in here}
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
    report(f"packing {entry.name}", 0, None)
    return packed.write(top, entry.name, reading.graphs, manifest)
