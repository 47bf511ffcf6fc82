r"""Ego-graphs of any network: the nodes that a personalised PageRank finds around a centre.

.. math:: \pi_c = \alpha \sum_{t \ge 0} (1 - \alpha)^t (A D^{-1})^t \mathbf 1_c

Local push keeps a reserve p and a residual r with :math:`\pi_c = p + \sum_u r(u) \pi_u`, and moves
mass from r to p until :math:`r(v) \le \varepsilon \deg(v)` everywhere. The score of a node is
p + r, as in the authors' code; on an undirected graph it is within
:math:`\varepsilon \deg(v)` of :math:`\pi_c(v)`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas import kernels
from artlas.errors import raise_graph_error
from artlas.graphs.collection import Graphs
from artlas.graphs.ragged import pointer, ranges
from artlas.graphs.validation import as_array
from artlas.io.reading import as_graphs
from artlas.kernels import ego_twin

CHUNK = 512  # centres between two reports of progress
BATCH = 25_600  # nodes of a batch when all ego-graphs are gone through
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class PprConfig:
    """How ego-graphs are found; the defaults are the paper's.

    restart: alpha; threshold: epsilon, residual allowed per unit of degree; most_pushes and
    most_nodes: limits for every centre. lazy: half of the moving mass stays, as in the authors'
    code, which amounts to a restart of 2 alpha / (1 + alpha). fill: ego-graphs that are too small
    are filled up to most_nodes with nodes of score zero, again as in their code.
    """

    restart: float = 0.15
    threshold: float = 1e-4
    most_pushes: int = 1_000_000
    most_nodes: int = 400
    lazy: bool = False
    fill: bool = False

    def __post_init__(self) -> None:
        for name in ("restart", "threshold"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 < value < 1:
                raise_graph_error(
                    f"{name} must lie between 0 and 1", f"{value!r}", "pass e.g. the default"
                )
        for name in ("most_pushes", "most_nodes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise_graph_error(
                    f"{name} must be a positive integer", f"{value!r}", "pass e.g. the default"
                )

    @classmethod
    def released(cls) -> PprConfig:
        """What the authors' released code does: a lazy walk, and every ego-graph filled up."""
        return cls(lazy=True, fill=True)


