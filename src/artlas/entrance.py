"""How graphs of any make are checked and made canonical: the entrance to :class:`artlas.Graphs`.

Objects of NetworkX, SciPy and PyTorch Geometric are recognised by what they offer, so none of the
three is imported before it is needed, and the last never.
"""

from __future__ import annotations

import inspect
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import Tensor

from artlas import kernels

_CHANGES = {
    "one_way": "one-way edges completed",
    "duplicates": "duplicate entries merged",
    "loops": "self-loops dropped",
    "weights": "edge weights ignored",
    "attributes": "graphs whose edge attributes were dropped",
}


class GraphError(ValueError):
    """Input that is not a collection of graphs: what is wrong, what came, how to fix it."""


class GraphCleaningWarning(UserWarning):
    """Input that had to be changed to become undirected, loop-free, coalesced and binary."""


def fail(wrong: str, got: str, fix: str) -> NoReturn:
    raise GraphError(f"{wrong}; got {got}. To fix this, {fix}.")


def items_of(obj: Any, test: Callable[[Any], bool], what: str) -> list[Any]:
    """Return [obj] if obj passes the test, else its elements, all of which must pass it."""
    if test(obj):
        return [obj]
    kind = type(obj).__name__
    try:
        items = list(obj)
    except TypeError:
        fail(f"the input is not {what}", f"a {kind}", "convert it")
    if not items:
        fail("the collection is empty", f"a {kind} without items", "pass at least one graph")
    for i, item in enumerate(items):
        if not test(item):
            got = f"a {type(item).__name__} in a {kind}"
            fail(f"item {i} is not {what}", got, "convert it or leave it out")
    return items


def is_pair(obj: Any) -> bool:
    if not isinstance(obj, (tuple, list)) or len(obj) != 2:
        return False
    return isinstance(obj[0], (Number, np.generic)) or getattr(obj[0], "ndim", None) == 0


def is_networkx(obj: Any) -> bool:
    return hasattr(obj, "is_multigraph") and hasattr(obj, "nodes")


def is_matrix(obj: Any) -> bool:
    return getattr(obj, "ndim", 0) == 2 and (hasattr(obj, "tocoo") or isinstance(obj, np.ndarray))


def is_data(obj: Any) -> bool:
    # Static, because a PyG InMemoryDataset, too, answers hasattr(dataset, "edge_index") with True.
    return inspect.getattr_static(obj, "edge_index", None) is not None


def as_array(value: Any, what: str) -> Any:
    try:
        if isinstance(value, Tensor):
            value = value.float() if value.dtype == torch.bfloat16 else value
            value = value.detach().cpu().numpy()
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        got = f"a {type(value).__name__} ({error})"
        fail(f"{what} is not one dense array", got, "pass an array or evenly nested lists")


def check_total(nodes: int) -> None:
    if nodes > np.iinfo(np.int32).max:
        fail("too many nodes for 32-bit ids", f"{nodes:,}", "split the collection")


def check_size(n: Any, g: int) -> int:
    try:
        size = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        size = 0
    if size < 1:
        fix = "leave out graphs without nodes and pass num_nodes as an int"
        fail(f"graph {g} has no nodes, or no whole number of nodes", f"num_nodes = {n!r}", fix)
    return size


def check_edges(edge_index: Any, n: int, g: int) -> Any:
    """Check edge_index [2, E] against n nodes and return it as an array of integers."""
    edges = as_array(edge_index, f"edge_index of graph {g}")
    if edges.size == 0:
        return np.empty((2, 0), dtype=np.int32)
    if edges.ndim != 2 or len(edges) != 2:
        got = f"a {type(edge_index).__name__} of shape {list(edges.shape)}"
        fix = "stack sources and targets as its two rows; transpose a list of pairs"
        fail(f"edge_index of graph {g} is not of shape [2, E]", got, fix)
    if edges.dtype.kind not in "iu":
        fail(f"node ids of graph {g} are not integers", f"{edges.dtype}", "convert them to int64")
    low, high = edges.min(), edges.max()
    if low < 0:
        fail(f"a node id of graph {g} is negative", f"{low}", "number the nodes from 0")
    if high >= n:
        fix = "raise num_nodes, or number the nodes from 0"
        fail(f"a node id of graph {g} is out of range", f"{high} with num_nodes = {n}", fix)
    return edges


