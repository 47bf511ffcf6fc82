"""Decode one Parquet file within limits; a script that ``parquet_process`` runs.

It imports PyArrow and nothing of artlas, so that it starts quickly. The argument is a JSON object:
``path``, its ``size``, ``columns`` to read, ``memory`` in bytes, ``seconds``, and ``sys_path``. The
table goes to stdout as an Arrow stream, a refusal to stderr as a JSON list of what is wrong, what
was given and how to fix it.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import IO, Any

VALUES_ALWAYS, VALUES_PER_BYTE = 1 << 22, 32  # of a column, by bytes of the file
DECODED_ALWAYS, DECODED_PER_BYTE = 256 << 20, 256  # bytes of all columns
ROWS_PER_BATCH = 1 << 14


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


def check_amount(values: int, decoded: int, size: int) -> None:
    fix = "write the file anew, or in parts, if you trust it"
    if values > VALUES_ALWAYS + VALUES_PER_BYTE * size:
        got = f"{values:,} rows or values of a column, from {size:,} bytes"
        raise Refusal("the file holds far too many values", got, fix)
    if decoded > DECODED_ALWAYS + DECODED_PER_BYTE * size:
        raise Refusal("this unpacks to far too much", f"{decoded:,} bytes from {size:,}", fix)


def leaf_count(array: Any, types: Any) -> int:
    """Return the number of values in the innermost lists of an array."""
    nested = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    while any(is_nested(array.type) for is_nested in nested):
        array = array.flatten()
    return len(array)


def decode(request: dict[str, Any], out: IO[bytes]) -> None:
    """Write the columns batch by batch, until they are more than the file may hold."""
    import pyarrow
    from pyarrow import ipc, parquet

    limit_process(request["memory"], request["seconds"])
    size, decoded = request["size"], 0
    longest = max(size, 1 << 20)
    limits = {"thrift_string_size_limit": longest, "thrift_container_size_limit": longest}
    with parquet.ParquetFile(request["path"], pre_buffer=False, **limits) as file:
        names = [name for name in file.schema_arrow.names if name in request["columns"]]
        values = dict.fromkeys(names, 0)
        if len(values) < len(names):
            raise Refusal("two columns have the same name", ", ".join(names), "rename one")
        footer, announced = file.metadata, Counter[str]()
        if footer.num_rows < 1:
            raise Refusal("there are no rows", f"{footer.num_rows}", "store one graph in each row")
        for group in map(footer.row_group, range(footer.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                announced[column.path_in_schema] += column.num_values
        check_amount(max(footer.num_rows, *announced.values()), 0, size)
        schema = pyarrow.schema([file.schema_arrow.field(name) for name in names])
        with ipc.new_stream(out, schema) as stream:
            if not names:
                return
            for batch in file.iter_batches(ROWS_PER_BATCH, columns=names, use_threads=False):
                batch.validate(full=True)
                decoded += batch.nbytes
                for name, array in zip(batch.schema.names, batch.columns, strict=True):
                    values[name] += leaf_count(array, pyarrow.types)
                check_amount(max(values.values()), decoded, size)
                stream.write_batch(batch)


def main() -> None:
    request = json.loads(sys.argv[1])
    sys.path += [folder for folder in request["sys_path"] if folder not in sys.path]
    from pyarrow import ArrowException

    try:
        decode(request, sys.stdout.buffer)
    except MemoryError:
        sys.exit(2)
    except Refusal as refusal:
        parts = refusal.args
    except (ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        text = str(error).partition("\n")[0][:200]
        parts = ("this is not a Parquet file that can be read", text, "write the file anew")
    else:
        return
    sys.exit(json.dumps(parts))


if __name__ == "__main__":
    main()
