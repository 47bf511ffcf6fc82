"""Write files atomically: whole, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


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
