"""Many undirected graphs in one ragged CSR, made canonical once, on entry.

Shapes: G graphs, N nodes in all of them, n_g nodes in graph g, d features. Objects of NetworkX,
SciPy and PyTorch Geometric are recognised by what they offer, so none of the three is imported
before it is needed, and the last never.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Number
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

__all__ = ["GraphCleaningWarning", "GraphError", "Graphs", "as_graphs"]

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


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Graphs:
    """G >= 1 undirected graphs as the CSR of their block-diagonal adjacency; treat as immutable.

    The neighbours of node i are ``col[row_ptr[i]:row_ptr[i + 1]]``: global ids, ascending, without
    i itself, and i is among theirs. Use a ``from_*`` constructor: calling the class checks nothing.

    Shapes: node_ptr int64 [G + 1], row_ptr int64 [N + 1], col int32 [2 * num_edges];
    x float32 [N, d] or None; y int64 or float, [G] (per graph) or [N] (per node), or None.
    """

    node_ptr: Tensor
    row_ptr: Tensor
    col: Tensor
    x: Tensor | None = None
    y: Tensor | None = None

    @classmethod
    def from_edges(cls, graphs: Any, x: Any = None, y: Any = None, strict: bool = False) -> Graphs:
        """Build from ``(num_nodes, edge_index [2, E])`` pairs, or from a single such pair.

        x is one array [n_g, d] per graph, or all of them in one [N, d]; y is [G] or [N].
        """
        pairs = _items(graphs, _is_pair, "a (num_nodes, edge_index) pair")
        sizes = [_check_size(n, g) for g, (n, _) in enumerate(pairs)]
        features, labels = _features(x, sizes), _labels(y, sizes)
        edges = [_check_edges(edge_index, sizes[g], g) for g, (_, edge_index) in enumerate(pairs)]
        return _build(sizes, edges, features, labels, Counter(), strict)

    @classmethod
    def from_networkx(
        cls, graphs: Any, x: Any = None, y: Any = None, strict: bool = False
    ) -> Graphs:
        """Build from NetworkX graphs of any kind, nodes in each graph's own order.

        x is as in :meth:`from_edges`, or the name of a node attribute, or a list of such names.
        """
        graphs, changes = _items(graphs, _is_networkx, "a NetworkX graph"), Counter[str]()
        sizes = [_check_size(len(graph), g) for g, graph in enumerate(graphs)]
        names = [x] if isinstance(x, str) else x
        if isinstance(names, (list, tuple)) and names and all(isinstance(n, str) for n in names):
            x = [_networkx_features(graph, names, g) for g, graph in enumerate(graphs)]
        features, labels = _features(x, sizes), _labels(y, sizes)
        edges = [_networkx_edges(graph, changes) for graph in graphs]
        return _build(sizes, edges, features, labels, changes, strict)

    @classmethod
    def from_pyg(cls, data: Any, strict: bool = False) -> Graphs:
        """Build from a PyTorch Geometric Data, Batch or Dataset, or any iterable of Data or Batch.

        ``y`` must be one label per graph, or one per node.
        """
        items, changes = _items(data, _is_data, "a Data with edge_index"), Counter[str]()
        items = [data for i, item in enumerate(items) for data in _data_list(item, i)]
        sizes = [_check_size(item.num_nodes, g) for g, item in enumerate(items)]
        xs, ys = ([getattr(item, name, None) for item in items] for name in "xy")
        features = _features(xs, sizes) if _all_or_none(xs, "x") else None
        labels = _labels(_data_labels(ys, sizes), sizes) if _all_or_none(ys, "y") else None
        edges = [_data_edges(item, sizes[g], g, changes) for g, item in enumerate(items)]
        return _build(sizes, edges, features, labels, changes, strict)

    @classmethod
    def from_scipy(
        cls, matrices: Any, x: Any = None, y: Any = None, strict: bool = False
    ) -> Graphs:
        """Build from square adjacencies [n_g, n_g], SciPy sparse or dense; zeros are no edges."""
        matrices, changes = _items(matrices, _is_matrix, "a sparse or 2-D array"), Counter[str]()
        sizes = [_check_square(matrix, g) for g, matrix in enumerate(matrices)]
        features, labels = _features(x, sizes), _labels(y, sizes)
        edges = [_matrix_edges(matrix, g, changes) for g, matrix in enumerate(matrices)]
        return _build(sizes, edges, features, labels, changes, strict)

    @classmethod
    def concat(cls, parts: Iterable[Graphs]) -> Graphs:
        """Put collections one after the other; all or none have x, all or none have y."""
        parts = _items(parts, lambda part: isinstance(part, Graphs), "a Graphs")
        xs, ys = [part.x for part in parts], [part.y for part in parts]
        has_x, has_y = _all_or_none(xs, "x"), _all_or_none(ys, "y")
        if has_x:
            _check_widths([part.num_features for part in parts])
        *nodes, total = np.cumsum([0] + [part.num_nodes for part in parts]).tolist()
        *entries, _ = np.cumsum([0] + [len(part.col) for part in parts]).tolist()
        _check_total(total)
        if has_y and sum(map(len, ys)) not in (sum(map(len, parts)), total):
            got, fix = (
                f"lengths {[len(y) for y in ys]}",
                "drop y by with_labels(None) or replace it",
            )
            _fail("y is per graph in some parts and per node in others", got, fix)
        zero = torch.zeros(1, dtype=torch.int64)
        return cls(
            torch.cat([zero] + [p.node_ptr[1:] + n for p, n in zip(parts, nodes, strict=True)]),
            torch.cat([zero] + [p.row_ptr[1:] + e for p, e in zip(parts, entries, strict=True)]),
            torch.cat([p.col + n for p, n in zip(parts, nodes, strict=True)]),
            torch.cat(xs) if has_x else None,
            torch.cat(ys) if has_y else None,
        )

    @property
    def num_graphs(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def num_nodes(self) -> int:
        return len(self.row_ptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of undirected edges, half the stored entries."""
        return len(self.col) // 2

    @property
    def num_features(self) -> int:
        return 0 if self.x is None else self.x.shape[1]

    @functools.cached_property
    def degree(self) -> Tensor:
        """Number of neighbours of every node, float32 [N]."""
        return self.row_ptr.diff().to(torch.float32)

    @functools.cached_property
    def sizes(self) -> Tensor:
        """Number of nodes of every graph, int64 [G]."""
        return self.node_ptr.diff()

    def __len__(self) -> int:
        return self.num_graphs

    def __repr__(self) -> str:
        return (
            f"Graphs({self.num_graphs:,} graphs, {self.num_nodes:,} nodes, "
            f"{self.num_edges:,} edges, {self.num_features:,} features)"
        )

    def __iter__(self) -> Iterator[Graphs]:
        return (self._range(g, g + 1) for g in range(self.num_graphs))

    def __getitem__(self, index: Any) -> Graphs:
        """Select graphs by number, slice, boolean mask [G], or numbers in any order, repeats too.

        A selection without any graph is a :class:`GraphError`.
        """
        if isinstance(index, slice):
            start, stop, step = index.indices(self.num_graphs)
            if step == 1 and start < stop:
                return self._range(start, stop)
            index = range(start, stop, step)
        ids = _array(index, "the index")
        if ids.dtype == bool and ids.shape == (self.num_graphs,):
            ids = ids.nonzero()[0]
        if ids.shape == (0,):
            _fail("the selection has no graph", f"{index!r}", "select at least one")
        if ids.dtype.kind not in "iu" or ids.ndim > 1:
            raise IndexError(
                f"Graphs takes a number, a slice, a mask of {self.num_graphs} booleans or a list "
                f"of numbers; got {ids.dtype} of shape {list(ids.shape)}."
            )
        if ids.min() < -self.num_graphs or ids.max() >= self.num_graphs:
            raise IndexError(f"graph number out of range; got {index!r} for {self!r}.")
        ids = ids.astype(np.int64) % self.num_graphs
        return self._range(int(ids), int(ids) + 1) if ids.ndim == 0 else self._take(ids)

    def _range(self, start: int, stop: int) -> Graphs:
        first, last = int(self.node_ptr[start]), int(self.node_ptr[stop])
        begin, end = int(self.row_ptr[first]), int(self.row_ptr[last])
        y_span = slice(start, stop) if self._y_per_graph else slice(first, last)
        return Graphs(
            self.node_ptr[start : stop + 1] - first,
            self.row_ptr[first : last + 1] - begin,
            self.col[begin:end] - first,
            None if self.x is None else self.x[first:last],
            None if self.y is None else self.y[y_span],
        )

    def _take(self, ids: Any) -> Graphs:
        # NumPy, because torch.repeat_interleave splits even ten elements over its threads.
        old_ptr, old_rows = self.node_ptr.numpy(), self.row_ptr.numpy()
        first = old_ptr[ids]
        node_ptr = _pointer(old_ptr[ids + 1] - first)
        _check_total(int(node_ptr[-1]))
        nodes = _ranges(first, node_ptr)
        row_ptr = _pointer(old_rows[nodes + 1] - old_rows[nodes])
        entry_ptr = row_ptr[node_ptr]
        col = self.col.numpy()[_ranges(old_rows[first], entry_ptr)]
        col += np.repeat((node_ptr[:-1] - first).astype(np.int32), np.diff(entry_ptr))
        y_ids = ids if self._y_per_graph else nodes
        return Graphs(
            torch.from_numpy(node_ptr),
            torch.from_numpy(row_ptr),
            torch.from_numpy(col),
            None if self.x is None else self.x[torch.from_numpy(nodes)],
            None if self.y is None else self.y[torch.from_numpy(y_ids)],
        )

    @property
    def _y_per_graph(self) -> bool:
        return self.y is not None and len(self.y) == self.num_graphs

    def batches(self, max_nodes: int) -> Iterator[Graphs]:
        """Cut into runs of at most max_nodes nodes, in order; a graph above it comes alone."""
        whole = isinstance(max_nodes, (int, np.integer)) and not isinstance(max_nodes, bool)
        if not whole or max_nodes < 1:
            _fail("max_nodes is not a positive integer", f"{max_nodes!r}", "pass e.g. 4096")
        pointer, cuts = self.node_ptr.numpy(), [0]
        while cuts[-1] < self.num_graphs:
            stop = np.searchsorted(pointer, pointer[cuts[-1]] + max_nodes, side="right") - 1
            cuts.append(max(int(stop), cuts[-1] + 1))
        return (self._range(start, stop) for start, stop in itertools.pairwise(cuts))

    def to_scipy(self, i: int) -> Any:
        """Adjacency of graph i, a SciPy CSR array float32 [n_i, n_i]."""
        from scipy.sparse import csr_array

        graph = self[operator.index(i)]
        ones = np.ones(len(graph.col), dtype=np.float32)
        shape = (graph.num_nodes, graph.num_nodes)
        return csr_array((ones, graph.col.numpy(), graph.row_ptr.numpy()), shape=shape)

    def with_features(self, x: Any) -> Graphs:
        """Return the same graphs with other features: [N, d], one array per graph, or None."""
        return dataclasses.replace(self, x=_features(x, self.sizes.tolist()))

    def with_labels(self, y: Any) -> Graphs:
        """Return the same graphs with other labels: [G], [N] or None."""
        return dataclasses.replace(self, y=_labels(y, self.sizes.tolist()))


