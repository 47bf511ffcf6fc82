"""Raw files of the datasets: where they lie below the data root, and which reader takes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from artlas.files import untrusted
from artlas.io import tu
from artlas.io.assembly import Reading
from artlas_paper.datasets import amazon, ogb, planetoid, reddit
from artlas_paper.datasets.registry import Entry

Progress = Callable[[str, int, int | None], None]  # activity, done, total if known


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of all data: root, else $ARTLAS_DATA, else artlas/data in the cache."""
    if chosen := root or os.environ.get("ARTLAS_DATA"):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "artlas" / "data"


def prepare_command(entry: Entry, root: Path) -> str:
    """Return the command line that prepares a dataset."""
    return f"artlas-paper data prepare {entry.name} --root {root}"


def absent_files(entry: Entry, root: Path) -> list[str]:
    """Return the required files that are not in place."""
    return [name for name in entry.files if not (root / entry.folder / name).is_file()]


def find_archive(entry: Entry, root: Path) -> Path | None:
    """Find the zip of a dataset, beside its raw folder or one folder up."""
    if entry.archive is None:
        return None
    home = (root / entry.folder).parent
    places = [home / entry.archive]
    if entry.family == "TU":
        places.append(home.parent / entry.archive)
    return next((path for path in places if path.is_file()), None)


def unpack(entry: Entry, root: Path, archive: Path) -> None:
    """Extract the files that the dataset needs and that are not in place yet."""
    folder, names = root / entry.folder, {*entry.files, *entry.optional}
    untrusted.unpack(archive, folder, lambda name: name in names and not (folder / name).exists())


def read(entry: Entry, root: Path) -> Reading:
    """Read the raw files, which must be in place."""
    folder = root / entry.folder
    if entry.family == "OGB":
        reader = ogb.read_graphs if entry.level == "graph" else ogb.read_node
        return reader(folder, entry.name)
    return _READERS[entry.family](folder, entry.name)


_READERS: dict[str, Callable[[Path, str], Reading]] = {
    "TU": tu.read,
    "Planetoid": planetoid.read,
    "Amazon": amazon.read,
    "Reddit": reddit.read,
}
