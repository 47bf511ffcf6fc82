"""Read GraphSAGE's Reddit graph from the NumPy archives that PyTorch Geometric and DGL share.

reddit_data.npz holds feature [N, d] and label [N]; reddit_graph.npz a SciPy matrix in COO form.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import raise_read_error
from artlas.files.untrusted import read_npz
from artlas.io.assembly import Reading, assemble

BLOCK = 16_384  # nodes whose features are converted to float32 at a time


def read(folder: Path, name: str = "Reddit") -> Reading:
    """Read one graph with features and a label per node."""
    x, y = _nodes(folder / "reddit_data.npz")
    edges = _edges(folder / "reddit_graph.npz", len(y))
    return assemble([len(y)], edges, undirected=False, x=x, y=y)


def _nodes(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    arrays = read_npz(path, only=("feature", "label"))
    fix = "use the file that PyTorch Geometric's Reddit downloads"
    if set(arrays) != {"feature", "label"}:
        raise_read_error(
            path, "the arrays feature and label must be there", f"{sorted(arrays)}", fix
        )
    wide, label = arrays.pop("feature"), arrays.pop("label").reshape(-1)
    if wide.ndim != 2 or len(wide) != len(label) or wide.dtype.kind not in "fiu":
        got = f"features {list(wide.shape)} of {wide.dtype}, {len(label)} labels"
        raise_read_error(path, "features and labels do not fit", got, fix)
    if label.dtype.kind not in "iu":
        raise_read_error(path, "labels are not integers", f"{label.dtype}", fix)
    x = np.empty(wide.shape, dtype=np.float32)
    for start in range(0, len(wide), BLOCK):
        x[start : start + BLOCK] = wide[start : start + BLOCK]
    return x, label.astype(np.int64)


def _edges(path: Path, nodes: int) -> NDArray[Any]:
    arrays = read_npz(path, only=("row", "col", "shape"))
    fix = "use the file that PyTorch Geometric's Reddit downloads"
    if set(arrays) != {"row", "col", "shape"}:
        raise_read_error(
            path, "the graph is not a SciPy matrix in COO form", f"{sorted(arrays)}", fix
        )
    row, col = arrays.pop("row"), arrays.pop("col")
    shape = arrays["shape"].reshape(-1).tolist()
    if shape != [nodes, nodes] or row.ndim != 1 or row.shape != col.shape:
        got = f"shape {shape}, {row.shape} rows and {col.shape} columns for {nodes} nodes"
        raise_read_error(path, "the matrix does not fit the nodes", got, fix)
    for ids in (row, col):
        if ids.dtype.kind not in "iu" or (len(ids) and (ids.min() < 0 or ids.max() >= nodes)):
            raise_read_error(
                path, "a node number is out of range", f"{ids.dtype} for {nodes} nodes", fix
            )
    ends = np.empty((2, len(row)), dtype=np.int32)
    ends[0], ends[1] = row, col
    return ends