def as_graphs(obj: Any, x: Any = None, y: Any = None, strict: bool = False) -> Graphs:
    """Turn whatever holds graphs into :class:`Graphs`; x and y replace those that obj carries."""
    if isinstance(obj, Graphs):
        graphs = obj
    else:
        accepted = (
            "Graphs, a (num_nodes, edge_index) pair, a NetworkX graph, a SciPy sparse matrix, a "
            "square array, a PyTorch Geometric Data or Batch, or a list of them"
        )
        kinds = {
            Graphs.from_networkx: _is_networkx,
            Graphs.from_scipy: _is_matrix,
            Graphs.from_edges: _is_pair,
        }
        items = _items(
            obj, lambda i: any(is_a(i) for is_a in [*kinds.values(), _is_data]), accepted
        )
        for read, is_a in kinds.items():
            if is_a(items[0]):
                return read(items, x, y, strict)
        graphs = Graphs.from_pyg(items, strict)
    graphs = graphs if x is None else graphs.with_features(x)
    return graphs if y is None else graphs.with_labels(y)


def _fail(wrong: str, got: str, fix: str) -> NoReturn:
    raise GraphError(f"{wrong}; got {got}. To fix this, {fix}.")


def _items(obj: Any, test: Callable[[Any], bool], what: str) -> list[Any]:
    """Return [obj] if obj passes the test, else its elements, all of which must pass it."""
    if test(obj):
        return [obj]
    kind = type(obj).__name__
    try:
        items = list(obj)
    except TypeError:
        _fail(f"the input is not {what}", f"a {kind}", "convert it")
    if not items:
        _fail("the collection is empty", f"a {kind} without items", "pass at least one graph")
    for i, item in enumerate(items):
        if not test(item):
            got = f"a {type(item).__name__} in a {kind}"
            _fail(f"item {i} is not {what}", got, "convert it or leave it out")
    return items


