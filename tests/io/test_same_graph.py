"""One graph, caffeine, in twelve formats: all of them give the same adjacency."""

from __future__ import annotations

import filecmp
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from artlas.io.reading import read

DATA = Path(__file__).parent / "data"
FILES = [
    "caffeine.csv",
    "caffeine-plain.csv",
    "caffeine.tsv",
    "caffeine.txt",
    "caffeine.graphml",
    "caffeine.gml",
    "caffeine.json",
    "caffeine.mtx",
    "caffeine.npz",
    "caffeine-tu",
    "caffeine.smi",
    "caffeine.parquet",
]
# By hand, from the structural formula CN1C=NC2=C1C(=O)N(C(=O)N2C)C: the neighbours of every atom.
NEIGHBOURS = [
    [1],
    [0, 2, 5],
    [1, 3],
    [2, 4],
    [3, 5, 11],
    [1, 4, 6],
    [5, 7, 8],
    [6],
    [6, 9, 13],
    [8, 10, 11],
    [9],
    [4, 9, 12],
    [11],
    [8],
]
NEEDS = {".smi": "rdkit", ".parquet": "pyarrow"}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_graph(name):
    if needed := NEEDS.get(Path(name).suffix):
        pytest.importorskip(needed, reason=f"{needed} reads {name}")
    graphs = read(DATA / name, strict=True, verbose=False)
    assert graphs.node_ptr.tolist() == [0, 14]
    assert graphs.row_ptr.tolist() == np.cumsum([0] + [len(n) for n in NEIGHBOURS]).tolist()
    assert graphs.col.tolist() == [j for row in NEIGHBOURS for j in row]


def test_the_files_are_what_the_script_writes(tmp_path):
    for module in ("networkx", "pyarrow"):
        pytest.importorskip(module, reason=f"the script needs {module}")
    spec = importlib.util.spec_from_file_location("make_data", DATA / "make_data.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.write_all(tmp_path)
    written = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*.*") if p.is_file())
    # Parquet and NumPy archives carry the version of the library that wrote them.
    plain = [name for name in written if name.suffix not in (".parquet", ".npz")]
    assert len(plain) == 12  # two of the twelve are binary, and one is a folder of three
    _, differing, missing = filecmp.cmpfiles(tmp_path, DATA, plain, shallow=False)
    assert (differing, missing) == ([], [])
