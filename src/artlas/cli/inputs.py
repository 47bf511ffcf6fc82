"""Find the input files that a command line names."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from artlas.embedding.pieces import Input


def find_inputs(names: list[str], format: str | None, folder: Path) -> list[Input]:
    """List the files to read: a folder that is not itself a dataset stands for its files.

    Standard input is copied into ``folder`` and identified by its hash, as the copy's name and date
    differ each time.
    """
    return [entry for name in names for entry in _find_one(name, format, folder)]


def _find_one(name: str, format: str | None, folder: Path) -> list[Input]:
    if name == "-":
        path, digest = folder / "standard-input", hashlib.sha256()
        with open(path, "wb") as out:
            while block := sys.stdin.buffer.read(1 << 20):
                digest.update(block)
                out.write(block)
        return [Input(path, "-", format, digest.hexdigest())]
    place = Path(name)
    if place.is_dir() and not any(place.glob("*_A.txt")):
        files = sorted(p for p in place.iterdir() if p.is_file() and not p.name.startswith("."))
        return [Input(path, f"{place.name}/{path.name}", format) for path in files]
    return [Input(place, name, format)]