def _is_pair(obj: Any) -> bool:
    if not isinstance(obj, (tuple, list)) or len(obj) != 2:
        return False
    return isinstance(obj[0], (Number, np.generic)) or getattr(obj[0], "ndim", None) == 0


def _is_networkx(obj: Any) -> bool:
    return hasattr(obj, "is_multigraph") and hasattr(obj, "nodes")


def _is_matrix(obj: Any) -> bool:
    return getattr(obj, "ndim", 0) == 2 and (hasattr(obj, "tocoo") or isinstance(obj, np.ndarray))


def _is_data(obj: Any) -> bool:
    # Static, because a PyG InMemoryDataset, too, answers hasattr(dataset, "edge_index") with True.
    return inspect.getattr_static(obj, "edge_index", None) is not None


def _array(value: Any, what: str) -> Any:
    try:
        if isinstance(value, Tensor):
            value = value.float() if value.dtype == torch.bfloat16 else value
            value = value.detach().cpu().numpy()
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        got = f"a {type(value).__name__} ({error})"
        _fail(f"{what} is not one dense array", got, "pass an array or evenly nested lists")


def _check_total(nodes: int) -> None:
    if nodes > np.iinfo(np.int32).max:
        _fail("too many nodes for 32-bit ids", f"{nodes:,}", "split the collection")