def check_square(matrix: Any, g: int) -> int:
    if matrix.shape[0] != matrix.shape[1]:
        fix = "pass [n, n] (for a bipartite block B, [[0, B], [B.T, 0]])"
        fail(f"the matrix of graph {g} is not square", f"shape {list(matrix.shape)}", fix)
    return check_size(matrix.shape[0], g)


def matrix_edges(matrix: Any, g: int, changes: Counter[str]) -> Any:
    if isinstance(matrix, np.ndarray):
        edges = np.stack(np.asarray(matrix).nonzero())
        values = np.asarray(matrix)[edges[0], edges[1]]
    else:
        matrix = matrix.tocoo()
        edges, values = np.stack([matrix.row, matrix.col]), matrix.data
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        fix = "store every edge as 1 and nothing else"
        fail(f"the matrix of graph {g} has entries that are not finite", f"{values.dtype}", fix)
    if not values.all():
        edges, values = edges[:, values != 0], values[values != 0]
    changes["weights"] += int((values != 1).sum())
    return edges


def networkx_edges(graph: Any, changes: Counter[str]) -> Any:
    number = {node: i for i, node in enumerate(graph)}
    triples = list(graph.edges(data="weight", default=1))
    changes["weights"] += sum(weight != 1 for _, _, weight in triples)
    flat = (number[node] for u, v, _ in triples for node in (u, v))
    pairs = np.fromiter(flat, dtype=np.int64, count=2 * len(triples)).reshape(-1, 2)
    if graph.is_directed():
        return pairs.T
    # NetworkX holds an undirected edge once: completed here, or it would be reported as one-way.
    proper = pairs[:, 0] != pairs[:, 1]
    once = pairs[proper]
    if graph.is_multigraph():
        once = np.unique(once, axis=0)  # NetworkX gives parallel edges one direction
        changes["duplicates"] += int(proper.sum()) - len(once)
    return np.concatenate([once, once[:, ::-1], pairs[~proper]]).T


def networkx_features(graph: Any, names: Sequence[str], g: int) -> Any:
    columns = []
    for name in names:
        values = [attributes.get(name) for _, attributes in graph.nodes(data=True)]
        if (missing := [n for n, v in zip(graph, values, strict=True) if v is None]) != []:
            got = f"node {missing[0]!r} without it"
            fail(f"not every node of graph {g} has {name!r}", got, "set this node attribute")
        column = as_array(values, f"node attribute {name!r} of graph {g}")
        columns.append(column.reshape(len(values), -1))
    return np.concatenate(columns, axis=1)


def data_list(data: Any, i: int) -> list[Any]:
    got = "a node-to-graph vector without to_data_list()"
    if hasattr(data, "to_data_list"):
        try:
            return list(data.to_data_list())
        except RuntimeError as error:
            got = str(error)
    elif getattr(data, "batch", None) is None:
        return [data]
    fail(f"item {i} is a batch that cannot be split", got, "pass the list of its Data objects")


def data_edges(data: Any, n: int, g: int, changes: Counter[str]) -> Any:
    edges = check_edges(data.edge_index, n, g)
    for name in ("edge_weight", "edge_attr"):
        value = getattr(data, name, None)
        if value is not None and edges.shape[1]:
            value = as_array(value, f"{name} of graph {g}")
            if value.size == edges.shape[1]:
                changes["weights"] += int((value != 1).sum())
            else:
                changes["attributes"] += 1
    return edges


def data_labels(ys: Sequence[Any], sizes: Sequence[int]) -> Any:
    labels = [as_array(y, f"y of graph {g}") for g, y in enumerate(ys)]
    for g, y in enumerate(labels):
        if y.size not in (1, sizes[g]) or (y.ndim > 1 and y.size != len(y)):
            got = f"shape {list(y.shape)} for {sizes[g]} nodes"
            fix = "keep one column, data.y = data.y[:, j], or none, data.y = None"
            fail(f"y of graph {g} is neither one label nor one per node", got, fix)
    return np.concatenate([y.reshape(-1) for y in labels])


