"""A made-up TU dataset of three graphs, and what tests compare collections by."""

from __future__ import annotations

import zipfile

import numpy as np

from artlas_paper.datasets.registry import Entry, Statistics

# A triangle, an edge and a path of three, all edges twice; labels 1 and 2.
TINY_FILES = {
    "TINY_A.txt": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n6, 7\n7, 6\n7, 8\n8, 7\n",
    "TINY_graph_indicator.txt": "1\n1\n1\n2\n2\n3\n3\n3\n",
    "TINY_graph_labels.txt": "1\n2\n1\n",
    "TINY_node_labels.txt": "0\n1\n0\n1\n0\n1\n0\n1\n",
}
TINY = Entry(
    "TINY",
    "graph",
    "TU",
    "TUDataset/TINY/raw",
    tuple(TINY_FILES),
    (),
    "made up",
    "a test",
    Statistics(3, 2, 2.67, 2.0, 2),
    "TINY.zip",
)
TINY_SENTENCE = (
    "3 graphs, 2 classes, 2.67 nodes and 2.00 edges on average, 2 features: as in the paper"
)


def write_raw(root):
    folder = root / TINY.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in TINY_FILES.items():
        (folder / name).write_text(text)
    return folder


def write_zip(path, files=TINY_FILES):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(f"TINY/{name}", text)
    return path


def entries(graphs):
    """The stored entries (row, column) in order, [2, E]."""
    rows = np.repeat(np.arange(graphs.num_nodes), graphs.row_ptr.diff().numpy())
    return np.stack([rows, graphs.col.numpy()])


def in_order(edge_index):
    """Entries [2, E] sorted by row, then column."""
    edge_index = np.asarray(edge_index)
    return edge_index[:, np.lexsort(edge_index[::-1])]


def visible_parts(root):
    """Files of a folder tree that are half-written."""
    return sorted(path.name for path in root.rglob("*.part"))
