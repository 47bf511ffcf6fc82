"""Augmented views of a batch of graphs: every graph is changed on its own, all graphs at once.

All randomness is PyTorch's global generator. A view is a new batch; no graph loses its last node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

from artlas_paper.methods.batch import Batch, Shared

View = Literal["drop_nodes", "perturb_edges", "mask_features", "subgraph"]


def augment(batch: Batch, view: View, ratio: float) -> Batch:
    """The view of that name; ratio: the share that is changed, but of ``subgraph`` what is left."""
    return _VIEWS[view](batch, ratio)


def check_views(owner: str, views: tuple[str, ...], ratio: float) -> None:
    """Refuse names that no view has, and ratios outside (0, 1)."""
    for view in views:
        if view not in _VIEWS:
            raise ValueError(f"{owner}.views are of {', '.join(_VIEWS)}, got {view!r}.")
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 < ratio < 1:
        raise ValueError(f"{owner}.ratio must lie between 0 and 1, got {ratio!r}.")


def drop_nodes(batch: Batch, ratio: float) -> Batch:
    """Without floor(ratio n) random nodes of every graph, and their edges."""
    return batch.keep_nodes(~some_nodes(batch, _share(batch, ratio)))


def mask_features(batch: Batch, ratio: float) -> Batch:
    """The features of floor(ratio n) random nodes of every graph are the mean of their graph."""
    masked = some_nodes(batch, _share(batch, ratio))
    return with_means(batch, masked)


def with_means(batch: Batch, masked: Tensor) -> Batch:
    """The features of masked nodes, bool [N], are the mean of their graph."""
    features = batch.features
    means = batch.mean_features()
    if isinstance(features, Shared):
        rows = torch.where(masked, len(features.table) + batch.graph_of, features.rows)
        return batch.with_x(Shared(torch.cat([features.table, means]), rows))
    x = features.clone()
    x[masked] = means[batch.graph_of[masked]]
    return batch.with_x(x)


def perturb_edges(batch: Batch, ratio: float) -> Batch:
    """Every edge is removed with chance ratio; as many pairs of nodes of the same graphs are drawn,
    and those that are no edges become edges."""
    if not len(batch.col):
        return batch
    gone = batch.chance(_seed()) < ratio
    graph = batch.graph_of[batch.row[gone]]
    graph = graph[torch.rand(len(graph)) < 0.5]  # every edge is two entries
    one, other = (batch.node_ptr[graph] + _below(batch.sizes[graph]) for _ in range(2))
    return _add_edges(batch.keep_entries(~gone), one, other, besides=batch)


def subgraph(batch: Batch, share: float) -> Batch:
    """A connected part of floor(share n) + 1 nodes of every graph, less where no more are linked.

    It grows from a random node by one random neighbour of what it has at a time. This is how an
    epidemic reaches the nodes that are infected after a waiting time :math:`w_v \\sim Exp(1)` from
    their first contact on: at any moment all that wait are equally likely to be next. So times of
    arrival :math:`t_v = w_v + \\min_{u \\sim v} t_u` give the order.
    """
    start = batch.node_ptr[:-1] + _below(batch.sizes)
    wait = torch.empty(batch.num_nodes).exponential_()
    time = torch.full_like(wait, torch.inf)
    time[start] = 0.0
    while True:
        first = torch.segment_reduce(
            time[batch.col], "min", offsets=batch.row_ptr, initial=torch.inf
        )
        sooner = torch.minimum(time, first + wait)
        if torch.equal(sooner, time):
            break
        time = sooner
    counts = torch.minimum(_share(batch, share) + 1, batch.sizes)
    return batch.keep_nodes(_first(batch, time, counts) & torch.isfinite(time))


def some_nodes(batch: Batch, counts: Tensor) -> Tensor:
    """So many random nodes of every graph, int64 [G]: a mask, bool [N]."""
    order = (batch.graph_of + torch.rand(batch.num_nodes, dtype=torch.float64)).argsort()
    return _leading(batch, order, counts)


_VIEWS: dict[str, Callable[[Batch, float], Batch]] = {
    "drop_nodes": drop_nodes,
    "perturb_edges": perturb_edges,
    "mask_features": mask_features,
    "subgraph": subgraph,
}
assert tuple(_VIEWS) == get_args(View)


def _first(batch: Batch, values: Tensor, counts: Tensor) -> Tensor:
    """The nodes with the smallest values [N] of their graph, so many of every graph [G]."""
    order = values.argsort()
    order = order[batch.graph_of[order].argsort(stable=True)]  # by graph, then by value
    return _leading(batch, order, counts)


def _leading(batch: Batch, order: Tensor, counts: Tensor) -> Tensor:
    """So many first nodes of every graph [G] in an order graph by graph, [N]: bool [N]."""
    place = torch.arange(batch.num_nodes) - batch.node_ptr[batch.graph_of]
    found = torch.empty(batch.num_nodes, dtype=torch.bool)
    found[order] = place < counts[batch.graph_of]
    return found


def _add_edges(batch: Batch, one: Tensor, other: Tensor, besides: Batch) -> Batch:
    """With edges between nodes [k] that are none of ``besides``, in the order of their columns."""
    n, apart = batch.num_nodes, one != other
    one, other = one[apart], other[apart]
    new = torch.cat([one * n + other, other * n + one]).unique()
    known = besides.row * n + besides.col
    place = torch.searchsorted(known, new).clamp_(max=len(known) - 1)
    new = new[known[place] != new]
    old = batch.row * n + batch.col
    at = torch.searchsorted(old, new) + torch.arange(len(new))
    kept = torch.ones(len(old) + len(new), dtype=torch.bool)
    kept[at] = False
    col = torch.empty(len(kept), dtype=batch.col.dtype)
    col[kept], col[at] = batch.col, (new % n).to(col.dtype)
    more = torch.bincount(new // n, minlength=n).cumsum(0)
    row_ptr = batch.row_ptr + torch.cat([more.new_zeros(1), more])
    return dataclasses.replace(batch, row_ptr=row_ptr, col=col)


def _share(batch: Batch, ratio: float) -> Tensor:
    return (batch.sizes * ratio).long()


def _below(limits: Tensor) -> Tensor:
    """A random integer from 0 to each limit, without it."""
    return (torch.rand(len(limits), dtype=torch.float64) * limits).long()


def _seed() -> int:
    return int(torch.randint(2**31, ()))
