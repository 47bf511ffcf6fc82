"""Write one graph, the 14 heavy atoms of caffeine and their 15 bonds, in every format we read.

Run as ``python tests/formats/data/make_data.py``; the same bytes come out every time.
"""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

SMILES = "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"
ATOMS = 14
# In an order in which atoms appear for the first time as they do in the SMILES string.
BONDS = [
    (0, 1),
    (1, 2),
    (2, 3),
    (3, 4),
    (4, 5),
    (5, 6),
    (6, 7),
    (6, 8),
    (8, 9),
    (9, 10),
    (9, 11),
    (11, 12),
    (8, 13),
    (1, 5),
    (4, 11),
]


def lines(pairs: list[tuple[object, object]], between: str) -> str:
    return "".join(f"{u}{between}{v}\n" for u, v in pairs)


def write_all(folder: Path) -> None:
    """Write the twelve files."""

    def write(name: str, text: str) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text.encode())

    named = [(f"a{u:02}", f"a{v:02}") for u, v in BONDS]
    both = sorted(BONDS + [(v, u) for u, v in BONDS])
    write("caffeine.csv", "source,target\n" + lines(named, ","))
    write("caffeine-plain.csv", lines(BONDS, ","))
    write("caffeine.tsv", lines(BONDS, "\t"))
    from_one = lines([(u + 1, v + 1) for u, v in BONDS], " ")
    write("caffeine.txt", f"# caffeine: 14 atoms, numbered from 1\n# {SMILES}\n{from_one}")
    lower = lines(sorted((v + 1, u + 1) for u, v in BONDS), " ")
    head = "%%MatrixMarket matrix coordinate pattern symmetric\n"
    write("caffeine.mtx", f"{head}{ATOMS} {ATOMS} {len(BONDS)}\n{lower}")
    write("caffeine.smi", f"{SMILES} caffeine\n")
    write("caffeine-tu/caffeine_A.txt", lines([(u + 1, v + 1) for u, v in both], ", "))
    write("caffeine-tu/caffeine_graph_indicator.txt", "1\n" * ATOMS)
    write("caffeine-tu/caffeine_graph_labels.txt", "1\n")

    graph = nx.Graph()
    graph.add_nodes_from(range(ATOMS))
    graph.add_edges_from(BONDS)
    nx.write_graphml_xml(graph, folder / "caffeine.graphml")
    nx.write_gml(graph, folder / "caffeine.gml")
    write("caffeine.json", json.dumps(nx.node_link_data(graph, edges="links"), indent=1) + "\n")

    matrix = sp.csr_matrix((np.ones(len(both)), np.array(both).T), shape=(ATOMS, ATOMS))
    sp.save_npz(folder / "caffeine.npz", matrix)
    columns = {"num_nodes": [ATOMS], "edge_index": [np.array(both).T.tolist()]}
    pq.write_table(pa.table(columns), folder / "caffeine.parquet")


if __name__ == "__main__":
    write_all(Path(__file__).parent)
