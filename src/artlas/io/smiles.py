"""Molecules written as SMILES, one a line: atoms are nodes, bonds are edges.

The features of an atom are nine integers in the order and coding of the Open Graph Benchmark, so
that a user's molecules look like those of ogbg-molhiv.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from artlas.errors import raise_read_error
from artlas.files.untrusted import read_text
from artlas.graphs.molecules import MOST_CHARACTERS, Molecules
from artlas.io.assembly import Reading, assemble


def read(path: Path) -> Reading:
    """Read a .smi file, ``SMILES [name]`` a line, or a table that has a column smiles."""
    lines, molecules, guesses = read_text(path).split("\n"), Molecules(), list[str]()
    head = lines[0].strip()
    comma = "," if "," in head else "\t"
    columns = [name.strip().strip('"').lower() for name in head.split(comma)]
    with molecules.log.BlockLogs():
        if len(columns) > 1 and "smiles" in columns:
            for line, smiles in _column(path, lines, comma, columns.index("smiles")):
                molecules.add(smiles, path, line)
            guesses.append("columns other than smiles: left out")
        else:
            names = 0
            for line, row in _checked(path, lines):
                words = row.split(maxsplit=1)
                if words and not (line == 1 and words[0].lower() == "smiles"):
                    molecules.add(words[0], path, line)
                    names += len(words) > 1
            if names:
                guesses.append(f"names of molecules ({names:,} had one): left out")
    bonds, x = molecules.concatenate(path)
    guesses.append("the nine atom fields of the Open Graph Benchmark are x")
    return assemble(molecules.sizes, bonds, undirected=True, x=x, guesses=guesses)


def _checked(path: Path, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Number the lines, none of which may be too long."""
    for line, row in enumerate(lines, start=1):
        if len(row) > MOST_CHARACTERS:
            got, fix = f"{len(row):,} characters", f"keep to {MOST_CHARACTERS:,} characters a line"
            raise_read_error(path, "a line is too long", got, fix, line)
        yield line, row


def _column(path: Path, lines: list[str], comma: str, column: int) -> Iterator[tuple[int, str]]:
    """Yield the line and the SMILES of every row below the header."""
    rows = csv.reader((row for _, row in _checked(path, lines)), delimiter=comma)
    try:
        for i, row in enumerate(rows):
            if i == 0 or not any(cell.strip() for cell in row):
                continue
            if len(row) <= column:
                got, fix = f"{len(row)} columns", "fill the column called smiles"
                raise_read_error(path, "a row has no SMILES", got, fix, rows.line_num)
            yield rows.line_num, row[column].strip()
    except csv.Error as error:
        wrong, fix = "a row is not comma-separated text", "write the table anew"
        raise_read_error(path, wrong, str(error), fix, rows.line_num)
