"""artlas.read: one call for every file format."""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from artlas.errors import GraphError, ReadError, quoted, raise_read_error
from artlas.files.untrusted import check_file, open_archive, read_bytes, suffix, unpack
from artlas.graphs.canonical import announce
from artlas.graphs.collection import Graphs
from artlas.graphs.convert import is_data, is_matrix, is_networkx, is_pair
from artlas.graphs.validation import items_of
from artlas.io.assembly import Reading

__all__ = ["read"]


class _Format(NamedTuple):
    label: str
    endings: tuple[str, ...]
    module: str
    function: str


_EDGE_LISTS = (".csv", ".tsv", ".edges", ".edgelist", ".el")
_FORMATS = {
    "edges": _Format("edge list", _EDGE_LISTS, "edge_list", "read"),
    "graphml": _Format("GraphML", (".graphml", ".xml"), "graphml", "read"),
    "gml": _Format("GML", (".gml",), "gml", "read"),
    "json": _Format("node-link JSON", (".json", ".jsonl", ".ndjson"), "node_link", "read"),
    "mtx": _Format("Matrix Market", (".mtx", ".mm"), "matrix", "read_market"),
    "npz": _Format("NumPy .npz", (".npz",), "matrix", "read_npz"),
    "smiles": _Format("SMILES", (".smi", ".smiles"), "smiles", "read"),
    "parquet": _Format("Parquet", (".parquet", ".pq"), "parquet", "read"),
    "tu": _Format("TU layout", (".zip",), "tu", "read"),
}
_SILENT = (".txt", ".dat", "")  # endings that say nothing
_TU_FILE = re.compile(
    r".+_(A|graph_indicator|(graph|node|edge)_(labels|attributes))\.txt", re.DOTALL
)
_HEAD = 4096


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    strict: bool = False,
    verbose: bool = True,
) -> Graphs:
    """Read graphs from a file, or a folder in TU layout; the format is told by ending or content.

    ``format`` overrides this; ``delimiter`` and ``header`` are for edge lists. What was guessed is
    said in one line on stderr if ``verbose``; input that is not canonical is cleaned with a
    warning, or refused if ``strict``.
    """
    place = Path(os.fspath(path))
    try:
        label, reading = _read(place, format, delimiter, header)
    except ReadError:
        raise
    except GraphError as error:
        raise ReadError(f"{place}: {error}") from error
    except RecursionError:
        raise_read_error(place, "this is nested too deeply", "a RecursionError", "flatten it")
    except MemoryError:
        raise_read_error(
            place, "this does not fit into memory", "a MemoryError", "read it in parts"
        )
    except UnicodeError as error:
        raise_read_error(place, "this is not UTF-8 text", quoted(str(error)), "save it as UTF-8")
    except OSError as error:
        raise_read_error(
            place, "this cannot be read", quoted(str(error)), "check path and permissions"
        )
    return _finish(place, label, reading, strict, verbose)


def _read(
    path: Path, format: str | None, delimiter: str | None, header: bool | None
) -> tuple[str, Reading]:
    name = _choose(path) if format is None else _check_format(path, format)
    label, _, module, function = _FORMATS[name]
    reader = getattr(importlib.import_module(f"artlas.io.{module}"), function)
    if name == "edges":
        return label, reader(path, delimiter, header)
    if delimiter is not None or header is not None:
        fix = "leave them out, or pass format='edges'"
        raise_read_error(
            path, "delimiter and header are for edge lists", f"a file read as {label}", fix
        )
    if name == "tu" and not path.is_dir():
        return label, _read_zip(path, reader)
    return label, reader(path)


def _known() -> str:
    parts = []
    for name, kind in _FORMATS.items():
        where = "folder or .zip" if name == "tu" else " ".join(kind.endings)
        parts.append(f"{name!r} ({kind.label}: {where})")
    return ", ".join(parts)


def _check_format(path: Path, format: str) -> str:
    if format not in _FORMATS:
        raise_read_error(path, "the format is unknown", quoted(format), f"pass one of {_known()}")
    if not (format == "tu" and path.is_dir()):
        check_file(path)
    return format


def _choose(path: Path) -> str:
    """The format that the ending tells, or the first bytes where it tells nothing."""
    if path.is_dir():
        if not any(_TU_FILE.fullmatch(file.name) for file in path.iterdir()):
            fix = f"pass a file; known are {_known()}"
            raise_read_error(path, "the folder is not in TU layout", "no file NAME_A.txt", fix)
        return "tu"
    check_file(path)
    ending = suffix(path)
    for name, kind in _FORMATS.items():
        if ending in kind.endings and name != "edges":
            return name
    if ending not in (*_SILENT, *_EDGE_LISTS):
        fix = f"rename it or pass format=, one of {_known()}"
        raise_read_error(path, "the ending tells no format", quoted(ending), fix)
    return _sniff(path, ending in _EDGE_LISTS)


