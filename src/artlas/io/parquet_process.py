"""Read a Parquet file in a child process whose memory and time are limited.

A run of a billion equal values takes a few bytes in a Parquet file, and PyArrow aborts the process
on some damaged files. Both end the child, and become a :class:`ReadError` here. Windows cannot
limit memory so: there the child is only stopped after a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from artlas.errors import quoted, raise_read_error
from artlas.files.untrusted import check_file, read_bytes
from artlas.io import parquet_child

MEMORY_VARIABLE, SECONDS_VARIABLE = "ARTLAS_PARQUET_MEMORY_GB", "ARTLAS_PARQUET_SECONDS"
MEMORY_ALWAYS, MEMORY_PER_BYTE, MOST_MEMORY = 2 << 30, 16, 64 << 30
SECONDS_ALWAYS, BYTES_PER_SECOND = 20, 2_000_000
_ENVIRONMENT = {  # address space is limited, so no heap and no buffer for each thread
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


def read_table(path: Path, columns: Collection[str]) -> tuple[Any, int]:
    """Return the named columns that the file has, a ``pyarrow.Table``, and the file's size."""
    arrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")
    size, source = check_file(path), path
    with tempfile.TemporaryDirectory(prefix="artlas-", ignore_cleanup_errors=True) as folder:
        if path.suffix.lower() in (".gz", ".xz", ".bz2"):
            source = Path(folder) / "unpacked"
            size = source.write_bytes(read_bytes(path))
        memory = min(MEMORY_ALWAYS + MEMORY_PER_BYTE * size, MOST_MEMORY)
        memory = _limit(MEMORY_VARIABLE, memory, 2**30)
        seconds = _limit(SECONDS_VARIABLE, SECONDS_ALWAYS + size // BYTES_PER_SECOND)
        request = {
            "path": str(source.absolute()),
            "size": size,
            "columns": sorted(columns),
            "memory": memory,
            "seconds": seconds,
            "sys_path": [folder for folder in sys.path if folder],
        }
        decoded, code, message = Path(folder) / "decoded", None, b""
        with contextlib.suppress(subprocess.TimeoutExpired):
            with open(decoded, "wb") as out:
                done = subprocess.run(
                    [sys.executable, "-I", parquet_child.__file__, json.dumps(request)],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.PIPE,
                    env={**os.environ, **_ENVIRONMENT},
                    timeout=seconds,
                )
            code, message = done.returncode, done.stderr
        if code != 0:
            _raise_failure(path, code, message, memory, seconds)
        with arrow.memory_map(str(decoded)) as stream:
            return ipc.open_stream(stream).read_all(), size


def _limit(variable: str, default: int, unit: int = 1) -> int:
    """Return the limit that an environment variable sets, in units, or the default."""
    text = os.environ.get(variable)
    try:
        return int(float(text) * unit) if text else default
    except (ValueError, OverflowError):
        wrong = f"{variable} is not a number; got {quoted(text)}. To fix this, set e.g. 8."
        raise ValueError(wrong) from None


def _raise_failure(
    path: Path, code: int | None, message: bytes, memory: int, seconds: int
) -> NoReturn:
    trust = "higher if you trust the file, or write it in parts"
    limit, fix = f"a limit of {memory / 2**30:.1f} GB", f"set {MEMORY_VARIABLE} {trust}"
    if code == 1:
        try:
            wrong, got, fix = json.loads(message.splitlines()[-1])
        except (ValueError, IndexError):
            text = message.decode(errors="replace")[-2000:]
            raise RuntimeError(f"The process that reads Parquet failed:\n{text}") from None
    elif code == 2:
        wrong, got = "decoding takes too much memory", limit
    elif code is None or -code == getattr(signal, "SIGXCPU", None):
        wrong, got = "decoding takes too long", f"more than {seconds} seconds"
        fix = f"set {SECONDS_VARIABLE} {trust}"
    else:
        wrong, got = "the process that decodes the file crashed", f"exit code {code} with {limit}"
    raise_read_error(path, wrong, got, fix)
