"""Decode one Parquet file within limits; a script that ``parquet_process`` runs.

It imports PyArrow and nothing of artlas, so that it starts quickly. The first argument is a JSON
object: ``path``, ``size`` in bytes, ``columns`` to read, ``memory`` in bytes, ``seconds`` and the
``sys_path`` of the parent. Batches go to stdout as an Arrow stream. A refusal goes to stderr as a
JSON list of its three parts: what is wrong, what was given, how to fix it.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

VALUES_ALWAYS = 1 << 22  # values that a column may hold whatever the size of the file
VALUES_PER_BYTE = 32
BYTES_ALWAYS = 1 << 20  # bytes that the pages of all columns may unpack to
BYTES_PER_BYTE = 200
DECODED_ALWAYS = 256 << 20  # bytes of decoded columns: a repeated string is stored only once
DECODED_PER_BYTE = 256
ROWS_PER_BATCH = 1 << 14
FIX = "write the file anew, or in parts, if you trust it"


class Refusal(Exception):
    """What is wrong, what was given, how to fix it."""


def limit_process(memory: int, seconds: int) -> None:
    """Limit the memory beyond what imports took, and the CPU time, where the system can."""
    try:
        import resource
    except ImportError:  # Windows: the parent's timeout is the only limit
        return
    with contextlib.suppress(OSError, ValueError):
        statm = Path("/proc/self/statm")
        used = int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check_values(count: int, size: int) -> None:
    if count > size * VALUES_PER_BYTE + VALUES_ALWAYS:
        got = f"{count:,} rows or values of a column, from {size:,} bytes"
        raise Refusal("the file announces more values than it can hold", got, FIX)


def check_bytes(count: int, allowed: int, size: int) -> None:
    if count > allowed:
        raise Refusal("this unpacks to far too much", f"{count:,} bytes from {size:,}", FIX)


def check_metadata(metadata: Any, size: int) -> None:
    """Refuse what the footer says before any page is read."""
    if metadata.num_rows < 1:
        raise Refusal("there are no rows", f"{metadata.num_rows}", "store one graph in each row")
    check_values(metadata.num_rows, size)
    values, unpacked = dict[str, int](), 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for column in map(group.column, range(group.num_columns)):
            name = column.path_in_schema
            values[name] = values.get(name, 0) + max(column.num_values, 0)
            check_values(values[name], size)
            unpacked += max(column.total_uncompressed_size, 0)
    check_bytes(unpacked, size * BYTES_PER_BYTE + BYTES_ALWAYS, size)


def leaf_count(array: Any, types: Any) -> int:
    """Return the number of values in the innermost lists of an array."""
    nested = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    while any(is_nested(array.type) for is_nested in nested):
        array = array.flatten()
    return len(array)


def batches(file: Any, names: list[str], size: int, types: Any) -> Iterator[Any]:
    """Decode and validate batches of rows; the pages may hold more than the footer says."""
    values, decoded = dict.fromkeys(names, 0), 0
    for batch in file.iter_batches(ROWS_PER_BATCH, columns=names, use_threads=False):
        batch.validate(full=True)
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            values[name] += leaf_count(array, types)
            check_values(values[name], size)
        decoded += batch.nbytes
        check_bytes(decoded, size * DECODED_PER_BYTE + DECODED_ALWAYS, size)
        yield batch


def decode(request: dict[str, Any], out: IO[bytes]) -> None:
    import pyarrow
    from pyarrow import ipc, parquet

    limit_process(request["memory"], request["seconds"])
    size = request["size"]
    longest = max(size, 1 << 20)
    limits = {"thrift_string_size_limit": longest, "thrift_container_size_limit": longest}
    try:
        with parquet.ParquetFile(request["path"], pre_buffer=False, **limits) as file:
            names = [name for name in file.schema_arrow.names if name in request["columns"]]
            if len(set(names)) < len(names):
                raise Refusal("two columns have the same name", ", ".join(names), "rename one")
            check_metadata(file.metadata, size)
            schema = pyarrow.schema([file.schema_arrow.field(name) for name in names])
            with ipc.new_stream(out, schema) as stream:
                for batch in batches(file, names, size, pyarrow.types) if names else ():
                    stream.write_batch(batch)
    except MemoryError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        text = str(error).partition("\n")[0][:200]
        wrong = "this is not a Parquet file that can be read"
        raise Refusal(wrong, text, "write the file anew") from error


def main() -> None:
    request = json.loads(sys.argv[1])
    sys.path += [folder for folder in request["sys_path"] if folder not in sys.path]
    try:
        decode(request, sys.stdout.buffer)
    except Refusal as refusal:
        print(json.dumps(refusal.args), file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        sys.exit(2)


if __name__ == "__main__":
    main()