def _sniff(path: Path, table: bool) -> str:
    """The format by the first bytes; a table holds edges or molecules."""
    if path.suffix.lower() in (".gz", ".xz", ".bz2"):
        head = read_bytes(path)[:_HEAD]
    else:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    if re.match(rb"(\xef\xbb\xbf)?([^\n]*[,\t])?[ \"]*smiles[ \"]*[,\t\r\n]", head.lower()):
        return "smiles"
    if table:
        return "edges"
    if head.startswith(b"PK"):
        with open_archive(path) as archive:
            return "npz" if any(n.endswith(".npy") for n in archive.namelist()) else "tu"
    if head.startswith(b"PAR1"):
        return "parquet"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith((b"<?xml", b"<graphml")):
        return "graphml"
    if text.startswith((b"{", b"[")):
        return "json"
    if text.startswith(b"%%matrixmarket"):
        return "mtx"
    return "gml" if re.match(rb"(#.*\n\s*)*(graph\s*\[|creator\b)", text) else "edges"


def _read_zip(path: Path, tu: Callable[[Path], Reading]) -> Reading:
    with tempfile.TemporaryDirectory(prefix="artlas-") as folder:
        files = unpack(path, Path(folder), lambda name: _TU_FILE.fullmatch(name) is not None)
        if not files:
            fix = "pass a .zip that holds NAME_A.txt and its companions, or unpack it"
            raise_read_error(path, "the archive is not in TU layout", "no file NAME_A.txt", fix)
        try:
            return tu(Path(folder))
        except ReadError as error:
            raise ReadError(str(error).replace(folder, str(path))) from None


def _finish(path: Path, label: str, reading: Reading, strict: bool, verbose: bool) -> Graphs:
    graphs = reading.graphs
    if verbose:
        counts = [f"{graphs.num_nodes:,} nodes", f"{graphs.num_edges:,} edges"]
        if graphs.num_graphs > 1:
            counts.insert(0, f"{graphs.num_graphs:,} graphs")
        about_ids = [guess for guess in reading.guesses if guess.startswith("ids ")]
        others = [guess for guess in reading.guesses if guess not in about_ids]
        if not any(guess.startswith(label) for guess in others):
            others.insert(0, label)
        text = f"{', '.join(others)}; {', '.join([*counts, *about_ids])}"
        print(f"artlas.read: {path.name}: {text}", file=sys.stderr)
    announce(reading.changes, strict)
    return graphs


def _is_graphs(obj: Any) -> bool:
    return isinstance(obj, Graphs)


def _is_path(obj: Any) -> bool:
    return isinstance(obj, (str, os.PathLike))


def as_graphs(obj: Any, x: Any = None, y: Any = None, strict: bool = False) -> Graphs:
    """Turn whatever holds graphs into :class:`Graphs`; x and y replace those that obj carries.

    A path is read by :func:`artlas.read`.
    """
    if isinstance(obj, Graphs):
        graphs = obj
    elif _is_path(obj):
        from artlas.io.reading import read

        graphs = read(obj, strict=strict, verbose=False)
    else:
        accepted = (
            "Graphs, a (num_nodes, edge_index) pair, a NetworkX graph, a SciPy sparse matrix, a "
            "square array, a PyTorch Geometric Data or Batch, the path of a file, or a list of them"
        )
        obj = list(obj) if isinstance(obj, Iterator) else obj
        kinds = {
            Graphs.from_networkx: is_networkx,
            Graphs.from_scipy: is_matrix,
            Graphs.from_edges: is_pair,
        }
        tests = [*kinds.values(), is_data, _is_graphs, _is_path]
        items = items_of(obj, lambda i: any(is_a(i) for is_a in tests), accepted)
        if any(_is_graphs(item) or _is_path(item) for item in items):
            made = [as_graphs(item, strict=strict) for item in items]
            return as_graphs(Graphs.concat(made), x, y, strict)
        for build, is_a in kinds.items():
            if is_a(items[0]):
                return build(items, x, y, strict)
        graphs = Graphs.from_pyg(items, strict)
    graphs = graphs if x is None else graphs.with_features(x)
    return graphs if y is None else graphs.with_labels(y)
