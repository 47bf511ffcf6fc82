"""Read Amazon's co-purchase networks: an .npz with sparse adjacency and attribute matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.files.untrusted import read_npz
from artlas.io.assembly import Reading, assemble
from artlas_paper.datasets.csr_archive import check_csr, dense

_FIX = "fetch the original file anew"
_PARTS = ("data", "indices", "indptr", "shape")


def read(folder: Path, name: str) -> Reading:
    """Read amazon_electronics_NAME.npz as one graph; attributes above 0 count as 1, as in PyG."""
    path = folder / f"amazon_electronics_{name.lower()}.npz"
    arrays = read_npz(path)
    wanted = ["labels", *(f"{key}_{part}" for key in ("adj", "attr") for part in _PARTS)]
    if absent := [key for key in wanted if key not in arrays]:
        raise_read_error(
            path, f"arrays are missing: {', '.join(absent)}", quoted(sorted(arrays)), _FIX
        )
    nodes, columns = _shape(path, arrays["adj_shape"])
    if nodes != columns:
        raise_read_error(path, "the adjacency is not square", f"{nodes:,} x {columns:,}", _FIX)
    weights, tails, rows = (arrays[f"adj_{part}"] for part in _PARTS[:3])
    check_csr(path, "the adjacency", weights, tails, rows, (nodes, nodes))
    shape = _shape(path, arrays["attr_shape"])
    if shape[0] != nodes:
        raise_read_error(
            path, "there are not as many attributes as nodes", f"{shape[0]} for {nodes}", _FIX
        )
    data, indices, indptr = (arrays[f"attr_{part}"] for part in _PARTS[:3])
    x = dense(path, "the attributes", data, indices, indptr, shape)
    x[x > 0] = 1
    labels = arrays["labels"]
    if labels.shape != (nodes,) or labels.dtype.kind not in "iu" or labels.min() < 0:
        got = f"{labels.dtype} of shape {list(labels.shape)} for {nodes} nodes"
        raise_read_error(path, "the labels are not one class per node", got, _FIX)
    heads = np.repeat(np.arange(nodes), np.diff(rows))
    edges = np.stack([heads, tails.astype(np.int64)])
    # PyG ignores the weights of entries, too; co-purchase has no direction.
    return assemble([nodes], edges, undirected=True, x=x, y=labels)


def _shape(path: Path, value: NDArray[Any]) -> tuple[int, int]:
    if value.shape != (2,) or value.dtype.kind not in "iu" or value.min() < 1:
        raise_read_error(path, "a matrix has no shape", quoted(value.tolist()), _FIX)
    return int(value[0]), int(value[1])
