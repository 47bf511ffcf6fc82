"""Molecules written as SMILES, one a line: atoms are nodes, bonds are edges.

The features of an atom are the nine integers, in the order and coding, of the Open Graph Benchmark,
so that molecules of a user look like those of ogbg-molhiv.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.formats.attributes import assemble_flat
from artlas.formats.files import read_text, refuse, shown
from artlas.formats.reading import Reading

LONGEST = 10_000  # characters
MOST_ATOMS = 1_000  # RDKit's search for rings takes a second and gigabytes not far above it
# Every field is an index into a list whose last entry stands for all other values.
_CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
_HYBRIDISATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_ELEMENTS, _DEGREES, _CHARGES, _HYDROGENS, _RADICALS = 118, 11, 11, 9, 5


def _rdkit() -> tuple[Any, Any]:
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise ImportError("SMILES need RDKit: pip install 'artlas[chem]'") from error
    return Chem, rdBase


def _index(value: int, count: int) -> int:
    return value if 0 <= value < count else count


def _place(value: Any, names: Sequence[str]) -> int:
    return names.index(str(value)) if str(value) in names else len(names)


def atom_features(mol: Any) -> NDArray[np.float32]:
    """Nine integers for each of the n atoms of an RDKit molecule, float32 [n, 9]."""
    rows = [
        (
            _index(atom.GetAtomicNum() - 1, _ELEMENTS),
            _place(atom.GetChiralTag(), _CHIRALITY),
            _index(atom.GetTotalDegree(), _DEGREES),
            _index(atom.GetFormalCharge() + 5, _CHARGES),
            _index(atom.GetTotalNumHs(), _HYDROGENS),
            _index(atom.GetNumRadicalElectrons(), _RADICALS),
            _place(atom.GetHybridization(), _HYBRIDISATION),
            int(atom.GetIsAromatic()),
            int(atom.IsInRing()),
        )
        for atom in mol.GetAtoms()
    ]
    return np.array(rows, dtype=np.float32).reshape(-1, 9)


class _Molecules:
    """Takes SMILES one after the other and makes a Reading of them."""

    def __init__(self) -> None:
        self.chem, self.log = _rdkit()
        self.sizes: list[int] = []
        self.features: list[NDArray[np.float32]] = []
        self.bonds: list[NDArray[np.int64]] = []
        self.nodes = 0

    def add(self, smiles: Any, where: Any, line: int | None = None) -> None:
        if not isinstance(smiles, str):
            refuse(where, "a SMILES is not a string", shown(smiles), "pass strings", line)
        if len(smiles) > LONGEST:
            got, fix = f"{len(smiles):,} characters", f"keep to {LONGEST:,}"
            refuse(where, "a SMILES is too long", got, fix, line)
        if len(smiles) > MOST_ATOMS:
            rough = self._parse(smiles, sanitize=False)
            if rough is not None and rough.GetNumAtoms() > MOST_ATOMS:
                got, fix = f"{rough.GetNumAtoms():,} atoms", f"keep to {MOST_ATOMS:,}, or split it"
                refuse(where, "a molecule is too large", got, fix, line)
        mol = self._parse(smiles)
        if mol is None or mol.GetNumAtoms() == 0:
            wrong = "RDKit finds no molecule here" if mol is None else "a molecule has no atoms"
            refuse(where, wrong, shown(smiles), "correct the SMILES or leave it out", line)
        bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
        self.bonds.append(np.array(bonds, dtype=np.int64).reshape(-1, 2).T + self.nodes)
        self.features.append(atom_features(mol))
        self.sizes.append(mol.GetNumAtoms())
        self.nodes += mol.GetNumAtoms()

    def _parse(self, smiles: str, sanitize: bool = True) -> Any:
        try:
            return self.chem.MolFromSmiles(smiles, sanitize=sanitize)
        except (RuntimeError, ValueError, TypeError, OverflowError, MemoryError):
            return None

    def finish(self, where: Any, guesses: list[str]) -> Reading:
        if not self.sizes:
            refuse(where, "there are no molecules", "none", "pass at least one SMILES")
        return assemble_flat(
            self.sizes,
            np.concatenate(self.bonds, axis=1),
            undirected=True,
            x=np.concatenate(self.features),
            guesses=[*guesses, "the nine atom fields of the Open Graph Benchmark are x"],
        )


def molecules(smiles: Sequence[str], where: Any = "smiles") -> Reading:
    """The graphs of SMILES strings; errors call them where[0], where[1], ..."""
    made = _Molecules()
    with made.log.BlockLogs():
        for i, text in enumerate([smiles] if isinstance(smiles, str) else smiles):
            made.add(text.strip() if isinstance(text, str) else text, f"{where}[{i}]")
    return made.finish(where, [])


def read(path: Path) -> Reading:
    """Molecules of a .smi file, ``SMILES [name]`` a line, or of a table with a column smiles."""
    text, made, names = read_text(path), _Molecules(), 0
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
    return made.finish(path, said)


def _check_length(path: Path, row: str, line: int) -> None:
    if len(row) > LONGEST:
        got = f"{len(row):,} characters"
        refuse(path, "a line is too long", got, f"keep to {LONGEST:,} characters a line", line)


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
                refuse(path, "a row has no SMILES", got, fix, rows.line_num)
            yield rows.line_num, row[column].strip()
    except csv.Error as error:
        fix = "write the table anew"
        refuse(path, "a row is not comma-separated text", str(error), fix, rows.line_num)
