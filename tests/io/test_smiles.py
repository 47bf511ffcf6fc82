"""Molecules: atom fields computed by hand, tables, names and what must be refused, by line."""

from __future__ import annotations

import contextlib
import sys
import time

import pytest

from artlas.errors import ReadError
from artlas.graphs.collection import Graphs
from artlas.io import smiles

pytest.importorskip("rdkit", reason="RDKit, which reads SMILES, is not installed")

# element - 1, chirality, degree, charge + 5, hydrogens, radicals, hybridisation, aromatic, ring
AROMATIC = [5, 0, 3, 5, 1, 0, 1, 1, 1]
ATOMS = {
    "CCO": [[5, 0, 4, 5, 3, 0, 2, 0, 0], [5, 0, 4, 5, 2, 0, 2, 0, 0], [7, 0, 2, 5, 1, 0, 2, 0, 0]],
    "c1ccccc1": [AROMATIC] * 6,
    "[NH4+]": [[6, 0, 4, 6, 4, 0, 2, 0, 0]],
    "C[C@@H](N)C(=O)O": [
        [5, 0, 4, 5, 3, 0, 2, 0, 0],
        [5, 1, 4, 5, 1, 0, 2, 0, 0],
        [6, 0, 3, 5, 2, 0, 2, 0, 0],
        [5, 0, 3, 5, 0, 0, 1, 0, 0],
        [7, 0, 1, 5, 0, 0, 1, 0, 0],
        [7, 0, 2, 5, 1, 0, 1, 0, 0],
    ],
    "[CH3]": [[5, 0, 3, 5, 3, 1, 2, 0, 0]],
    "C#N": [[5, 0, 2, 5, 1, 0, 0, 0, 0], [6, 0, 1, 5, 0, 0, 0, 0, 0]],
    "[Fe+6]": [[25, 0, 0, 11, 0, None, None, 0, 0]],
    "*": [[118, 0, 0, 5, 0, 0, None, 0, 0]],
}


@pytest.mark.parametrize("text", ATOMS)
def test_atom_fields_by_hand(text):
    graphs = Graphs.from_smiles([text])
    assert graphs.x.shape == (len(ATOMS[text]), 9)
    for row, expected in zip(graphs.x.tolist(), ATOMS[text], strict=True):
        assert [v for v, e in zip(row, expected, strict=True) if e is not None] == [
            e for e in expected if e is not None
        ]


def test_mirror_images_differ_in_chirality_alone():
    left, right = (Graphs.from_smiles([s]).x for s in ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"))
    assert (left != right).nonzero().tolist() == [[1, 1]]
    assert (left[1, 1], right[1, 1]) == (2, 1)


def test_every_field_stays_in_its_range():
    odd = ["F[P](F)(F)(F)F", "FS(F)(F)(F)(F)F", "[U]", "[Og]", "[C-5]", "[C+9]", "[2H][2H]", "[He]"]
    x = Graphs.from_smiles(odd).x
    assert (x >= 0).all()
    assert (x.max(0).values <= x.new_tensor([118, 4, 11, 11, 9, 5, 5, 1, 1])).all()
    assert x[0, 6] == 2  # fluorine
    assert x[1, 6] == 3  # phosphorus with five bonds: SP3D
    assert x[7, 6] == 4  # sulfur with six bonds: SP3D2


def test_molecules_keep_order_and_bonds():
    graphs = Graphs.from_smiles(["CCO", "C", "C1CC1"])
    assert graphs.sizes.tolist() == [3, 1, 3]
    assert graphs.col.tolist() == [1, 0, 2, 1, 5, 6, 4, 6, 4, 5]
    assert Graphs.from_smiles("CCO").num_graphs == 1


def write(tmp_path, text, name="a.smi"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("CCO\nC\n", 0),
        ("CCO ethanol\n\n  \nC\tmethane gas\n", 2),
        ("smiles name\r\nCCO ethanol\r\nC x\r\n", 2),
        ("SMILES\nCCO\nC", 0),
    ],
)
def test_files_of_lines(tmp_path, text, names):
    reading = smiles.read(write(tmp_path, text))
    assert reading.graphs.sizes.tolist() == [3, 1]
    said = [guess for guess in reading.guesses if guess.startswith("names")]
    assert said == ([f"names of molecules ({names} had one): left out"] if names else [])


@pytest.mark.parametrize(
    "text",
    [
        "id,smiles,label\n1,CCO,0\n2,C,1\n",
        'SMILES,"name"\n"CCO","ethanol, pure"\nC,x\n\n',
        "name\tsmiles\r\nethanol\tCCO\r\nmethane gas\tC\r\n",
    ],
)
def test_tables(tmp_path, text):
    reading = smiles.read(write(tmp_path, text, "a.csv"))
    assert reading.graphs.sizes.tolist() == [3, 1]
    assert "columns other than smiles: left out" in reading.guesses


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CCO\n\nC1CC rest\n", "a.smi, line 3: RDKit finds no molecule here; got 'C1CC'"),
        ("smiles\nCCO\nhello\n", "line 3: RDKit finds no molecule here; got 'hello'"),
        ("C(C)(C)(C)(C)C\n", "line 1: RDKit finds no molecule"),  # a valence that does not exist
        ("CCO\n" + "C" * 10_001, "line 2: a line is too long; got 10,001 characters"),
        ("C " + "n" * 10_001, "line 1: a line is too long"),
        ("C\n" + "C" * 1_001, "line 2: a molecule is too large; got 1,001 atoms"),
        ("", "there are no molecules"),
        ("smiles name\n", "there are no molecules"),
        ("id,smiles\n1,CCO\n2\n", "line 3: a row has no SMILES; got 1 columns"),
        ("id,smiles\n1,CCO\n2,xx\n", "line 3: RDKit finds no molecule here; got 'xx'"),
        ("id,smiles\n1,\n", "line 2: a molecule has no atoms; got ''"),
        ("id,smiles\n1,a\rb\n", "line 2: a row is not comma-separated text"),
    ],
)
def test_refused_by_line(tmp_path, capfd, text, message):
    with pytest.raises(ReadError, match=message) as error:
        smiles.read(write(tmp_path, text))
    assert "To fix this, " in str(error.value)
    assert capfd.readouterr().err == ""


def test_strings_are_refused_by_position():
    with pytest.raises(ReadError, match=r"smiles\[1\]: RDKit finds no molecule here; got 'C\('"):
        Graphs.from_smiles(["C", "C("])
    with pytest.raises(ReadError, match=r"smiles\[0\]: a SMILES is not a string; got nan"):
        Graphs.from_smiles([float("nan")])
    with pytest.raises(ReadError, match="there are no molecules"):
        Graphs.from_smiles([])


@pytest.mark.parametrize(
    "text",
    [
        "C" * 10_000,
        f"C1{'C' * 9_000}C1",
        f"c1{'c' * 990}c1",
        "(" * 9_000,
        "C1" * 4_000,
        "[" * 9_000,
        "c1" * 99,
    ],
)
def test_long_strings_cost_little(text):
    start = time.perf_counter()
    with contextlib.suppress(ReadError):
        Graphs.from_smiles([text])
    assert time.perf_counter() - start < 2


def test_without_rdkit(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ImportError, match=r"pip install 'artlas\[chem\]'"):
        Graphs.from_smiles(["C"])