@dataclass(frozen=True, eq=False, repr=False)
class EgoGraphs:
    """The ego-graphs of C centres of one graph, kept as node ids; edges are cut when asked for.

    centres int64 [C]; the nodes of ego-graph i are ``nodes[node_ptr[i]:node_ptr[i + 1]]``, the
    centre first, then by falling score, ties by id; scores float32, one per node; pushes [C]:
    what it took; positive [C]: nodes with a positive score before the cut to most_nodes; stopped
    [C]: whether the limit of pushes was reached.

    ``egos[i]``, with a number, a slice, a mask or a list, is a :class:`Graphs` with the features
    of the graph, the labels of the centres, and the numbers of the nodes as ``ids``.
    """

    graph: Graphs
    config: PprConfig
    centres: NDArray[np.int64]
    node_ptr: NDArray[np.int64]
    nodes: NDArray[np.int32]
    scores: NDArray[np.float32]
    pushes: NDArray[np.int64]
    positive: NDArray[np.int64]
    stopped: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.centres)

    def __repr__(self) -> str:
        sizes = np.diff(self.node_ptr)
        return f"EgoGraphs({len(self):,} of {sizes.min():,} to {sizes.max():,} nodes)"

    @property
    def y(self) -> Tensor | None:
        """The labels of the centres, [C]."""
        y = self.graph.y
        return None if y is None or len(y) != self.graph.num_nodes else y[self.centres]

    @property
    def summary(self) -> str:
        """What was found and what was cut off, in one sentence."""
        sizes = np.diff(self.node_ptr)
        cut = int((self.positive > self.config.most_nodes).sum())
        return (
            f"{len(self):,} ego-graphs of {sizes.min():,} to {sizes.max():,} nodes "
            f"({sizes.mean():,.0f} on average); {cut:,} were cut to {self.config.most_nodes:,} "
            f"nodes, {int(self.stopped.sum()):,} stopped at {self.config.most_pushes:,} pushes"
        )

    def __getitem__(self, index: Any) -> Graphs:
        part = self.select(index)
        return part._graphs()

    def select(self, index: Any) -> EgoGraphs:
        """The ego-graphs of some centres, by number, slice, mask [C] or list of numbers."""
        chosen = np.arange(len(self))[_plain(index)].reshape(-1)
        if len(chosen) == 0:
            raise_graph_error("the selection has no ego-graph", f"{index!r}", "select at least one")
        node_ptr = pointer(np.diff(self.node_ptr)[chosen])
        taken = ranges(self.node_ptr[chosen], node_ptr)
        kept = {name: getattr(self, name)[chosen] for name in _PER_CENTRE}
        return EgoGraphs(
            graph=self.graph,
            config=self.config,
            node_ptr=node_ptr,
            nodes=self.nodes[taken],
            scores=self.scores[taken],
            **kept,
        )

    def batches(self, max_nodes: int = BATCH) -> Iterator[Graphs]:
        """All ego-graphs in order, as Graphs of at most max_nodes nodes (or one ego-graph)."""
        return (part[:] for part in self.parts(max_nodes))

    def parts(self, max_nodes: int = BATCH) -> Iterator[EgoGraphs]:
        """The same cuts, as ego-graphs."""
        start = 0
        while start < len(self):
            limit = self.node_ptr[start] + max_nodes
            stop = int(np.searchsorted(self.node_ptr, limit, side="right")) - 1
            stop = max(stop, start + 1)
            yield self.select(slice(start, stop))
            start = stop

    def _graphs(self) -> Graphs:
        graph = self.graph
        module: Any = kernels.native_data() or ego_twin
        row_ptr, col = module.induce(
            graph.row_ptr.numpy(), graph.col.numpy(), self.node_ptr, self.nodes
        )
        taken = torch.from_numpy(self.nodes)
        return Graphs(
            torch.from_numpy(self.node_ptr),
            torch.from_numpy(row_ptr),
            torch.from_numpy(col),
            None if graph.x is None else graph.x.index_select(0, taken),
            self.y,
            self.nodes if graph.ids is None else graph.ids[self.nodes],
        )

    def save(self, path: Any) -> None:
        """Write the ids, scores and settings to an .npz file; the graph is not part of it."""
        from artlas.files.atomic import atomic

        arrays = {name: getattr(self, name) for name in ("node_ptr", "nodes", "scores")}
        arrays |= {name: getattr(self, name) for name in _PER_CENTRE}
        arrays |= {f"config_{f.name}": getattr(self.config, f.name) for f in fields(PprConfig)}
        with atomic(Path(path)) as out:
            np.savez(out, graph=np.frombuffer(_fingerprint(self.graph), np.uint8), **arrays)

    @classmethod
    def load(cls, path: Any, graph: Graphs) -> EgoGraphs:
        """Read what :meth:`save` wrote, for the same graph."""
        from artlas.errors import raise_read_error
        from artlas.files.untrusted import read_npz

        arrays, path = read_npz(Path(path)), Path(path)
        names = {"node_ptr", "nodes", "scores", *_PER_CENTRE}
        settings = {f.name for f in fields(PprConfig)}
        if set(arrays) != names | {"graph"} | {f"config_{name}" for name in settings}:
            got = f"the arrays {sorted(arrays)}"
            raise_read_error(
                path, "this file holds no ego-graphs", got, "write it by EgoGraphs.save"
            )
        if arrays.pop("graph").tobytes() != _fingerprint(graph):
            fix = "pass the graph that they were made of, or make them anew"
            raise_read_error(path, "these ego-graphs are of another graph", f"{graph!r}", fix)
        config = PprConfig(**{name: arrays.pop(f"config_{name}").item() for name in settings})
        return cls(graph=graph, config=config, **arrays)


_PER_CENTRE = ("centres", "pushes", "positive", "stopped")


