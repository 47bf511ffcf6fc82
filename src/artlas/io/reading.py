"""Read graphs from a file of any format, and make graphs of any object that holds them."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from artlas.errors import GraphError, ReadError, quoted, raise_read_error
from artlas.files.untrusted import check_file, open_archive, read_bytes, suffix
from artlas.graphs.canonical import announce
from artlas.graphs.collection import Graphs
from artlas.graphs.convert import is_data, is_matrix, is_networkx, is_pair
from artlas.graphs.validation import items_of

__all__ = ["FORMATS", "as_graphs", "read"]


class Format(NamedTuple):
    """A file format; ``module`` of artlas.io has ``read(path) -> Reading``."""

    label: str
    suffixes: tuple[str, ...]
    module: str


FORMATS = {
    "edges": Format("edge list", (".csv", ".tsv", ".edges", ".edgelist", ".el"), "edge_list"),
    "graphml": Format("GraphML", (".graphml", ".xml"), "graphml"),
    "gml": Format("GML", (".gml",), "gml"),
    "json": Format("node-link JSON", (".json", ".jsonl", ".ndjson"), "node_link"),
    "mtx": Format("Matrix Market", (".mtx", ".mm"), "matrix_market"),
    "npz": Format("NumPy .npz", (".npz",), "npz"),
    "smiles": Format("SMILES", (".smi", ".smiles"), "smiles"),
    "parquet": Format("Parquet", (".parquet", ".pq"), "parquet"),
    "tu": Format("TU layout", (".zip", "folder"), "tu"),
}
_UNSPECIFIC = (".txt", ".dat", "")
_KNOWN = ", ".join(
    f"{n!r} ({kind.label}: {' '.join(kind.suffixes)})" for n, kind in FORMATS.items()
)
_SNIFFED_BYTES = 4096


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    strict: bool = False,
    verbose: bool = True,
) -> Graphs:
    """Read graphs from a file, or a folder in TU layout; its name or content tells the format.

    ``format`` overrides this; ``delimiter`` and ``header`` are for edge lists. If ``verbose``, one
    line on stderr says what was guessed. Input that is not canonical is cleaned with a warning, or
    refused if ``strict``.
    """
    place = Path(os.fspath(path))
    options = {"delimiter": delimiter, "header": header}
    options = {name: value for name, value in options.items() if value is not None}
    try:
        label, _, module = FORMATS[_format_of(place, format)]
        if options and module != "edge_list":
            wrong, got = "delimiter and header are for edge lists", f"a file read as {label}"
            raise_read_error(place, wrong, got, "leave them out, or pass format='edges'")
        reading = importlib.import_module(f"artlas.io.{module}").read(place, **options)
    except ReadError:
        raise
    except GraphError as error:
        raise ReadError(f"{place}: {error}") from error
    except RecursionError:
        raise_read_error(place, "this is nested too deeply", "a RecursionError", "flatten it")
    except MemoryError:
        raise_read_error(place, "this does not fit into memory", "a MemoryError", "split the file")
    except UnicodeError as error:
        raise_read_error(place, "this is not UTF-8 text", quoted(str(error)), "save it as UTF-8")
    except OSError as error:
        raise_read_error(place, "this cannot be read", quoted(str(error)), "check permissions")
    if verbose:
        print(f"artlas.read: {place.name}: {_summary(label, reading)}", file=sys.stderr)
    announce(reading.changes, strict, stacklevel=3)
    return reading.graphs


def _format_of(path: Path, format: str | None) -> str:
    """Return the name of the format: as given, or by the suffix, or by the content."""
    if format is not None and format not in FORMATS:
        raise_read_error(path, "the format is unknown", quoted(format), f"pass one of {_KNOWN}")
    if path.is_dir() and format in (None, "tu"):
        return "tu"
    check_file(path)
    if format is not None:
        return format
    ending = suffix(path)
    name = next((name for name, kind in FORMATS.items() if ending in kind.suffixes), None)
    if name is None and ending not in _UNSPECIFIC:
        fix = f"rename it or pass format=, one of {_KNOWN}"
        raise_read_error(path, "the ending tells no format", quoted(ending), fix)
    return _sniff(path, name) if name in (None, "edges") else name


def _sniff(path: Path, name: str | None) -> str:
    """Return the format that the first bytes tell; a table (``name`` is edges) may hold SMILES."""
    if path.suffix.lower() in (".gz", ".xz", ".bz2"):
        head = read_bytes(path)[:_SNIFFED_BYTES]
    else:
        with open(path, "rb") as file:
            head = file.read(_SNIFFED_BYTES)
    if re.match(rb"(\xef\xbb\xbf)?([^\n]*[,\t])?[ \"]*smiles[ \"]*[,\t\r\n]", head.lower()):
        return "smiles"
    if name is not None:
        return name
    if head.startswith(b"PK"):
        with open_archive(path) as archive:
            return "npz" if any(n.endswith(".npy") for n in archive.namelist()) else "tu"
    if head.startswith(b"PAR1"):
        return "parquet"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    starts = {"graphml": (b"<?xml", b"<graphml"), "json": (b"{", b"["), "mtx": (b"%%matrixmarket",)}
    for kind, known in starts.items():
        if text.startswith(known):
            return kind
    return "gml" if re.match(rb"(#.*\n\s*)*(graph\s*\[|creator\b)", text) else "edges"


def _summary(label: str, reading: Any) -> str:
    graphs = reading.graphs
    counts = [f"{graphs.num_nodes:,} nodes", f"{graphs.num_edges:,} edges"]
    if graphs.num_graphs > 1:
        counts.insert(0, f"{graphs.num_graphs:,} graphs")
    ids = [guess for guess in reading.guesses if guess.startswith("ids ")]
    others = [guess for guess in reading.guesses if guess not in ids]
    if not any(guess.startswith(label) for guess in others):
        others.insert(0, label)
    return f"{', '.join(others)}; {', '.join([*counts, *ids])}"


def as_graphs(obj: Any, x: Any = None, y: Any = None, strict: bool = False) -> Graphs:
    """Turn any object that holds graphs into :class:`Graphs`; x and y replace those of the object.

    A path is read by :func:`artlas.read`.
    """
    ours = (Graphs, str, os.PathLike)
    if isinstance(obj, ours):
        graphs = obj if isinstance(obj, Graphs) else read(obj, strict=strict, verbose=False)
    else:
        accepted = (
            "Graphs, a (num_nodes, edge_index) pair, a NetworkX graph, a SciPy sparse matrix, a "
            "square array, a PyTorch Geometric Data or Batch, the path of a file, or a list of them"
        )
        builders = {
            is_networkx: Graphs.from_networkx,
            is_matrix: Graphs.from_scipy,
            is_pair: Graphs.from_edges,
        }
        tests = [lambda item: isinstance(item, ours), *builders, is_data]
        obj = list(obj) if isinstance(obj, Iterator) else obj
        items = items_of(obj, lambda item: any(test(item) for test in tests), accepted)
        if any(isinstance(item, ours) for item in items):
            graphs = Graphs.concat([as_graphs(item, strict=strict) for item in items])
        else:
            for is_a, build in builders.items():
                if is_a(items[0]):
                    return build(items, x, y, strict)
            graphs = Graphs.from_pyg(items, strict)
    graphs = graphs if x is None else graphs.with_features(x)
    return graphs if y is None else graphs.with_labels(y)
