r"""Ego-graphs of a network: the nodes around a centre with the largest personalised PageRank.

.. math:: \pi_c = \alpha \sum_{t \ge 0} (1 - \alpha)^t (A D^{-1})^t \mathbf 1_c

Local push keeps an estimate p and a residual r with :math:`\pi_c = p + \sum_u r(u) \pi_u`, and
moves mass from r to p until :math:`r(v) \le \varepsilon \deg(v)` everywhere. The score of a node
is p + r, as in the authors' code; on an undirected graph it is within
:math:`\varepsilon \deg(v)` of :math:`\pi_c(v)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas import kernels
from artlas.errors import raise_graph_error
from artlas.graphs.collection import Graphs
from artlas.graphs.ragged import pointer, ranges, spans
from artlas.graphs.validation import as_array
from artlas.io.reading import as_graphs
from artlas.nodes import ego_twin

CHUNK = 512  # centres between two calls of ``progress``
BATCH = 25_600  # default number of nodes in a batch of ego-graphs
Progress = Callable[[int, int], None]  # centres done, and their total number


@dataclass(frozen=True)
class PprConfig:
    """How ego-graphs are found; the defaults are the paper's.

    restart: alpha, the probability of returning to the centre; threshold: epsilon, the residual
    allowed per unit of degree; most_pushes, most_nodes: limits for every centre; lazy: half of the
    moving mass stays, as in the authors' code, which amounts to a restart of 2 alpha / (1 + alpha);
    fill: fill ego-graphs up to ``most_nodes`` with nodes of score zero, as in their code.
    """

    restart: float = 0.15
    threshold: float = 1e-4
    most_pushes: int = 1_000_000
    most_nodes: int = 400
    lazy: bool = False
    fill: bool = False

    def __post_init__(self) -> None:
        fix = "pass e.g. the default"
        for name in ("restart", "threshold"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 < value < 1:
                raise_graph_error(f"{name} must lie between 0 and 1", f"{value!r}", fix)
        for name in ("most_pushes", "most_nodes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise_graph_error(f"{name} must be a positive integer", f"{value!r}", fix)

    @classmethod
    def released(cls) -> PprConfig:
        """Return the settings of the authors' released code: a lazy walk, and filled ego-graphs."""
        return cls(lazy=True, fill=True)


