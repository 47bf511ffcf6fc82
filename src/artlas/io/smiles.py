"""Molecules written as SMILES, one a line: atoms are nodes, bonds are edges.

The features of an atom are the nine integers, in the order and coding, of the Open Graph Benchmark,
so that molecules of a user look like those of ogbg-molhiv.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from artlas.errors import raise_read_error
from artlas.files.untrusted import read_text
from artlas.graphs.molecules import LONGEST, Molecules
from artlas.io.assembly import Reading, assemble

# Every field is an index into a list whose last entry stands for all other values.


def read(path: Path) -> Reading:
    """Molecules of a .smi file, ``SMILES [name]`` a line, or of a table with a column smiles."""
    text, made, names = read_text(path), Molecules(), 0
    lines = text.split("\n")
    head = lines[0].strip()
    comma = "," if "," in head else "\t"
    columns = [name.strip().strip('"').lower() for name in head.split(comma)]
    table = len(columns) > 1 and "smiles" in columns
    with made.log.BlockLogs():
        if table:
            for line, field in _fields(path, lines, comma, columns.index("smiles")):
                made.add(field, path, line)
        else:
            start = 1 if head.lower().split()[:1] == ["smiles"] else 0
            for line, row in enumerate(lines[start:], start=start + 1):
                _check_length(path, row, line)
                if words := row.split(maxsplit=1):
                    made.add(words[0], path, line)
                    names += len(words) > 1
    said = [f"names of molecules ({names:,} had one): left out"] if names else []
    if table:
        said.append("columns other than smiles: left out")
    bonds, x = made.joined(path)
    said.append("the nine atom fields of the Open Graph Benchmark are x")
    return assemble(made.sizes, bonds, undirected=True, x=x, guesses=said)


def _check_length(path: Path, row: str, line: int) -> None:
    if len(row) > LONGEST:
        got = f"{len(row):,} characters"
        raise_read_error(
            path, "a line is too long", got, f"keep to {LONGEST:,} characters a line", line
        )


def _fields(path: Path, lines: list[str], comma: str, column: int) -> Iterator[tuple[int, str]]:
    """(line, SMILES) of a table with a header."""

    def checked() -> Iterator[str]:
        for line, row in enumerate(lines, start=1):
            _check_length(path, row, line)
            yield row

    rows = csv.reader(checked(), delimiter=comma)
    try:
        for i, row in enumerate(rows):
            if i == 0 or not any(cell.strip() for cell in row):
                continue
            if len(row) <= column:
                got, fix = f"{len(row)} columns", "fill the column called smiles"
                raise_read_error(path, "a row has no SMILES", got, fix, rows.line_num)
            yield rows.line_num, row[column].strip()
    except csv.Error as error:
        fix = "write the table anew"
        raise_read_error(path, "a row is not comma-separated text", str(error), fix, rows.line_num)
