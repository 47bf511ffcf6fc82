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
from artlas.graphs.molecules import MOST_CHARACTERS, parse
from artlas.io.assembly import Reading, assemble


def read(path: Path) -> Reading:
    """Read a .smi file, ``SMILES [name]`` a line, or a table that has a column smiles."""
    lines, guesses = read_text(path).split("\n"), list[str]()
    for line, row in enumerate(lines, start=1):
        if len(row) > MOST_CHARACTERS:
            got, fix = f"{len(row):,} characters", f"keep to {MOST_CHARACTERS:,} characters a line"
            raise_read_error(path, "a line is too long", got, fix, line)
    comma = "," if "," in lines[0] else "\t"
    columns = [name.strip(' \t\r"').lower() for name in lines[0].split(comma)]
    if len(columns) > 1 and "smiles" in columns:
        rows = _column(path, lines, comma, columns.index("smiles"))
        guesses.append("columns other than smiles: left out")
    else:
        words = [(line, row.split(maxsplit=1)) for line, row in enumerate(lines, start=1)]
        if lines[0].lower().split()[:1] == ["smiles"]:
            del words[0]
        rows = ((path, line, row[0]) for line, row in words if row)
        if names := sum(len(row) > 1 for _, row in words):
            guesses.append(f"names of molecules ({names:,} had one): left out")
    sizes, bonds, x = parse(rows, path)
    guesses.append("the nine atom fields of the Open Graph Benchmark are x")
    return assemble(sizes, bonds, undirected=True, x=x, guesses=guesses)


def _column(
    path: Path, lines: list[str], comma: str, column: int
) -> Iterator[tuple[Path, int, str]]:
    """Yield the line and the SMILES of every row below the header."""
    rows = csv.reader(lines, delimiter=comma)
    try:
        for i, row in enumerate(rows):
            if i == 0 or not any(cell.strip() for cell in row):
                continue
            if len(row) <= column:
                got, fix = f"{len(row)} columns", "fill the column called smiles"
                raise_read_error(path, "a row has no SMILES", got, fix, rows.line_num)
            yield path, rows.line_num, row[column].strip()
    except csv.Error as error:
        wrong, fix = "a row is not comma-separated text", "write the table anew"
        raise_read_error(path, wrong, str(error), fix, rows.line_num)