@dataclass(frozen=True, eq=False, repr=False)
class EgoGraphs:
    """The ego-graphs of C centres of one graph, stored as node ids; edges are cut out on demand.

    centres int64 [C]; the nodes of ego-graph i are ``nodes[node_ptr[i]:node_ptr[i + 1]]``: the
    centre first, then by decreasing score, ties by id; scores float32, one per node; pushes [C]:
    number of pushes; positive [C]: nodes with a positive score before the cut to ``most_nodes``;
    stopped [C]: whether the limit of pushes was reached.

    ``egos[i]``, with a number, a slice, a mask or a list, is a :class:`Graphs` with the features
    of the graph, the labels of the centres, and the node numbers (or the graph's ids) as ``ids``.
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
        """Number and sizes of the ego-graphs, and how many were cut, in one sentence."""
        sizes = np.diff(self.node_ptr)
        cut = int((self.positive > self.config.most_nodes).sum())
        return (
            f"{len(self):,} ego-graphs of {sizes.min():,} to {sizes.max():,} nodes "
            f"({sizes.mean():,.0f} on average); {cut:,} were cut to {self.config.most_nodes:,} "
            f"nodes, {int(self.stopped.sum()):,} stopped at {self.config.most_pushes:,} pushes"
        )

    def __getitem__(self, index: Any) -> Graphs:
        part, graph = self.select(index), self.graph
        module: Any = kernels.native_data() or ego_twin
        row_ptr, col = module.induce(
            graph.row_ptr.numpy(), graph.col.numpy(), part.node_ptr, part.nodes
        )
        nodes = torch.from_numpy(part.nodes)
        return Graphs(
            torch.from_numpy(part.node_ptr),
            torch.from_numpy(row_ptr),
            torch.from_numpy(col),
            None if graph.x is None else graph.x.index_select(0, nodes),
            part.y,
            part.nodes if graph.ids is None else graph.ids[part.nodes],
        )

    def select(self, index: Any) -> EgoGraphs:
        """Select ego-graphs by number, slice, mask [C] or list of numbers."""
        if not isinstance(index, slice):
            numbers = np.asarray(index)
            index = numbers if numbers.size else slice(0)
        chosen = np.arange(len(self))[index].reshape(-1)
        if len(chosen) == 0:
            raise_graph_error("the selection has no ego-graph", f"{index!r}", "select at least one")
        node_ptr = pointer(np.diff(self.node_ptr)[chosen])
        places = ranges(self.node_ptr[chosen], node_ptr)
        return replace(
            self,
            node_ptr=node_ptr,
            nodes=self.nodes[places],
            scores=self.scores[places],
            **{name: getattr(self, name)[chosen] for name in _PER_CENTRE},
        )

    def batches(self, max_nodes: int = BATCH) -> Iterator[Graphs]:
        """Yield the ego-graphs in order, as Graphs of at most max_nodes nodes or one ego-graph."""
        return (part[:] for part in self.split(max_nodes))

    def split(self, max_nodes: int = BATCH) -> Iterator[EgoGraphs]:
        """Yield the ego-graphs of :meth:`batches` without cutting out their edges."""
        return (self.select(slice(*span)) for span in spans(self.node_ptr, max_nodes))


_PER_CENTRE = ("centres", "pushes", "positive", "stopped")


def ego_graphs(
    graph: Any,
    centres: Any = None,
    config: PprConfig | None = None,
    progress: Progress | None = None,
) -> EgoGraphs:
    """Find the ego-graphs around nodes of one network.

    centres: node numbers, or names if ``graph.ids`` has them; all nodes if None.
    ``progress(done, total)`` is called after every few hundred centres.
    """
    graph = as_graphs(graph)
    if len(graph) != 1:
        raise_graph_error("ego-graphs need one network", f"{len(graph)} graphs", "pass one of them")
    config = PprConfig() if config is None else config
    numbers = _centre_numbers(graph, centres)
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
    egos = EgoGraphs(graph=graph, config=config, centres=numbers, **joined)
    return _fill(egos) if config.fill else egos


def _centre_numbers(graph: Graphs, centres: Any) -> NDArray[np.int64]:
    if centres is None:
        return np.arange(graph.num_nodes)
    if isinstance(centres, str):
        centres = [centres]
    asked = as_array(centres, "centres").reshape(-1)
    if asked.dtype.kind in "UO" and len(asked):
        return graph.find(asked)
    if len(asked) == 0:
        raise_graph_error("there are no centres", f"{centres!r}", "pass a node, or None for all")
    if asked.dtype == bool:
        raise_graph_error("centres are not a mask", "booleans", "pass numpy.flatnonzero(mask)")
    if asked.dtype.kind not in "iu":
        raise_graph_error("centres are not node numbers", f"{asked.dtype}", "pass integers from 0")
    if asked.min() < 0 or asked.max() >= graph.num_nodes:
        worst = asked.min() if asked.min() < 0 else asked.max()
        got = f"{worst} with {graph.num_nodes:,} nodes"
        raise_graph_error("a centre is not a node of the graph", got, "number the nodes from 0")
    return np.ascontiguousarray(asked, dtype=np.int64)


def _fill(egos: EgoGraphs) -> EgoGraphs:
    """Fill ego-graphs up to most_nodes with other nodes of score zero, lowest ids first."""
    size = min(egos.config.most_nodes, egos.graph.num_nodes)
    nodes, scores = [], []
    for begin, end in zip(egos.node_ptr[:-1], egos.node_ptr[1:], strict=True):
        own = egos.nodes[begin:end]
        others = np.setdiff1d(np.arange(min(2 * size, egos.graph.num_nodes)), own)
        added = others[: size - len(own)].astype(np.int32)
        nodes += [own, added]
        scores += [egos.scores[begin:end], np.zeros(len(added), dtype=np.float32)]
    return replace(
        egos,
        node_ptr=pointer(np.full(len(egos), size)),
        nodes=np.concatenate(nodes),
        scores=np.concatenate(scores),
    )
