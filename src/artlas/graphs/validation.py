"""Check the sizes, edges, features and labels from which :class:`artlas.Graphs` is built."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from artlas.errors import raise_graph_error

SQUARE_FIX = "pass an [n, n] matrix (for a bipartite block B, [[0, B], [B.T, 0]])"


def items_of(obj: Any, test: Callable[[Any], bool], what: str) -> list[Any]:
    """Return [obj] if obj passes the test, else its elements, all of which must pass it."""
    if test(obj):
        return [obj]
    kind = type(obj).__name__
    try:
        items = list(obj)
    except TypeError:
        raise_graph_error(f"the input is not {what}", f"a {kind}", "convert it")
    if not items:
        raise_graph_error("the collection is empty", f"an empty {kind}", "pass at least one graph")
    for i, item in enumerate(items):
        if not test(item):
            got = f"a {type(item).__name__} in a {kind}"
            raise_graph_error(f"item {i} is not {what}", got, "convert it or leave it out")
    return items


def as_array(value: Any, what: str) -> Any:
    """Return a NumPy array of a tensor, an array or lists; errors call it ``what``."""
    try:
        if isinstance(value, Tensor):
            value = value.float() if value.dtype == torch.bfloat16 else value
            value = value.detach().cpu().numpy()
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        got, fix = f"a {type(value).__name__} ({error})", "pass an array or evenly nested lists"
        raise_graph_error(f"{what} is not one dense array", got, fix)


def check_total(nodes: int) -> None:
    if nodes > np.iinfo(np.int32).max:
        raise_graph_error("too many nodes for 32-bit ids", f"{nodes:,}", "split the collection")


def check_size(n: Any, g: int) -> int:
    try:
        size = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        size = 0
    if size < 1:
        wrong = f"graph {g} has no nodes, or no whole number of nodes"
        fix = "leave out graphs without nodes and pass num_nodes as an int"
        raise_graph_error(wrong, f"num_nodes = {n!r}", fix)
    return size


def check_edges(edge_index: Any, n: int, g: int) -> Any:
    """Check edge_index [2, E] against n nodes and return it as an array of integers."""
    edges, name = as_array(edge_index, f"edge_index of graph {g}"), f"a node id of graph {g}"
    if edges.size == 0:
        return np.empty((2, 0), dtype=np.int32)
    if edges.ndim != 2 or len(edges) != 2:
        got = f"a {type(edge_index).__name__} of shape {list(edges.shape)}"
        fix = "stack sources and targets as its two rows; transpose a list of pairs"
        raise_graph_error(f"edge_index of graph {g} is not of shape [2, E]", got, fix)
    if edges.dtype.kind not in "iu":
        raise_graph_error(f"{name} is not an integer", f"{edges.dtype}", "convert them to int64")
    low, high = edges.min(), edges.max()
    if low < 0:
        raise_graph_error(f"{name} is negative", f"{low}", "number the nodes from 0")
    if high >= n:
        fix = "raise num_nodes, or number the nodes from 0"
        raise_graph_error(f"{name} is out of range", f"{high} with num_nodes = {n}", fix)
    return edges


def check_square(matrix: Any, g: int) -> int:
    if matrix.shape[0] != matrix.shape[1]:
        got = f"shape {list(matrix.shape)}"
        raise_graph_error(f"the matrix of graph {g} is not square", got, SQUARE_FIX)
    return check_size(matrix.shape[0], g)


def all_or_none(values: Sequence[Any], name: str) -> bool:
    """Return whether the items have ``name``; refuse it if only some of them do."""
    missing = [i for i, value in enumerate(values) if value is None]
    if 0 < len(missing) < len(values):
        got = f"{len(missing)} of {len(values)} without it, the first of them item {missing[0]}"
        raise_graph_error(f"only some items have {name}", got, f"give {name} to all or to none")
    return not missing


def check_widths(widths: Sequence[int]) -> None:
    for i, width in enumerate(widths):
        if width != widths[0]:
            got = f"{widths[0]} features in item 0 and {width} in item {i}"
            raise_graph_error("feature widths differ", got, "use one width or leave x out")


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
                raise_graph_error("x has the wrong length", got, "pass one array per graph")
            for g, (part, n) in enumerate(zip(parts, sizes, strict=True)):
                if part.ndim != 2 or len(part) != n:
                    got = f"shape {list(part.shape)} for {n} nodes"
                    raise_graph_error(f"x of graph {g} has the wrong shape", got, reshape)
            check_widths([part.shape[1] for part in parts])
            x = np.concatenate(parts)
    x = as_array(x, "x")
    if x.ndim != 2 or len(x) != nodes:
        raise_graph_error("x has the wrong shape", f"{list(x.shape)} for {nodes} nodes", reshape)
    if x.dtype.kind not in "biuf":
        raise_graph_error("x does not hold real numbers", f"{x.dtype}", "pass an array of numbers")
    with np.errstate(over="ignore"):
        x = np.array(x, dtype=np.float32, order="C")
    if not (finite := np.isfinite(x)).all():
        node, column = np.argwhere(~finite)[0]
        g = int(np.searchsorted(np.cumsum(sizes), node, side="right"))
        got = f"{x[node, column]} as float32 in graph {g}, row {node}, column {column}"
        raise_graph_error("x has NaN or infinity", got, "replace it, e.g. by numpy.nan_to_num")
    return torch.from_numpy(x)


def check_labels(y: Any, sizes: Sequence[int]) -> Tensor | None:
    """Check labels [G] or [N] and copy them: integers to int64, floats as they are."""
    if y is None:
        return None
    y = as_array(y, "y")
    if y.ndim != 1 or len(y) not in (len(sizes), sum(sizes)):
        got = f"shape {list(y.shape)} for {len(sizes)} graphs with {sum(sizes)} nodes"
        raise_graph_error("y has the wrong length", got, "pass one label per graph or per node")
    if y.dtype.kind not in "biuf":
        raise_graph_error("y does not hold numbers", f"{y.dtype}", "number the classes from 0")
    if not (finite := np.isfinite(y)).all():
        row = int(finite.argmin())
        got, fix = f"{y[row]} at row {row}", "leave out graphs or nodes without a label"
        raise_graph_error("y has NaN or infinity", got, fix)
    dtype = f"f{min(y.dtype.itemsize, 8)}" if y.dtype.kind == "f" else "i8"
    return torch.from_numpy(np.array(y, dtype=dtype))
