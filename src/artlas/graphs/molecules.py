"""Turn SMILES strings into atoms (nodes, with the features of OGB) and bonds (edges) by RDKit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error

MOST_CHARACTERS = 10_000
MOST_ATOMS = 1_000  # RDKit's search for rings takes a second and gigabytes not far above it

# Every field is an index into a list whose last entry stands for all other values.
_CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
_HYBRIDISATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_ELEMENTS, _DEGREES, _CHARGES, _HYDROGENS, _RADICALS = 118, 11, 11, 9, 5


def _index(value: int, count: int) -> int:
    return value if 0 <= value < count else count


def _place(value: Any, names: Sequence[str]) -> int:
    return names.index(str(value)) if str(value) in names else len(names)


def atom_features(mol: Any) -> NDArray[np.float32]:
    """Return nine integers for each of the n atoms of an RDKit molecule, float32 [n, 9]."""
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


class Molecules:
    """Collects the atoms and bonds of SMILES that are added one after the other."""

    def __init__(self) -> None:
        try:
            from rdkit import Chem, rdBase
        except ImportError as error:
            raise ImportError("SMILES need RDKit: pip install 'artlas[chem]'") from error
        self.chem, self.log = Chem, rdBase
        self.sizes: list[int] = []
        self.features: list[NDArray[np.float32]] = []
        self.bonds: list[NDArray[np.int64]] = []
        self.nodes = 0

    def add(self, smiles: Any, where: Any, line: int | None = None) -> None:
        """Parse one SMILES; errors name ``where`` it is, and the line."""
        if not isinstance(smiles, str):
            wrong, fix = "a SMILES is not a string", "pass strings"
            raise_read_error(where, wrong, quoted(smiles), fix, line)
        if len(smiles) > MOST_CHARACTERS:
            got, fix = f"{len(smiles):,} characters", f"keep to {MOST_CHARACTERS:,}"
            raise_read_error(where, "a SMILES is too long", got, fix, line)
        if len(smiles) > MOST_ATOMS:
            rough = self._parse(smiles, sanitize=False)
            if rough is not None and rough.GetNumAtoms() > MOST_ATOMS:
                got, fix = f"{rough.GetNumAtoms():,} atoms", f"keep to {MOST_ATOMS:,}, or split it"
                raise_read_error(where, "a molecule is too large", got, fix, line)
        mol = self._parse(smiles)
        if mol is None or mol.GetNumAtoms() == 0:
            wrong = "RDKit finds no molecule here" if mol is None else "a molecule has no atoms"
            fix = "correct the SMILES or leave it out"
            raise_read_error(where, wrong, quoted(smiles), fix, line)
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

    def concatenate(self, where: Any) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return bonds [2, B], with global ids of atoms, and features [N, 9] of all molecules."""
        if not self.sizes:
            raise_read_error(where, "there are no molecules", "none", "pass at least one SMILES")
        return np.concatenate(self.bonds, axis=1), np.concatenate(self.features)


def parse(smiles: Sequence[str], where: str = "smiles") -> Molecules:
    """Parse SMILES strings; errors call them where[0], where[1], ..."""
    molecules = Molecules()
    with molecules.log.BlockLogs():
        for i, text in enumerate(smiles):
            molecules.add(text.strip() if isinstance(text, str) else text, f"{where}[{i}]")
    return molecules
