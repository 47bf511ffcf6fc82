"""Write files whole or not at all, and lock them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder, waiting for whoever has it; death frees it too."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def atomic(path: Path, part: Path | None = None, durable: bool = True) -> Iterator[IO[bytes]]:
    """A file that appears under its name when it is whole, or not at all.

    It is written as ``part``, by default beside its place. What is ``durable`` is on disk before it
    appears; anything else survives the end of the process, but not that of the machine.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part") if part is None else part
    try:
        with open(part, "wb") as out:
            yield out
            out.flush()
            if durable:
                os.fsync(out.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    if durable:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
