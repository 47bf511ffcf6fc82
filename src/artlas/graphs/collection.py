"""Many undirected graphs in one ragged CSR, made canonical once, on entry.

Shapes: G graphs, N nodes in all of them, n_g nodes in graph g, d features.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas.errors import raise_graph_error
from artlas.graphs import convert, molecules
from artlas.graphs.canonical import announce, canonical
from artlas.graphs.ragged import pointer, ranges, spans
from artlas.graphs.validation import (
    all_or_none,
    as_array,
    check_edges,
    check_features,
    check_labels,
    check_size,
    check_square,
    check_total,
    check_widths,
    items_of,
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Graphs:
    """G >= 1 undirected graphs as the CSR of their block-diagonal adjacency; treat as immutable.

    The neighbours of node i are ``col[row_ptr[i]:row_ptr[i + 1]]``: global ids, ascending, without
    i itself, and mutual. Use a ``from_*`` constructor: calling the class checks nothing.

    Shapes: node_ptr int64 [G + 1], row_ptr int64 [N + 1], col int32 [2 * num_edges];
    x float32 [N, d] or None; y int64 or float, [G] (per graph) or [N] (per node), or None;
    ids: what the file called the nodes, an array [N] of int or str, or None.
    """

    node_ptr: Tensor
    row_ptr: Tensor
    col: Tensor
    x: Tensor | None = None
    y: Tensor | None = None
    ids: NDArray[Any] | None = None

    @classmethod
    def from_edges(cls, graphs: Any, x: Any = None, y: Any = None, strict: bool = False) -> Graphs:
        """Build from ``(num_nodes, edge_index [2, E])`` pairs, or from a single such pair.

        x is one array [n_g, d] per graph, or all of them in one [N, d]; y is [G] or [N].
        """
        pairs = items_of(graphs, convert.is_pair, "a (num_nodes, edge_index) pair")
        sizes = [check_size(n, g) for g, (n, _) in enumerate(pairs)]
        return cls._build(sizes, lambda g, _: check_edges(pairs[g][1], sizes[g], g), x, y, strict)

    @classmethod
    def from_networkx(
        cls, graphs: Any, x: Any = None, y: Any = None, strict: bool = False
    ) -> Graphs:
        """Build from NetworkX graphs of any kind, nodes in each graph's own order.

        x is as in :meth:`from_edges`, or the name of a node attribute, or a list of such names.
        """
        graphs = items_of(graphs, convert.is_networkx, "a NetworkX graph")
        sizes = [check_size(len(graph), g) for g, graph in enumerate(graphs)]
        names = [x] if isinstance(x, str) else x
        if isinstance(names, (list, tuple)) and names and all(isinstance(n, str) for n in names):
            x = [convert.networkx_features(graph, names, g) for g, graph in enumerate(graphs)]
        return cls._build(sizes, lambda g, c: convert.networkx_edges(graphs[g], c), x, y, strict)

    @classmethod
    def from_pyg(cls, data: Any, strict: bool = False) -> Graphs:
        """Build from a PyTorch Geometric Data, Batch or Dataset, or any iterable of Data or Batch.

        ``y`` must be one label per graph, or one per node.
        """
        batches = items_of(data, convert.is_data, "a Data with edge_index")
        items = [data for i, batch in enumerate(batches) for data in convert.data_list(batch, i)]
        sizes = [check_size(item.num_nodes, g) for g, item in enumerate(items)]
        xs, ys = ([getattr(item, name, None) for item in items] for name in "xy")
        x = xs if all_or_none(xs, "x") else None
        y = convert.data_labels(ys, sizes) if all_or_none(ys, "y") else None
        return cls._build(sizes, lambda g, c: convert.data_edges(items[g], g, c), x, y, strict)

    @classmethod
    def from_scipy(
        cls, matrices: Any, x: Any = None, y: Any = None, strict: bool = False
    ) -> Graphs:
        """Build from square adjacencies [n_g, n_g], SciPy sparse or dense; zeros are no edges."""
        matrices = items_of(matrices, convert.is_matrix, "a sparse or 2-D array")
        sizes = [check_square(matrix, g) for g, matrix in enumerate(matrices)]
        edges_of = convert.matrix_edges
        return cls._build(sizes, lambda g, c: edges_of(matrices[g], g, c), x, y, strict)

    @classmethod
    def from_smiles(cls, smiles: Any, y: Any = None) -> Graphs:
        """Build from SMILES strings: atoms with nine integer fields each, joined by bonds."""
        texts = [smiles] if isinstance(smiles, str) else list(smiles)
        rows = [(f"smiles[{i}]", None, text) for i, text in enumerate(texts)]
        sizes, bonds, x = molecules.parse(rows, "smiles")
        row_ptr, col = canonical([len(x)], [bonds], Counter(), undirected=True)
        node_ptr, labels = torch.from_numpy(pointer(sizes)), check_labels(y, sizes)
        return cls(node_ptr, row_ptr, col, torch.from_numpy(x), labels)

    @classmethod
    def _build(
        cls, sizes: list[int], edges_of: Callable[..., Any], x: Any, y: Any, strict: bool
    ) -> Graphs:
        """Clean the edges, ``edges_of(g, changes)``, which counts in a Counter what it drops."""
        features, labels, changes = check_features(x, sizes), check_labels(y, sizes), Counter[str]()
        edges = [edges_of(g, changes) for g in range(len(sizes))]
        node_ptr = torch.from_numpy(pointer(sizes))
        graphs = cls(node_ptr, *canonical(sizes, edges, changes), features, labels)
        announce(changes, strict)
        return graphs

    @classmethod
    def concat(cls, parts: Iterable[Graphs]) -> Graphs:
        """Concatenate collections; all or none have x, all or none have y."""
        parts = items_of(parts, lambda part: isinstance(part, Graphs), "a Graphs")
        xs, ys = [part.x for part in parts], [part.y for part in parts]
        names: list[Any] = [part.ids for part in parts]
        has_x, has_y = all_or_none(xs, "x"), all_or_none(ys, "y")
        if has_x:
            check_widths([part.num_features for part in parts])
        *nodes, total = np.cumsum([0] + [part.num_nodes for part in parts]).tolist()
        *entries, _ = np.cumsum([0] + [len(part.col) for part in parts]).tolist()
        check_total(total)
        if has_y and sum(map(len, ys)) not in (sum(map(len, parts)), total):
            got = f"lengths {[len(y) for y in ys]}"
            fix = "drop y by with_labels(None) or replace it"
            raise_graph_error("y is per graph in some parts and per node in others", got, fix)
        zero = torch.zeros(1, dtype=torch.int64)
        return cls(
            torch.cat([zero] + [p.node_ptr[1:] + n for p, n in zip(parts, nodes, strict=True)]),
            torch.cat([zero] + [p.row_ptr[1:] + e for p, e in zip(parts, entries, strict=True)]),
            torch.cat([p.col + n for p, n in zip(parts, nodes, strict=True)]),
            torch.cat(xs) if has_x else None,
            torch.cat(ys) if has_y else None,
            None if any(ids is None for ids in names) else np.concatenate(names),
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

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_number_by_id"}
        for name in "xy":  # of a selection these are views, and torch pickles all behind a view
            value = state[name]
            if value is not None and value.untyped_storage().nbytes() > value.nbytes:
                state[name] = value.clone()
        return state

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
        ids = as_array(index, "the index")
        if ids.dtype == bool and ids.shape == (self.num_graphs,):
            ids = ids.nonzero()[0]
        if ids.shape == (0,):
            raise_graph_error("the selection has no graph", f"{index!r}", "select at least one")
        if ids.dtype.kind not in "iu" or ids.ndim > 1:
            accepted = (
                f"a number, a slice, a mask of {self.num_graphs} booleans or a list of numbers"
            )
            got = f"{ids.dtype} of shape {list(ids.shape)}"
            raise IndexError(f"Graphs takes {accepted}; got {got}.")
        if ids.min() < -self.num_graphs or ids.max() >= self.num_graphs:
            raise IndexError(f"graph number out of range; got {index!r} for {self!r}.")
        ids = ids.astype(np.int64) % self.num_graphs
        return self._range(int(ids), int(ids) + 1) if ids.ndim == 0 else self._take(ids)

    def _range(self, start: int, stop: int) -> Graphs:
        first, last = int(self.node_ptr[start]), int(self.node_ptr[stop])
        begin, end = int(self.row_ptr[first]), int(self.row_ptr[last])
        node_ptr = self.node_ptr[start : stop + 1] - first
        row_ptr, col = self.row_ptr[first : last + 1] - begin, self.col[begin:end] - first
        return self._part(node_ptr, row_ptr, col, slice(first, last), slice(start, stop))

    def _take(self, ids: Any) -> Graphs:
        # NumPy, because torch.repeat_interleave splits even ten elements over its threads.
        old_ptr, old_rows = self.node_ptr.numpy(), self.row_ptr.numpy()
        first = old_ptr[ids]
        node_ptr = pointer(old_ptr[ids + 1] - first)
        check_total(int(node_ptr[-1]))
        nodes = ranges(first, node_ptr)
        row_ptr = pointer(old_rows[nodes + 1] - old_rows[nodes])
        entry_ptr = row_ptr[node_ptr]
        col = self.col.numpy()[ranges(old_rows[first], entry_ptr)]
        col += np.repeat((node_ptr[:-1] - first).astype(np.int32), np.diff(entry_ptr))
        node_ptr, row_ptr, col = map(torch.from_numpy, (node_ptr, row_ptr, col))
        return self._part(node_ptr, row_ptr, col, nodes, ids)

    def _part(
        self, node_ptr: Tensor, row_ptr: Tensor, col: Tensor, nodes: Any, graphs: Any
    ) -> Graphs:
        """Return a part with the rows of x, y and ids that indices of nodes and graphs select."""
        per_graph = self.y is not None and len(self.y) == self.num_graphs
        x = None if self.x is None else self.x[nodes]
        y = None if self.y is None else self.y[graphs if per_graph else nodes]
        return Graphs(node_ptr, row_ptr, col, x, y, None if self.ids is None else self.ids[nodes])

    def batches(self, max_nodes: int) -> Iterator[Graphs]:
        """Cut into runs of at most max_nodes nodes, in order; a larger graph comes alone."""
        whole = isinstance(max_nodes, (int, np.integer)) and not isinstance(max_nodes, bool)
        if not whole or max_nodes < 1:
            raise_graph_error("max_nodes is not a positive integer", f"{max_nodes!r}", "pass 4096")
        return (self._range(*span) for span in spans(self.node_ptr.numpy(), max_nodes))

    def to_scipy(self, i: int) -> Any:
        """Return the adjacency of graph i, a SciPy CSR array float32 [n_i, n_i]."""
        from scipy.sparse import csr_array

        graph = self[operator.index(i)]
        ones = np.ones(len(graph.col), dtype=np.float32)
        shape = (graph.num_nodes, graph.num_nodes)
        return csr_array((ones, graph.col.numpy(), graph.row_ptr.numpy()), shape=shape)

    @functools.cached_property
    def _number_by_id(self) -> dict[Any, int]:
        return {} if self.ids is None else {name: i for i, name in enumerate(self.ids.tolist())}

    def find(self, ids: Any) -> NDArray[np.int64]:
        """Return the numbers of the nodes with these ids; an unknown id is an error."""
        if self.ids is None:
            fix = "use node numbers; artlas.read keeps the ids of a file"
            raise_graph_error("the nodes have no ids", f"{ids!r}", fix)
        known, wanted = self._number_by_id, np.asarray(ids).reshape(-1).tolist()
        if (missing := [name for name in wanted if name not in known]) != []:
            raise_graph_error("no node has this id", f"{missing[0]!r}", "look them up in .ids")
        return np.array([known[name] for name in wanted], dtype=np.int64)

    def with_features(self, x: Any) -> Graphs:
        """Return the same graphs with other features: [N, d], one array per graph, or None."""
        return dataclasses.replace(self, x=check_features(x, self.sizes.tolist()))

    def with_labels(self, y: Any) -> Graphs:
        """Return the same graphs with other labels: [G], [N] or None."""
        return dataclasses.replace(self, y=check_labels(y, self.sizes.tolist()))
