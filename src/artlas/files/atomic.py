"""Write files atomically, and lock files and folders between processes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file or folder; a process that dies releases its locks."""
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
def atomic(path: Path, unfinished: Path | None = None, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a file that replaces ``path`` when the block ends, and is deleted if the block fails.

    unfinished: where it is written until then, by default beside ``path``; durable: synchronise
    it to disk, so that it survives a crash of the machine, not only of the process.
    """
    if unfinished is None:
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(unfinished, "wb") as out:
            yield out
            out.flush()
            if durable:
                os.fsync(out.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    if durable:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
