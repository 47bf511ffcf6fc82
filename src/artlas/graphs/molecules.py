"""Turn SMILES strings into atoms (nodes, with the features of OGB) and bonds (edges) by RDKit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import import_extra, quoted, raise_read_error

MOST_CHARACTERS = 10_000
MOST_ATOMS = 1_000  # RDKit's search for rings takes a second and gigabytes not far above it

# Every field is an index into a list whose last entry stands for all other values.
_CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
_HYBRIDISATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")


def _place(value: Any, known: Sequence[Any]) -> int:
    return known.index(value) if value in known else len(known)


def atom_features(mol: Any) -> NDArray[np.float32]:
    """Return nine integers for each of the n atoms of an RDKit molecule, float32 [n, 9]."""
    rows = [
        (
            _place(atom.GetAtomicNum(), range(1, 119)),
            _place(str(atom.GetChiralTag()), _CHIRALITY),
            _place(atom.GetTotalDegree(), range(11)),
            _place(atom.GetFormalCharge(), range(-5, 6)),
            _place(atom.GetTotalNumHs(), range(9)),
            _place(atom.GetNumRadicalElectrons(), range(5)),
            _place(str(atom.GetHybridization()), _HYBRIDISATION),
            int(atom.GetIsAromatic()),
            int(atom.IsInRing()),
        )
        for atom in mol.GetAtoms()
    ]
    return np.array(rows, dtype=np.float32).reshape(-1, 9)


def parse(
    rows: Iterable[tuple[Any, int | None, Any]], source: Any
) -> tuple[list[int], NDArray[np.int64], NDArray[np.float32]]:
    """Parse SMILES into sizes, bonds [2, B] with global ids of atoms, and features [N, 9].

    Each row is a place, a line or None, and the SMILES; errors name the first two.
    """
    import_extra("rdkit", "SMILES need RDKit", "chem")
    from rdkit import Chem, rdBase

    sizes, features, bonds = list[int](), list[NDArray[np.float32]](), list[NDArray[np.int64]]()
    nodes = 0
    with rdBase.BlockLogs():
        for where, line, smiles in rows:
            mol = _molecule(Chem, smiles, where, line)
            ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
            bonds.append(np.array(ends, dtype=np.int64).reshape(-1, 2).T + nodes)
            features.append(atom_features(mol))
            sizes.append(mol.GetNumAtoms())
            nodes += sizes[-1]
    if not sizes:
        raise_read_error(source, "there are no molecules", "none", "pass at least one SMILES")
    return sizes, np.concatenate(bonds, axis=1), np.concatenate(features)


def _molecule(chem: Any, smiles: Any, where: Any, line: int | None) -> Any:
    if not isinstance(smiles, str):
        raise_read_error(where, "a SMILES is not a string", quoted(smiles), "pass strings", line)
    if len(smiles) > MOST_CHARACTERS:
        got, fix = f"{len(smiles):,} characters", f"keep to {MOST_CHARACTERS:,}"
        raise_read_error(where, "a SMILES is too long", got, fix, line)
    # Atoms are counted before rings are searched, where there may be too many.
    for sanitize in (False, True) if len(smiles) > MOST_ATOMS else (True,):
        try:
            mol = chem.MolFromSmiles(smiles.strip(), sanitize=sanitize)
        except (RuntimeError, ValueError, TypeError, OverflowError, MemoryError):
            mol = None
        if mol is None or mol.GetNumAtoms() == 0:
            wrong = "RDKit finds no molecule here" if mol is None else "a molecule has no atoms"
            fix = "correct the SMILES or leave it out"
            raise_read_error(where, wrong, quoted(smiles), fix, line)
        if mol.GetNumAtoms() > MOST_ATOMS:
            got, fix = f"{mol.GetNumAtoms():,} atoms", f"keep to {MOST_ATOMS:,}, or split it"
            raise_read_error(where, "a molecule is too large", got, fix, line)
    return mol