def all_or_none(values: Sequence[Any], name: str) -> bool:
    missing = [i for i, value in enumerate(values) if value is None]
    if 0 < len(missing) < len(values):
        got = f"{len(missing)} of {len(values)} without it, the first of them item {missing[0]}"
        fail(f"only some items have {name}", got, f"give {name} to all of them or to none")
    return not missing


def check_widths(widths: Sequence[int]) -> None:
    for i, width in enumerate(widths):
        if width != widths[0]:
            got = f"{widths[0]} features in item 0 and {width} in item {i}"
            fail("feature widths differ", got, "bring them to one width or leave x out")


def check_features(x: Any, sizes: Sequence[int]) -> Tensor | None:
    """Check features, one array [n_g, d] per graph or one [N, d], and copy them to [N, d]."""
    if x is None:
        return None
    nodes, reshape = sum(sizes), "pass one row per node; reshape one value per node to [N, 1]"
    if isinstance(x, (list, tuple)) and all_or_none(x, "x"):
        parts = [as_array(part, f"x of graph {g}") for g, part in enumerate(x)]
        flat = len(parts) < nodes and [p.shape for p in parts] == [(n,) for n in sizes]
        if flat or any(part.ndim > 1 for part in parts):
            if len(parts) != len(sizes):
                got = f"{len(parts)} arrays for {len(sizes)} graphs"
                fail("x has the wrong length", got, "pass one array [n_g, d] per graph")
            for g, (part, n) in enumerate(zip(parts, sizes, strict=True)):
                if part.ndim != 2 or len(part) != n:
                    got = f"shape {list(part.shape)} for {n} nodes"
                    fail(f"x of graph {g} has the wrong shape", got, reshape)
            check_widths([part.shape[1] for part in parts])
            x = np.concatenate(parts)
    x = as_array(x, "x")
    if x.ndim != 2 or len(x) != nodes:
        fail("x has the wrong shape", f"{list(x.shape)} for {nodes} nodes", reshape)
    if x.dtype.kind not in "biuf":
        fail("x does not hold real numbers", f"{x.dtype}", "pass a dense array of numbers")
    with np.errstate(over="ignore"):
        x = np.array(x, dtype=np.float32, order="C")
    if not (finite := np.isfinite(x)).all():
        node, column = np.argwhere(~finite)[0]
        g = int(np.searchsorted(np.cumsum(sizes), node, side="right"))
        got = f"{x[node, column]} as float32 in graph {g}, row {node}, column {column}"
        fail("x has NaN or infinity", got, "replace it, e.g. by numpy.nan_to_num")
    return torch.from_numpy(x)


def check_labels(y: Any, sizes: Sequence[int]) -> Tensor | None:
    """Check labels [G] or [N] and copy them: integers to int64, floats as they are."""
    if y is None:
        return None
    y = as_array(y, "y")
    if y.ndim != 1 or len(y) not in (len(sizes), sum(sizes)):
        got = f"shape {list(y.shape)} for {len(sizes)} graphs with {sum(sizes)} nodes"
        fail("y has the wrong length", got, "pass one label per graph, or one per node")
    if y.dtype.kind not in "biuf":
        fail("y does not hold numbers", f"{y.dtype}", "number the classes from 0")
    if not np.isfinite(y).all():
        row = int(np.isfinite(y).argmin())
        fail("y has NaN or infinity", f"{y[row]} at row {row}", "leave out what has no label")
    dtype = f"f{min(y.dtype.itemsize, 8)}" if y.dtype.kind == "f" else "i8"
    return torch.from_numpy(np.array(y, dtype=dtype))


def pointer(lengths: Any) -> Any:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def ranges(starts: Any, pointer: Any) -> Any:
    """Concatenate the ranges start, start + 1, ... of lengths diff(pointer)."""
    return np.arange(pointer[-1]) + np.repeat(starts - pointer[:-1], np.diff(pointer))