def ego_graphs(
    graph: Any,
    centres: Any = None,
    config: PprConfig | None = None,
    progress: Progress | None = None,
) -> EgoGraphs:
    """The ego-graphs around nodes of one network: how nodes are embedded.

    centres: node numbers, or names where ``graph.ids`` has them; all nodes if None.
    ``progress(done, total)`` is called now and then.
    """
    graph = as_graphs(graph)
    if len(graph) != 1:
        raise_graph_error(
            "ego-graphs are made of one network", f"{len(graph)} graphs", "pass one of them"
        )
    config = PprConfig() if config is None else config
    numbers = _centres(graph, centres)
    module: Any = kernels.native_data() or ego_twin
    walk = module.Walker(graph.row_ptr.numpy(), graph.col.numpy(), config.threshold)
    limits = config.restart, config.most_pushes, config.most_nodes, config.lazy
    parts = []
    for start in range(0, len(numbers), CHUNK):
        parts.append(walk.run(numbers[start : start + CHUNK], *limits, torch.get_num_threads()))
        if progress is not None:
            progress(min(start + CHUNK, len(numbers)), len(numbers))
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("nodes", "scores", "pushes", "positive", "stopped")
    }
    joined["stopped"] = joined["stopped"].astype(bool)
    joined["node_ptr"] = pointer(np.concatenate([np.diff(part.node_ptr) for part in parts]))
    found = EgoGraphs(graph=graph, config=config, centres=numbers, **joined)
    return _filled(found) if config.fill else found


def _centres(graph: Graphs, centres: Any) -> NDArray[np.int64]:
    if centres is None:
        return np.arange(graph.num_nodes)
    if isinstance(centres, str):
        centres = [centres]
    asked = as_array(centres, "centres").reshape(-1)
    if asked.dtype.kind in "UO" and len(asked):
        return graph.find(asked)
    if len(asked) == 0:
        raise_graph_error(
            "there are no centres", f"{centres!r}", "pass at least one node, or None for all"
        )
    if asked.dtype == bool:
        raise_graph_error(
            "centres are not a mask", f"{asked.dtype}", "pass numpy.flatnonzero(mask)"
        )
    if asked.dtype.kind not in "iu":
        raise_graph_error("centres are not node numbers", f"{asked.dtype}", "pass integers from 0")
    if asked.min() < 0 or asked.max() >= graph.num_nodes:
        worst = asked.min() if asked.min() < 0 else asked.max()
        got = f"{worst} with {graph.num_nodes:,} nodes"
        raise_graph_error("a centre is not a node of the graph", got, "number the nodes from 0")
    return np.ascontiguousarray(asked, dtype=np.int64)


def _filled(egos: EgoGraphs) -> EgoGraphs:
    """The same with unrelated nodes of score zero, lowest ids first, up to most_nodes."""
    wanted = min(egos.config.most_nodes, egos.graph.num_nodes)
    nodes, scores = [], []
    for begin, end in zip(egos.node_ptr[:-1], egos.node_ptr[1:], strict=True):
        own = egos.nodes[begin:end]
        spare = np.setdiff1d(np.arange(min(2 * wanted, egos.graph.num_nodes)), own)
        more = spare[: wanted - len(own)].astype(np.int32)
        nodes += [own, more]
        scores += [egos.scores[begin:end], np.zeros(len(more), dtype=np.float32)]
    node_ptr = pointer(np.full(len(egos), wanted))
    kept = {name: getattr(egos, name) for name in _PER_CENTRE}
    return EgoGraphs(
        graph=egos.graph,
        config=egos.config,
        node_ptr=node_ptr,
        nodes=np.concatenate(nodes),
        scores=np.concatenate(scores),
        **kept,
    )


def _plain(index: Any) -> Any:
    if isinstance(index, slice):
        return index
    if isinstance(index, Tensor):
        return index.numpy()
    try:
        return [operator.index(index)]
    except TypeError:
        chosen = np.asarray(index)
        return chosen if len(chosen) else slice(0)


def _fingerprint(graph: Graphs) -> bytes:
    import hashlib

    found = hashlib.sha256(graph.row_ptr.numpy().tobytes())
    found.update(graph.col.numpy().tobytes())
    return found.digest()
