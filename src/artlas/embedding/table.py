"""A table of vectors on disk: which graph, how well the atlas covers it, and its representation."""

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

from artlas.errors import quoted, raise_read_error
from artlas.files.atomic import atomic
from artlas.files.untrusted import read_npz

ENDINGS = (".parquet", ".npz", ".csv")
UNLABELLED = np.iinfo(np.int64).min  # null in Parquet, empty in CSV
GROUP = 1 << 25  # bytes of a row group of Parquet, which is what its writer holds in memory
COLUMNS = ("source", "index", "label", "coverage", "residual", "energies", "z")


@dataclass(frozen=True, eq=False)
class Vectors:
    """Rows of graphs.

    source [n]: where a graph came from; index [n]: its number there; label [n], UNLABELLED where
    there is none; coverage, residual [n]; energies [n, K]; z [n, d]; facts: what made them, with
    the names of the columns of z.
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
        """All columns by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    def rows(self, start: int, stop: int) -> Vectors:
        """Some of the rows."""
        cut = {name: values[start:stop] for name, values in self.arrays().items()}
        return Vectors(**cut, facts=self.facts)

    @property
    def nbytes(self) -> int:
        """What the columns take of memory."""
        return sum(values.nbytes for values in self.arrays().values())


def write(
    path: Path, parts: Iterable[Vectors], part: Path | None = None, durable: bool = True
) -> int:
    """Write parts as one file, Parquet, NumPy or CSV by its ending; whole or not at all.

    ``part`` and ``durable`` are as for :func:`artlas.files.untrusted.atomic`.
    """
    writer = {".parquet": _write_parquet, ".npz": _write_npz, ".csv": _write_csv}[ending(path)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path, part, durable) as out:
        return writer(out, iter(parts))


def ending(path: Path) -> str:
    """The ending of a file of vectors, which must be one that is known."""
    if path.suffix.lower() not in ENDINGS:
        raise_read_error(
            path, "the ending tells no format", quoted(path.suffix), f"use {', '.join(ENDINGS)}"
        )
    if path.suffix.lower() == ".parquet":
        _arrow(path)
    return path.suffix.lower()


def read(path: Path) -> Vectors:
    """Read what :func:`write` wrote, from Parquet or NumPy."""
    if not path.is_file():
        raise_read_error(path, "there is no such file", "no file", "make one with artlas embed")
    if path.suffix.lower() == ".npz":
        return _of_arrays(path, read_npz(path))
    if ending(path) != ".parquet":
        raise_read_error(
            path, "vectors are not read from CSV", quoted(path.suffix), "write .parquet or .npz"
        )
    _, parquet = _arrow(path)
    try:
        table = parquet.read_table(path)
        facts = json.loads((table.schema.metadata or {}).get(b"artlas", b"null"))
        arrays = {name: table.column(name).combine_chunks() for name in table.column_names}
        columns = {
            name: arrays[name].to_numpy(zero_copy_only=False)
            for name in ("index", "coverage", "residual")
        }
        columns["source"] = np.array(arrays["source"].to_pylist(), dtype=np.str_)
        columns["label"] = arrays["label"].fill_null(UNLABELLED).to_numpy(zero_copy_only=False)
        for name in ("energies", "z"):
            flat = arrays[name].flatten().to_numpy(zero_copy_only=False)
            columns[name] = flat.reshape(len(table), -1)
    except (KeyError, ValueError, OSError) as error:
        fix = "make one with artlas embed"
        raise_read_error(path, "this is not a table of vectors", quoted(str(error)), fix)
    return _checked(path, columns, facts)


def _of_arrays(path: Path, arrays: dict[str, Any]) -> Vectors:
    facts = json.loads(str(arrays.pop("facts"))) if "facts" in arrays else None
    return _checked(path, arrays, facts)


def _checked(path: Path, arrays: dict[str, Any], facts: Any) -> Vectors:
    if not isinstance(facts, dict) or not set(COLUMNS) <= set(arrays):
        fix = "make one with artlas embed"
        raise_read_error(path, "this is not a table of vectors", quoted(sorted(arrays)), fix)
    return Vectors(**{name: arrays[name] for name in COLUMNS}, facts=facts)


def _arrow(path: Path) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            f"{path}: Parquet is written by pyarrow, which is not installed. To fix this: "
            "pip install 'artlas[parquet]', or choose a file that ends in .npz or .csv"
        ) from error
    return pyarrow, pyarrow.parquet


def _write_parquet(out: IO[bytes], parts: Iterator[Vectors]) -> int:
    arrow, parquet = _arrow(Path("vectors.parquet"))
    first = next(parts, None)
    if first is None:
        return 0
    held, count, room = _table(arrow, first), len(first), max(1, GROUP * len(first) // first.nbytes)
    # A dictionary of floats is never small, and nobody asks for their extremes.
    writer = parquet.ParquetWriter(
        out,
        held.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=["source"],
        write_statistics=list(COLUMNS[:-2]),
    )

    def write(table: Any) -> None:
        # groups of so many rows: a file does not show in which parts it was made
        writer.write_table(table.combine_chunks(), row_group_size=room)

    del first
    try:
        for part in parts:
            held = arrow.concat_tables([held, _table(arrow, part)])
            count += len(part)
            while len(held) >= room:
                write(held.slice(0, room))
                held = held.slice(room)
        if len(held):
            write(held)
        writer.close()
    except BaseException:
        writer.is_open = False  # or it would write an end when it is collected, to a closed file
        raise
    return count


def _table(arrow: Any, part: Vectors) -> Any:
    """Rows as Arrow has them, the vectors without a copy."""
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
    whole = list(parts)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in whole]) for name in COLUMNS
    }
    np.savez(out, facts=np.array(json.dumps(whole[0].facts)), **columns)
    return sum(map(len, whole))


def _write_csv(out: IO[bytes], parts: Iterator[Vectors]) -> int:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    writer, count = csv.writer(text), 0
    for part in parts:
        if count == 0:
            bases = [f"e_{k}" for k in range(part.energies.shape[1])]
            writer.writerow([*COLUMNS[:-2], *bases, *part.facts["names"]])
        labels = ["" if mark == UNLABELLED else mark for mark in part.label.tolist()]
        plain = part.source.tolist(), part.index.tolist(), labels
        numbers = np.column_stack([part.coverage, part.residual, part.energies, part.z])
        for source, index, label, row in zip(*plain, numbers, strict=True):
            writer.writerow([source, index, label, *map(str, row)])
        count += len(part)
    text.detach()
    return count