def _check_size(n: Any, g: int) -> int:
    try:
        size = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        size = 0
    if size < 1:
        fix = "leave out graphs without nodes and pass num_nodes as an int"
        _fail(f"graph {g} has no nodes, or no whole number of nodes", f"num_nodes = {n!r}", fix)
    return size


def _check_edges(edge_index: Any, n: int, g: int) -> Any:
    """Check edge_index [2, E] against n nodes and return it as an array of integers."""
    edges = _array(edge_index, f"edge_index of graph {g}")
    if edges.size == 0:
        return np.empty((2, 0), dtype=np.int32)
    if edges.ndim != 2 or len(edges) != 2:
        got = f"a {type(edge_index).__name__} of shape {list(edges.shape)}"
        fix = "stack sources and targets as its two rows; transpose a list of pairs"
        _fail(f"edge_index of graph {g} is not of shape [2, E]", got, fix)
    if edges.dtype.kind not in "iu":
        _fail(f"node ids of graph {g} are not integers", f"{edges.dtype}", "convert them to int64")
    low, high = edges.min(), edges.max()
    if low < 0:
        _fail(f"a node id of graph {g} is negative", f"{low}", "number the nodes from 0")
    if high >= n:
        fix = "raise num_nodes, or number the nodes from 0"
        _fail(f"a node id of graph {g} is out of range", f"{high} with num_nodes = {n}", fix)
    return edges


def _check_square(matrix: Any, g: int) -> int:
    if matrix.shape[0] != matrix.shape[1]:
        fix = "pass [n, n] (for a bipartite block B, [[0, B], [B.T, 0]])"
        _fail(f"the matrix of graph {g} is not square", f"shape {list(matrix.shape)}", fix)
    return _check_size(matrix.shape[0], g)


def _matrix_edges(matrix: Any, g: int, changes: Counter[str]) -> Any:
    if isinstance(matrix, np.ndarray):
        edges = np.stack(np.asarray(matrix).nonzero())
        values = np.asarray(matrix)[edges[0], edges[1]]
    else:
        matrix = matrix.tocoo()
        edges, values = np.stack([matrix.row, matrix.col]), matrix.data
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        fix = "store every edge as 1 and nothing else"
        _fail(f"the matrix of graph {g} has entries that are not finite", f"{values.dtype}", fix)
    if not values.all():
        edges, values = edges[:, values != 0], values[values != 0]
    changes["weights"] += int((values != 1).sum())
    return edges


