"""Augmented views of a batch: every graph is changed on its own, all graphs at once.

All random numbers come from PyTorch's global generator. A view is a new batch, and every graph
keeps at least one node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

from artlas_paper.methods.batch import Batch
from artlas_paper.methods.shared_features import SharedFeatures
from artlas_paper.methods.sparse_matmul import pointer

View = Literal["drop_nodes", "perturb_edges", "mask_features", "subgraph"]


def augment(batch: Batch, view: View, ratio: float) -> Batch:
    """Apply the view of this name; ratio is the share that changes, or that ``subgraph`` keeps."""
    return _VIEWS[view](batch, ratio)


def check_views(owner: str, views: tuple[str, ...], ratio: float) -> None:
    """Refuse unknown views, and ratios outside (0, 1)."""
    for view in views:
        if view not in _VIEWS:
            raise ValueError(f"{owner}.views are of {', '.join(_VIEWS)}, got {view!r}.")
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 < ratio < 1:
        raise ValueError(f"{owner}.ratio must lie between 0 and 1, got {ratio!r}.")


def drop_nodes(batch: Batch, ratio: float) -> Batch:
    """Remove floor(ratio n) random nodes of every graph, with their edges."""
    return batch.keep_nodes(~_random_nodes(batch, _counts(batch, ratio)))


def drop_edges(batch: Batch, ratio: float) -> Batch:
    """Remove every edge with probability ratio."""
    return batch.keep_entries(batch.edge_uniforms(_random_seed()) >= ratio)


def mask_features(batch: Batch, ratio: float) -> Batch:
    """Replace the features of floor(ratio n) random nodes of every graph by the graph's mean."""
    masked, means = _random_nodes(batch, _counts(batch, ratio)), batch.mean_features()
    features = batch.features
    if isinstance(features, SharedFeatures):
        rows = torch.where(masked, len(features.table) + batch.graph_of, features.rows)
        return batch.with_features(SharedFeatures(torch.cat([features.table, means]), rows))
    x = features.clone()
    x[masked] = means[batch.graph_of[masked]]
    return batch.with_features(x)


def perturb_edges(batch: Batch, ratio: float) -> Batch:
    """Remove every edge with probability ratio, and connect as many random pairs of nodes.

    A pair is of the graph of a removed edge; pairs that were edges before are not connected.
    """
    if not len(batch.col):
        return batch
    removed = batch.edge_uniforms(_random_seed()) < ratio
    graph = batch.graph_of[batch.row[removed]]
    graph = graph[torch.rand(len(graph)) < 0.5]  # every edge is two entries
    first, second = (batch.node_ptr[graph] + random_below(batch.sizes[graph]) for _ in range(2))
    return _add_edges(batch.keep_entries(~removed), first, second, excluded=batch)


def subgraph(batch: Batch, share: float) -> Batch:
    r"""Keep a connected part of floor(share n) + 1 nodes of every graph, or fewer if no more fit.

    The part grows from a random node by a random neighbour of its nodes at a time. This is the
    order in which an epidemic infects nodes after waiting times :math:`w_v \sim Exp(1)` from their
    first contact: at any moment, all nodes that wait are equally likely to be next. So the nodes
    with the smallest times of infection :math:`t_v = w_v + \min_{u \sim v} t_u` are kept.
    """
    start = batch.node_ptr[:-1] + random_below(batch.sizes)
    wait = torch.empty(batch.num_nodes).exponential_()
    time = torch.full_like(wait, torch.inf)
    time[start] = 0.0
    while True:
        contact = torch.segment_reduce(
            time[batch.col], "min", offsets=batch.row_ptr, initial=torch.inf
        )
        earlier = torch.minimum(time, contact + wait)
        if torch.equal(earlier, time):
            break
        time = earlier
    counts = torch.minimum(_counts(batch, share) + 1, batch.sizes)
    order = time.argsort()
    order = order[batch.graph_of[order].argsort(stable=True)]  # by graph, then by time
    return batch.keep_nodes(_first_nodes(batch, order, counts) & torch.isfinite(time))


def random_below(limits: Tensor) -> Tensor:
    """Draw a random integer from 0 to limit - 1 for each of the limits."""
    return (torch.rand(limits.shape, dtype=torch.float64) * limits).long()


_VIEWS: dict[str, Callable[[Batch, float], Batch]] = {
    "drop_nodes": drop_nodes,
    "perturb_edges": perturb_edges,
    "mask_features": mask_features,
    "subgraph": subgraph,
}
assert tuple(_VIEWS) == get_args(View)


def _counts(batch: Batch, ratio: float) -> Tensor:
    return (batch.sizes * ratio).long()


def _random_nodes(batch: Batch, counts: Tensor) -> Tensor:
    """Choose so many random nodes of every graph, int64 [G]: a mask, bool [N]."""
    order = (batch.graph_of + torch.rand(batch.num_nodes, dtype=torch.float64)).argsort()
    return _first_nodes(batch, order, counts)


def _first_nodes(batch: Batch, order: Tensor, counts: Tensor) -> Tensor:
    """Mark the first ``counts`` [G] nodes of every graph in an order [N] by graphs: bool [N]."""
    position = torch.arange(batch.num_nodes) - batch.node_ptr[batch.graph_of]
    mask = torch.empty(batch.num_nodes, dtype=torch.bool)
    mask[order] = position < counts[batch.graph_of]
    return mask


def _add_edges(batch: Batch, first: Tensor, second: Tensor, excluded: Batch) -> Batch:
    """Connect pairs of nodes [k] that are not edges of ``excluded``; columns stay sorted."""
    n, distinct = batch.num_nodes, first != second
    first, second = first[distinct], second[distinct]
    new = torch.cat([first * n + second, second * n + first]).unique()
    known = excluded.row * n + excluded.col
    place = torch.searchsorted(known, new).clamp_(max=len(known) - 1)
    new = new[known[place] != new]
    old = batch.row * n + batch.col
    inserted = torch.searchsorted(old, new) + torch.arange(len(new))
    is_old = torch.ones(len(old) + len(new), dtype=torch.bool)
    is_old[inserted] = False
    col = torch.empty(len(is_old), dtype=batch.col.dtype)
    col[is_old], col[inserted] = batch.col, (new % n).to(col.dtype)
    row_ptr = batch.row_ptr + pointer(torch.bincount(new // n, minlength=n))
    return dataclasses.replace(batch, row_ptr=row_ptr, col=col)


def _random_seed() -> int:
    return int(torch.randint(2**31, ()))
