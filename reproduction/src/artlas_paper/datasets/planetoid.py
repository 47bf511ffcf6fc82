"""Read Planetoid's citation networks: pickles of Python 2, and a list of the test nodes."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.io.assembly import Reading, assemble, check_announced
from artlas.io.number_tables import read_numbers
from artlas_paper.datasets.csr_archive import check_cells, dense
from artlas_paper.datasets.inert_pickle import Matrix, array, unpickle

_FIX = "fetch the original file anew"


def _matrix(path: Path) -> NDArray[np.float32]:
    value = unpickle(path)
    state = value.state if isinstance(value, Matrix) else None
    if not isinstance(state, dict):
        raise_read_error(path, "this is not a sparse matrix", type(value).__name__, _FIX)
    shape = state.get("_shape")
    if not isinstance(shape, tuple) or [type(n) for n in shape] != [int, int] or min(shape) < 0:
        raise_read_error(path, "the matrix has no shape", type(shape).__name__, _FIX)
    data, indices, indptr = (array(path, state.get(name)) for name in ("data", "indices", "indptr"))
    return dense(path, "the matrix", data, indices, indptr, shape)


def _classes(path: Path, rows: int) -> tuple[NDArray[np.int64], int]:
    """Return the class of every row of one-hot labels, and the number of classes."""
    hot = array(path, unpickle(path))
    if hot.ndim != 2 or len(hot) != rows or hot.shape[1] < 1:
        got = f"shape {list(hot.shape)} for {rows} rows of features"
        raise_read_error(path, "the labels have the wrong shape", got, _FIX)
    if not ((hot == 0) | (hot == 1)).all() or (hot.sum(axis=1) != 1).any():
        raise_read_error(path, "the labels are not one-hot", f"{hot.dtype} {list(hot.shape)}", _FIX)
    return hot.argmax(axis=1), hot.shape[1]


def _edges(path: Path, nodes: int) -> NDArray[np.int64]:
    """Read a dictionary from a node to the list of its neighbours as edges [2, E]."""
    graph = unpickle(path)
    if not isinstance(graph, dict) or not all(type(value) is list for value in graph.values()):
        raise_read_error(path, "this is not a dictionary of neighbours", type(graph).__name__, _FIX)
    lengths = [len(value) for value in graph.values()]
    if sum(lengths) > path.stat().st_size:  # the same list may stand for many nodes
        raise_read_error(path, "the file has more edges than bytes", f"{sum(lengths):,}", _FIX)
    ends = [list(graph), list(chain.from_iterable(graph.values()))]
    for ids in ends:
        if not all(type(i) is int and 0 <= i < nodes for i in ids):
            wrong = next(i for i in ids if type(i) is not int or not 0 <= i < nodes)
            got = f"{quoted(wrong) if type(wrong) is int else type(wrong).__name__} of {nodes}"
            raise_read_error(path, "a node is out of range", got, _FIX)
    heads, tails = (np.array(ids, dtype=np.int64) for ids in ends)
    return np.stack([np.repeat(heads, lengths), tails])


def read(folder: Path, name: str) -> Reading:
    """Read ind.NAME.{x,tx,allx,y,ty,ally,graph,test.index} as one graph; features stay unscaled.

    Test nodes that test.index leaves out get zero features and class 0, as in PyTorch Geometric.
    """
    path = {
        part: folder / f"ind.{name.lower()}.{part}"
        for part in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    }
    x, rest, tested = (_matrix(path[part]) for part in ("x", "allx", "tx"))
    y, classes = _classes(path["y"], len(x))
    rest_y, rest_classes = _classes(path["ally"], len(rest))
    tested_y, tested_classes = _classes(path["ty"], len(tested))
    widths = {(rest.shape[1], rest_classes), (tested.shape[1], tested_classes)}
    if len(widths | {(x.shape[1], classes)}) > 1:
        got = f"{x.shape[1]}, {rest.shape[1]} and {tested.shape[1]} features, or unlike classes"
        raise_read_error(folder, f"the files of {name} do not fit together", got, _FIX)
    if not (np.array_equal(x, rest[: len(x)]) and np.array_equal(y, rest_y[: len(x)])):
        raise_read_error(
            path["x"], "x and y are not the first rows of allx and ally", "other rows", _FIX
        )
    order = read_numbers(path["test.index"], 1)[:, 0]
    if len(order) != len(tested) or len(np.unique(order)) != len(order) or order.min() < len(rest):
        got = f"{len(order)} for {len(tested)} test nodes behind {len(rest)} others"
        raise_read_error(path["test.index"], "the numbers of the test nodes do not fit", got, _FIX)
    nodes = int(order.max()) + 1
    check_announced(path["test.index"], nodes, path["test.index"].stat().st_size)
    check_cells(path["allx"], "the matrix", nodes, rest.shape[1])
    features = np.zeros((nodes, rest.shape[1]), dtype=np.float32)
    labels = np.zeros(nodes, dtype=np.int64)
    features[: len(rest)], features[order] = rest, tested
    labels[: len(rest)], labels[order] = rest_y, tested_y
    guesses = []
    if gaps := nodes - len(rest) - len(order):
        guesses.append(f"{gaps} test nodes without features or label, filled with 0")
    edges = _edges(path["graph"], nodes)
    return assemble([nodes], edges, undirected=False, x=features, y=labels, guesses=guesses)