def _networkx_edges(graph: Any, changes: Counter[str]) -> Any:
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


def _networkx_features(graph: Any, names: Sequence[str], g: int) -> Any:
    columns = []
    for name in names:
        values = [attributes.get(name) for _, attributes in graph.nodes(data=True)]
        if (missing := [n for n, v in zip(graph, values, strict=True) if v is None]) != []:
            got = f"node {missing[0]!r} without it"
            _fail(f"not every node of graph {g} has {name!r}", got, "set this node attribute")
        column = _array(values, f"node attribute {name!r} of graph {g}")
        columns.append(column.reshape(len(values), -1))
    return np.concatenate(columns, axis=1)


def _data_list(data: Any, i: int) -> list[Any]:
    got = "a node-to-graph vector without to_data_list()"
    if hasattr(data, "to_data_list"):
        try:
            return list(data.to_data_list())
        except RuntimeError as error:
            got = str(error)
    elif getattr(data, "batch", None) is None:
        return [data]
    _fail(f"item {i} is a batch that cannot be split", got, "pass the list of its Data objects")


def _data_edges(data: Any, n: int, g: int, changes: Counter[str]) -> Any:
    edges = _check_edges(data.edge_index, n, g)
    for name in ("edge_weight", "edge_attr"):
        value = getattr(data, name, None)
        if value is not None and edges.shape[1]:
            value = _array(value, f"{name} of graph {g}")
            if value.size == edges.shape[1]:
                changes["weights"] += int((value != 1).sum())
            else:
                changes["attributes"] += 1
    return edges


def _data_labels(ys: Sequence[Any], sizes: Sequence[int]) -> Any:
    labels = [_array(y, f"y of graph {g}") for g, y in enumerate(ys)]
    for g, y in enumerate(labels):
        if y.size not in (1, sizes[g]) or (y.ndim > 1 and y.size != len(y)):
            got = f"shape {list(y.shape)} for {sizes[g]} nodes"
            fix = "keep one column, data.y = data.y[:, j], or none, data.y = None"
            _fail(f"y of graph {g} is neither one label nor one per node", got, fix)
    return np.concatenate([y.reshape(-1) for y in labels])


def _all_or_none(values: Sequence[Any], name: str) -> bool:
    missing = [i for i, value in enumerate(values) if value is None]
    if 0 < len(missing) < len(values):
        got = f"{len(missing)} of {len(values)} without it, the first of them item {missing[0]}"
        _fail(f"only some items have {name}", got, f"give {name} to all of them or to none")
    return not missing


def _check_widths(widths: Sequence[int]) -> None:
    for i, width in enumerate(widths):
        if width != widths[0]:
            got = f"{widths[0]} features in item 0 and {width} in item {i}"
            _fail("feature widths differ", got, "bring them to one width or leave x out")


def _features(x: Any, sizes: Sequence[int]) -> Tensor | None:
    """Check features, one array [n_g, d] per graph or one [N, d], and copy them to [N, d]."""
    if x is None:
        return None
    nodes, reshape = sum(sizes), "pass one row per node; reshape one value per node to [N, 1]"
    if isinstance(x, (list, tuple)) and _all_or_none(x, "x"):
        parts = [_array(part, f"x of graph {g}") for g, part in enumerate(x)]
        flat = len(parts) < nodes and [p.shape for p in parts] == [(n,) for n in sizes]
        if flat or any(part.ndim > 1 for part in parts):
            if len(parts) != len(sizes):
                got = f"{len(parts)} arrays for {len(sizes)} graphs"
                _fail("x has the wrong length", got, "pass one array [n_g, d] per graph")
            for g, (part, n) in enumerate(zip(parts, sizes, strict=True)):
                if part.ndim != 2 or len(part) != n:
                    got = f"shape {list(part.shape)} for {n} nodes"
                    _fail(f"x of graph {g} has the wrong shape", got, reshape)
            _check_widths([part.shape[1] for part in parts])
            x = np.concatenate(parts)
    x = _array(x, "x")
    if x.ndim != 2 or len(x) != nodes:
        _fail("x has the wrong shape", f"{list(x.shape)} for {nodes} nodes", reshape)
    if x.dtype.kind not in "biuf":
        _fail("x does not hold real numbers", f"{x.dtype}", "pass a dense array of numbers")
    with np.errstate(over="ignore"):
        x = np.array(x, dtype=np.float32, order="C")
    if not (finite := np.isfinite(x)).all():
        node, column = np.argwhere(~finite)[0]
        g = int(np.searchsorted(np.cumsum(sizes), node, side="right"))
        got = f"{x[node, column]} as float32 in graph {g}, row {node}, column {column}"
        _fail("x has NaN or infinity", got, "replace it, e.g. by numpy.nan_to_num")
    return torch.from_numpy(x)


