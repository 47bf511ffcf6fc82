"""Tables on disk: Parquet, NumPy or CSV, with the facts of how they were made."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from artlas.errors import ReadError, quoted, raise_read_error
from artlas.files.atomic import atomic
from artlas.files.untrusted import read_npz

UNLABELLED = np.iinfo(np.int64).min  # written as null in Parquet, as an empty field in CSV
ROW_GROUP_BYTES = 1 << 25  # of Parquet; its writer holds one row group in memory
COLUMNS = ("source", "index", "label", "coverage", "residual", "energies", "z")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table, one per graph.

    columns: by name, arrays [n] or [n, d], among them source, the name of the input, index, the
    number of the graph in it, and label, UNLABELLED or NaN where there is none; facts: how they
    were made.
    """

    columns: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns["index"])

    def slice(self, start: int, stop: int) -> Self:
        """Return a range of the rows."""
        return self.replace(**{name: part[start:stop] for name, part in self.columns.items()})

    def replace(self, **columns: NDArray[Any]) -> Self:
        """Return the rows with other values in some columns."""
        return dataclasses.replace(self, columns={**self.columns, **columns})

    @property
    def nbytes(self) -> int:
        """Memory of the columns in bytes."""
        return sum(values.nbytes for values in self.columns.values())


class Vectors(Rows):
    """Rows of vectors.

    coverage, residual [n]; energies [n, K]; z [n, d]: the representation; facts: the model, the
    representation and the names of the columns of z.
    """

    source = property(lambda self: self.columns["source"])
    index = property(lambda self: self.columns["index"])
    label = property(lambda self: self.columns["label"])
    coverage = property(lambda self: self.columns["coverage"])
    residual = property(lambda self: self.columns["residual"])
    energies = property(lambda self: self.columns["energies"])
    z = property(lambda self: self.columns["z"])


def check_format(path: Path) -> str:
    """Return the ending of a table's file name, after checking that it can be written here."""
    ending = path.suffix.lower()
    if ending not in _WRITERS:
        got, fix = quoted(path.suffix), f"use {', '.join(_WRITERS)}"
        raise_read_error(path, "the ending tells no format", got, fix)
    if ending == ".parquet":
        _pyarrow(path)
    return ending


def write(
    path: Path, parts: Iterable[Rows], unfinished: Path | None = None, durable: bool = True
) -> int:
    """Write at least one part as a table in the format of its ending; return the number of rows.

    ``unfinished`` and ``durable`` are as for :func:`artlas.files.atomic.atomic`.
    """
    writer = _WRITERS[check_format(path)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path, unfinished, durable) as out:
        return writer(out, iter(parts))


def read(path: Path) -> Vectors:
    """Read a Parquet or NumPy table of vectors that :func:`write` wrote."""
    if not path.is_file():
        raise_read_error(path, "there is no such file", "no file", "make one with artlas embed")
    ending = check_format(path)
    if ending == ".csv":
        raise_read_error(path, "vectors are not read from CSV", ending, "write .parquet or .npz")
    try:
        rows = _read_parquet(path) if ending == ".parquet" else read_rows(path)
        return Vectors({name: rows.columns[name] for name in COLUMNS}, rows.facts)
    except ReadError:
        raise
    except (KeyError, ValueError, OSError) as error:
        fix = "make one with artlas embed"
        raise_read_error(path, "this is not a table of vectors", quoted(str(error)), fix)


def read_rows(path: Path) -> Rows:
    """Read the rows of a NumPy table, whatever its columns."""
    columns = read_npz(path)
    return Rows(columns, _facts(str(columns.pop("facts"))))


def _facts(text: str) -> dict[str, Any]:
    facts = json.loads(text)
    if not isinstance(facts, dict):
        raise ValueError("no facts of how it was made")
    return facts


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        fix = "pip install 'artlas[parquet]', or choose a file that ends in .npz or .csv"
        raise ImportError(f"{path}: Parquet needs pyarrow. To fix this: {fix}") from error
    return pyarrow