def canonical(
    sizes: Sequence[int],
    edges: Sequence[Any],
    changes: Counter[str],
    undirected: bool = False,
    first: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """node_ptr, row_ptr, col of edges [2, E_g]: A = [A_in or A_in^T] without diagonal.

    The nodes of every graph count from ``first``. What had to be changed is counted in ``changes``;
    where edges are ``undirected`` by nature, one that is listed in one direction is no change.
    """
    total = sum(sizes)
    check_total(total)
    ends = _joined(sizes, edges)
    native = kernels.native_data()
    made = _sparse_rows(ends, total, first) if native is None else native.canonical(
        ends, total, first
    )  # fmt: skip
    if made is None:
        raise IndexError(f"A node is out of range: there are {total}, counted from {first}.")
    count_changes(made, changes, undirected)
    arrays = pointer(sizes), made.row_ptr, made.col
    node_ptr, row_ptr, col = map(torch.from_numpy, arrays)
    return node_ptr, row_ptr, col


def count_changes(made: Any, changes: Counter[str], undirected: bool = False) -> None:
    """Count what was changed when entries were made canonical."""
    changes["duplicates"] += made.duplicates
    if made.loops:
        changes["loops"] += made.loops
    if made.one_way and not undirected:
        changes["one_way"] += made.one_way


class _Rows(NamedTuple):
    row_ptr: Any
    col: Any
    loops: int
    duplicates: int
    one_way: int


def _joined(sizes: Sequence[int], edges: Sequence[Any]) -> Any:
    """The edges of all graphs with global ids, int32 [2, E]; those of one graph as they are."""
    if len(edges) == 1 and edges[0].dtype == np.int32:
        return edges[0]
    ends = np.empty((2, sum(part.shape[1] for part in edges)), dtype=np.int32)
    node = entry = 0
    for n, part in zip(sizes, edges, strict=True):
        span = ends[:, entry : entry + part.shape[1]]
        span[:] = part
        span += node
        node, entry = node + n, entry + part.shape[1]
    return ends


def _sparse_rows(ends: Any, total: int, first: int) -> _Rows | None:
    """What the compiled code makes of entries [2, E], without it."""
    from scipy.sparse import coo_array

    if ends.size and (ends.min() < first or ends.max() >= total + first):
        return None
    kept = ends[:, ends[0] != ends[1]] - first
    # Boolean, because SciPy sums duplicates, and a small integer would wrap around to zero.
    ones = np.ones(kept.shape[1], dtype=bool)
    a = coo_array((ones, (kept[0], kept[1])), shape=(total, total)).tocsr()
    loops, duplicates = ends.shape[1] - kept.shape[1], kept.shape[1] - a.nnz
    del kept, ones
    reverse = a.T.tocsr()
    same = np.array_equal(a.indptr, reverse.indptr) and np.array_equal(a.indices, reverse.indices)
    # |A or A^T| - |A| = |A| - |A and A^T|: the entries whose reverse is absent.
    either = a if same else a.maximum(reverse)
    row_ptr, col = either.indptr.astype(np.int64), either.indices.astype(np.int32, copy=False)
    return _Rows(row_ptr, col, loops, duplicates, either.nnz - a.nnz)


def describe_changes(changes: Counter[str]) -> str:
    """What was changed, in words; empty if nothing was."""
    return ", ".join(f"{text}: {changes[key]:,}" for key, text in _CHANGES.items() if changes[key])


def announce(changes: Counter[str], strict: bool) -> None:
    """Warn of what was changed, or refuse it."""
    found = describe_changes(changes)
    if found and strict:
        fail("the graphs are not canonical and strict=True", found, "clean them, or drop strict")
    if found:
        warnings.warn(
            f"graphs were made undirected, loop-free, coalesced and binary ({found}). "
            "strict=True refuses such input; warnings.simplefilter('ignore', "
            "artlas.GraphCleaningWarning) silences this.",
            GraphCleaningWarning,
            stacklevel=4,
        )
