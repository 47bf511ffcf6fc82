"""Read molecules written as SMILES: atoms are nodes, bonds are edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error

LONGEST = 10_000  # characters


MOST_ATOMS = 1_000  # RDKit's search for rings takes a second and gigabytes not far above it


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


class Molecules:
    """The atoms and bonds of SMILES that are added one after the other."""

    def __init__(self) -> None:
        self.chem, self.log = _rdkit()
        self.sizes: list[int] = []
        self.features: list[NDArray[np.float32]] = []
        self.bonds: list[NDArray[np.int64]] = []
        self.nodes = 0

    def add(self, smiles: Any, where: Any, line: int | None = None) -> None:
        if not isinstance(smiles, str):
            raise_read_error(
                where, "a SMILES is not a string", quoted(smiles), "pass strings", line
            )
        if len(smiles) > LONGEST:
            got, fix = f"{len(smiles):,} characters", f"keep to {LONGEST:,}"
            raise_read_error(where, "a SMILES is too long", got, fix, line)
        if len(smiles) > MOST_ATOMS:
            rough = self._parse(smiles, sanitize=False)
            if rough is not None and rough.GetNumAtoms() > MOST_ATOMS:
                got, fix = f"{rough.GetNumAtoms():,} atoms", f"keep to {MOST_ATOMS:,}, or split it"
                raise_read_error(where, "a molecule is too large", got, fix, line)
        mol = self._parse(smiles)
        if mol is None or mol.GetNumAtoms() == 0:
            wrong = "RDKit finds no molecule here" if mol is None else "a molecule has no atoms"
            raise_read_error(
                where, wrong, quoted(smiles), "correct the SMILES or leave it out", line
            )
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

    def joined(self, where: Any) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Bonds [2, B] and features [N, 9] of all molecules, whose atoms are numbered through."""
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