def _labels(y: Any, sizes: Sequence[int]) -> Tensor | None:
    """Check labels [G] or [N] and copy them: integers to int64, floats as they are."""
    if y is None:
        return None
    y = _array(y, "y")
    if y.ndim != 1 or len(y) not in (len(sizes), sum(sizes)):
        got = f"shape {list(y.shape)} for {len(sizes)} graphs with {sum(sizes)} nodes"
        _fail("y has the wrong length", got, "pass one label per graph, or one per node")
    if y.dtype.kind not in "biuf":
        _fail("y does not hold numbers", f"{y.dtype}", "number the classes from 0")
    if not np.isfinite(y).all():
        row = int(np.isfinite(y).argmin())
        _fail("y has NaN or infinity", f"{y[row]} at row {row}", "leave out what has no label")
    dtype = f"f{min(y.dtype.itemsize, 8)}" if y.dtype.kind == "f" else "i8"
    return torch.from_numpy(np.array(y, dtype=dtype))


def _pointer(lengths: Any) -> Any:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _ranges(starts: Any, pointer: Any) -> Any:
    """Concatenate the ranges start, start + 1, ... of lengths diff(pointer)."""
    return np.arange(pointer[-1]) + np.repeat(starts - pointer[:-1], np.diff(pointer))


def _build(
    sizes: Sequence[int],
    edges: Sequence[Any],
    x: Tensor | None,
    y: Tensor | None,
    changes: Counter[str],
    strict: bool,
) -> Graphs:
    """Make checked edges [2, E_g] canonical, A = [A_in or A_in^T] without diagonal, and report."""
    from scipy.sparse import coo_array

    total, stored = sum(sizes), sum(part.shape[1] for part in edges)
    _check_total(total)
    ends = np.empty((2, stored), dtype=np.int32)
    node = entry = 0
    for n, part in zip(sizes, edges, strict=True):
        span = ends[:, entry : entry + part.shape[1]]
        span[:] = part
        span += node
        node, entry = node + n, entry + part.shape[1]
    if (loops := ends[0] == ends[1]).any():
        ends = ends[:, ~loops]
        changes["loops"] = stored - ends.shape[1]
    # Boolean, because SciPy sums duplicates, and a small integer would wrap around to zero.
    ones = np.ones(ends.shape[1], dtype=bool)
    a = coo_array((ones, (ends[0], ends[1])), shape=(total, total)).tocsr()
    changes["duplicates"] += ends.shape[1] - a.nnz
    del ends, ones, loops
    reverse = a.T.tocsr()
    same = np.array_equal(a.indptr, reverse.indptr) and np.array_equal(a.indices, reverse.indices)
    if not same:
        # |A or A^T| - |A| = |A| - |A and A^T|: the entries whose reverse is absent.
        either = a.maximum(reverse)
        changes["one_way"], a = either.nnz - a.nnz, either
    found = ", ".join(f"{text}: {changes[key]:,}" for key, text in _CHANGES.items() if changes[key])
    if found and strict:
        _fail("the graphs are not canonical and strict=True", found, "clean them, or drop strict")
    if found:
        warnings.warn(
            f"graphs were made undirected, loop-free, coalesced and binary ({found}). "
            "strict=True refuses such input; warnings.simplefilter('ignore', "
            "artlas.GraphCleaningWarning) silences this.",
            GraphCleaningWarning,
            stacklevel=3,
        )
    row_ptr = torch.from_numpy(a.indptr.astype(np.int64))
    col = torch.from_numpy(a.indices.astype(np.int32, copy=False))
    return Graphs(torch.from_numpy(_pointer(sizes)), row_ptr, col, x, y)
