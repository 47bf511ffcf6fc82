"""Tables of vectors on disk: Parquet, NumPy or CSV, with the facts of how they were made."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import ReadError, quoted, raise_read_error
from artlas.files.atomic import atomic
from artlas.files.untrusted import read_npz

UNLABELLED = np.iinfo(np.int64).min  # written as null in Parquet, as an empty field in CSV
ROW_GROUP_BYTES = 1 << 25  # of Parquet; its writer holds one row group in memory
COLUMNS = ("source", "index", "label", "coverage", "residual", "energies", "z")


@dataclass(frozen=True, eq=False)
class Vectors:
    """Rows of a table, one per graph.

    source [n]: name of the input; index [n]: number of the graph in it; label [n]: its class, or
    UNLABELLED; coverage, residual [n]; energies [n, K]; z [n, d]: the representation; facts: the
    model, the representation and the names of the columns of z.
    """

    source: NDArray[np.str_]
    index: NDArray[np.int64]
    label: NDArray[np.int64]
    coverage: NDArray[np.float32]
    residual: NDArray[np.float32]
    energies: NDArray[np.float32]
    z: NDArray[np.float32]
    facts: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.index)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all columns by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    def slice(self, start: int, stop: int) -> Vectors:
        """Return a range of the rows."""
        columns = {name: values[start:stop] for name, values in self.arrays().items()}
        return Vectors(**columns, facts=self.facts)

    @property
    def nbytes(self) -> int:
        """Memory of the columns in bytes."""
        return sum(getattr(self, name).nbytes for name in COLUMNS)


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
    path: Path, parts: Iterable[Vectors], unfinished: Path | None = None, durable: bool = True
) -> int:
    """Write at least one part as a table in the format of its ending; return the number of rows.

    ``unfinished`` and ``durable`` are as for :func:`artlas.files.atomic.atomic`.
    """
    writer = _WRITERS[check_format(path)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path, unfinished, durable) as out:
        return writer(out, iter(parts))


def read(path: Path) -> Vectors:
    """Read a Parquet or NumPy table that :func:`write` wrote."""
    if not path.is_file():
        raise_read_error(path, "there is no such file", "no file", "make one with artlas embed")
    ending = check_format(path)
    if ending == ".csv":
        raise_read_error(path, "vectors are not read from CSV", ending, "write .parquet or .npz")
    try:
        arrays = _read_parquet(path) if ending == ".parquet" else read_npz(path)
        facts = json.loads(str(arrays["facts"]))
        if not isinstance(facts, dict):
            raise ValueError("no facts of how it was made")
        return Vectors(**{name: arrays[name] for name in COLUMNS}, facts=facts)
    except ReadError:
        raise
    except (KeyError, ValueError, OSError) as error:
        fix = "make one with artlas embed"
        raise_read_error(path, "this is not a table of vectors", quoted(str(error)), fix)


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        fix = "pip install 'artlas[parquet]', or choose a file that ends in .npz or .csv"
        raise ImportError(f"{path}: Parquet needs pyarrow. To fix this: {fix}") from error
    return pyarrow


def _read_parquet(path: Path) -> dict[str, Any]:
    table = _pyarrow(path).parquet.read_table(path)
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        values = table.column(name).combine_chunks()
        if name == "label":
            values = values.fill_null(UNLABELLED)
        matrix = name in ("energies", "z")
        flat = (values.flatten() if matrix else values).to_numpy(zero_copy_only=False)
        columns[name] = flat.reshape(len(table), -1) if matrix else flat
    facts = (table.schema.metadata or {}).get(b"artlas", b"null").decode()
    return {**columns, "source": columns["source"].astype(np.str_), "facts": facts}


def _write_parquet(out: IO[bytes], parts: Iterator[Vectors]) -> int:
    """Write row groups of equal length, so that the file does not depend on its parts."""
    arrow, first = _pyarrow(Path("vectors.parquet")), next(parts)
    buffer, count = _arrow_table(arrow, first), len(first)
    group = max(1, ROW_GROUP_BYTES * count // first.nbytes)  # rows
    # Dictionaries of floats save no space, and statistics of vectors serve no query.
    writer = arrow.parquet.ParquetWriter(
        out,
        buffer.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=["source"],
        write_statistics=list(COLUMNS[:-2]),
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


def _arrow_table(arrow: Any, part: Vectors) -> Any:
    """Return the rows as an Arrow table that shares the memory of the vectors."""
    columns = {}
    for name, values in part.arrays().items():
        if values.ndim == 2:
            flat = arrow.array(np.ascontiguousarray(values).ravel())
            columns[name] = arrow.FixedSizeListArray.from_arrays(flat, values.shape[1])
        else:
            missing = values == UNLABELLED if name == "label" else None
            columns[name] = arrow.array(values, mask=missing)
    return arrow.table(columns).replace_schema_metadata({"artlas": json.dumps(part.facts)})


def _write_npz(out: IO[bytes], parts: Iterator[Vectors]) -> int:
    rows = list(parts)
    columns: dict[str, Any] = {"facts": np.array(json.dumps(rows[0].facts))}
    columns |= {name: np.concatenate([getattr(part, name) for part in rows]) for name in COLUMNS}
    np.savez(out, **columns)
    return len(columns["index"])


def _write_csv(out: IO[bytes], parts: Iterator[Vectors]) -> int:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    writer, count = csv.writer(text), 0
    for part in parts:
        if count == 0:
            energies = [f"e_{k}" for k in range(part.energies.shape[1])]
            writer.writerow([*COLUMNS[:-2], *energies, *part.facts["names"]])
        labels = ["" if label == UNLABELLED else label for label in part.label.tolist()]
        numbers = np.column_stack([part.coverage, part.residual, part.energies, part.z])
        rows = zip(part.source.tolist(), part.index.tolist(), labels, numbers, strict=True)
        for source, index, label, values in rows:
            writer.writerow([source, index, label, *map(str, values)])
        count += len(part)
    text.detach()
    return count


_WRITERS = {".parquet": _write_parquet, ".npz": _write_npz, ".csv": _write_csv}