def _read_parquet(path: Path) -> Rows:
    table = _pyarrow(path).parquet.read_table(path)
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        values = table.column(name).combine_chunks()
        if name == "label":
            values = values.fill_null(UNLABELLED)
        matrix = name in ("energies", "z")
        flat = (values.flatten() if matrix else values).to_numpy(zero_copy_only=False)
        columns[name] = flat.reshape(len(table), -1) if matrix else flat
    columns["source"] = columns["source"].astype(np.str_)
    return Rows(columns, _facts((table.schema.metadata or {}).get(b"artlas", b"null").decode()))


def _write_parquet(out: IO[bytes], parts: Iterator[Rows]) -> int:
    """Write row groups of equal length, so that the file does not depend on its parts."""
    arrow, first = _pyarrow(Path("table.parquet")), next(parts)
    buffer, count = _arrow_table(arrow, first), len(first)
    group = max(1, ROW_GROUP_BYTES * count // first.nbytes)  # rows
    # Dictionaries of floats save no space, and statistics of vectors serve no query.
    writer = arrow.parquet.ParquetWriter(
        out,
        buffer.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name, part in first.columns.items() if part.dtype.kind == "U"],
        write_statistics=[name for name, part in first.columns.items() if part.ndim == 1],
    )
    del first
    try:
        for part in parts:
            buffer = arrow.concat_tables([buffer, _arrow_table(arrow, part)])
            count += len(part)
            while len(buffer) >= group:
                writer.write_table(buffer.slice(0, group).combine_chunks(), row_group_size=group)
                buffer = buffer.slice(group)
        if len(buffer):
            writer.write_table(buffer.combine_chunks(), row_group_size=group)
        writer.close()
    except BaseException:
        writer.is_open = False  # else its destructor would write a footer to the closed file
        raise
    return count


def _arrow_table(arrow: Any, part: Rows) -> Any:
    """Return the rows as an Arrow table that shares their memory."""
    columns = {}
    for name, values in part.columns.items():
        if values.ndim == 2:
            flat = arrow.array(np.ascontiguousarray(values).ravel())
            columns[name] = arrow.FixedSizeListArray.from_arrays(flat, values.shape[1])
        else:
            missing = _missing(values) if name == "label" else None
            columns[name] = arrow.array(values, mask=missing)
    return arrow.table(columns).replace_schema_metadata({"artlas": json.dumps(part.facts)})


def _missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(labels) if labels.dtype.kind == "f" else labels == UNLABELLED


def _write_npz(out: IO[bytes], parts: Iterator[Rows]) -> int:
    rows = list(parts)
    columns: dict[str, Any] = {"facts": np.array(json.dumps(rows[0].facts))}
    for name in rows[0].columns:
        columns[name] = np.concatenate([part.columns[name] for part in rows])
    np.savez(out, **columns)
    return len(columns["index"])


def _write_csv(out: IO[bytes], parts: Iterator[Rows]) -> int:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    writer, count = csv.writer(text), 0
    for part in parts:
        if count == 0:
            writer.writerow(itertools.chain(*(_headings(part, name) for name in part.columns)))
        cells = [_cells(name, values) for name, values in part.columns.items()]
        writer.writerows(itertools.chain(*row) for row in zip(*cells, strict=True))
        count += len(part)
    text.detach()
    return count


def _headings(rows: Rows, name: str) -> list[str]:
    """Name a column, or every column of a matrix."""
    values = rows.columns[name]
    if values.ndim == 1:
        return [name]
    return (
        rows.facts["names"] if name == "z" else [f"{name[0]}_{k}" for k in range(values.shape[1])]
    )


def _cells(name: str, values: NDArray[Any]) -> Iterator[list[str]]:
    """Yield the cells of every row."""
    if name == "label":
        pairs = zip(values, _missing(values), strict=True)
        return ([""] if missing else [str(value)] for value, missing in pairs)
    return (list(map(str, row)) for row in values.reshape(len(values), -1))


_WRITERS = {".parquet": _write_parquet, ".npz": _write_npz, ".csv": _write_csv}
