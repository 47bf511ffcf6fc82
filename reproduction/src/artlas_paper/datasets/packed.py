"""Store a dataset in packed form: its arrays in one .npz, and a manifest with their checksum.

The manifest is written last, and a pair of files that do not fit counts as absent, so that a
process killed at any moment leaves a complete dataset or none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict, get_origin, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray

from artlas.errors import raise_read_error
from artlas.files import atomic as writing
from artlas.files import untrusted
from artlas.graphs.collection import Graphs
from artlas_paper.datasets import file_lock
from artlas_paper.datasets.registry import DatasetError

FORMAT = 1
FOLDER = "artlas"  # below the data root


class UnwritableError(DatasetError):
    """A data root that cannot be written to."""


class FileRecord(TypedDict):
    """State of a raw file when it was packed."""

    size: int
    mtime_ns: int
    sha256: str


class Manifest(TypedDict):
    """Content of the .json beside the .npz."""

    format: int
    name: str
    artlas: str
    size: int
    sha256: str
    raw: dict[str, FileRecord]
    counts: dict[str, int]
    check: str
    cleaning: dict[str, int]
    missing: list[str]
    guesses: list[str]


def npz_path(root: Path, name: str) -> Path:
    return root / FOLDER / f"{name}.npz"


def manifest_path(root: Path, name: str) -> Path:
    return root / FOLDER / f"{name}.json"


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_record(path: Path) -> FileRecord:
    """Return size, time and SHA-256 of a file; the first two are taken before it is read."""
    state = path.stat()
    return {"size": state.st_size, "mtime_ns": state.st_mtime_ns, "sha256": sha256(path)}


def is_unchanged(path: Path, known: FileRecord) -> bool:
    """Whether a file has the recorded size and time; its bytes are not read."""
    state = path.stat()
    return (state.st_size, state.st_mtime_ns) == (known["size"], known["mtime_ns"])


@contextlib.contextmanager
def locked(root: Path, name: str) -> Iterator[None]:
    """Hold the lock of one dataset, after waiting for other processes."""
    folder = root / FOLDER
    lock = folder / f".{name}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.touch()
    except OSError as error:
        raise UnwritableError(
            f"{folder} cannot be written to ({error.strerror}). "
            "To fix this, pass a data root that you may write to, by --root or $ARTLAS_DATA."
        ) from error
    with file_lock.locked(lock):
        yield


def leftovers(root: Path, name: str) -> list[Path]:
    """Return partial files that killed processes left; remove them under the lock only."""
    return sorted((root / FOLDER).glob(f".{name}.*.part"))


def write(root: Path, name: str, graphs: Graphs, manifest: Manifest) -> Manifest:
    """Write both files, the manifest last, and return the completed manifest; needs the lock."""
    arrays = {"node_ptr": graphs.node_ptr, "row_ptr": graphs.row_ptr, "col": graphs.col}
    arrays |= {key: value for key in "xy" if (value := getattr(graphs, key)) is not None}
    path = npz_path(root, name)
    manifest_path(root, name).unlink(missing_ok=True)  # it is not that of the next .npz
    with writing.atomic(path) as out:
        save: Any = np.savez  # its stub takes the arrays for its flag allow_pickle
        save(out, **{key: value.numpy() for key, value in arrays.items()})
    done: Manifest = {**manifest, "size": path.stat().st_size, "sha256": sha256(path)}
    text = json.dumps(done, indent=1, ensure_ascii=False) + "\n"
    with writing.atomic(manifest_path(root, name)) as out:
        out.write(text.encode())
    return done


def find(root: Path, name: str, verify: bool = False) -> Manifest | None:
    """Return the manifest if the .npz fits it, or None; ``verify`` compares the checksum, too."""
    path = npz_path(root, name)
    try:
        manifest = json.loads(manifest_path(root, name).read_bytes())
        fits = (
            _is_manifest(manifest)
            and manifest["name"] == name
            and path.stat().st_size == manifest["size"]
        )
        if fits and (not verify or sha256(path) == manifest["sha256"]):
            return manifest
    except (OSError, ValueError, RecursionError):
        pass
    return None


def _is_manifest(value: Any) -> bool:
    kinds = {key: get_origin(kind) or kind for key, kind in get_type_hints(Manifest).items()}
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return False
    if not all(isinstance(value.get(key), kind) for key, kind in kinds.items()):
        return False
    return all(
        isinstance(known, dict)
        and isinstance(known.get("size"), int)
        and isinstance(known.get("mtime_ns"), int)
        for known in value["raw"].values()
    )


def read(root: Path, name: str) -> Graphs:
    """Read a packed dataset with its raw features; all arrays are checked."""
    path = npz_path(root, name)
    arrays = untrusted.read_npz(path)
    fix = f"delete it and run: artlas-paper data prepare {name}"
    kinds = {"node_ptr": ("<i8", 1), "row_ptr": ("<i8", 1), "col": ("<i4", 1), "x": ("<f4", 2)}
    for key, (dtype, ndim) in kinds.items():
        array = arrays.get(key)
        if array is None and key != "x":
            raise_read_error(path, f"the array {key} is missing", ", ".join(arrays), fix)
        if array is not None and (array.dtype != dtype or array.ndim != ndim):
            got = f"{array.dtype} of shape {list(array.shape)}"
            raise_read_error(path, f"the array {key} is not {dtype} of {ndim} dimensions", got, fix)
    x, y = arrays.get("x"), arrays.get("y")
    wrong = _wrong_pointers(arrays["node_ptr"], arrays["row_ptr"], arrays["col"])
    graphs, nodes = len(arrays["node_ptr"]) - 1, len(arrays["row_ptr"]) - 1
    if not wrong and x is not None and len(x) != nodes:
        wrong = f"{len(x):,} rows of features for {nodes:,} nodes"
    if (
        not wrong
        and y is not None
        and (
            y.ndim != 1 or len(y) not in (graphs, nodes) or y.dtype.str not in ("<i8", "<f4", "<f8")
        )
    ):
        wrong = f"labels of {y.dtype}, shape {list(y.shape)}, for {graphs:,} graphs"
    if wrong:
        raise_read_error(path, "the arrays do not describe graphs", wrong, fix)
    tensors = {key: torch.from_numpy(value) for key, value in arrays.items()}
    return Graphs(
        tensors["node_ptr"], tensors["row_ptr"], tensors["col"], tensors.get("x"), tensors.get("y")
    )


def _wrong_pointers(
    node_ptr: NDArray[np.int64], row_ptr: NDArray[np.int64], col: NDArray[np.int32]
) -> str:
    """Return what is wrong with the pointers and columns, or an empty text."""
    nodes = len(row_ptr) - 1
    if (
        len(node_ptr) < 2
        or node_ptr[0] != 0
        or node_ptr[-1] != nodes
        or np.diff(node_ptr).min() < 1
    ):
        return "graph boundaries that do not rise from 0 to the number of nodes"
    if row_ptr[0] != 0 or row_ptr[-1] != len(col) or np.diff(row_ptr).min() < 0:
        return "row boundaries that do not rise from 0 to the number of entries"
    entry = row_ptr[node_ptr]
    some = np.flatnonzero(np.diff(entry))  # reduceat takes no empty ranges
    low = np.minimum.reduceat(col, entry[some]) if len(some) else node_ptr[some]
    high = np.maximum.reduceat(col, entry[some]) if len(some) else node_ptr[some]
    if (low < node_ptr[some]).any() or (high >= node_ptr[some + 1]).any():
        return "neighbours outside their graph"
    return ""
