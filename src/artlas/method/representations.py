"""Representations: which node values are pooled over the nodes, and how they become a vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from artlas.graphs.measure import normalised_degree
from artlas.method import z_plus
from artlas.method.batching import GraphBatch
from artlas.method.config import ArtConfig
from artlas.method.energy import coordinates


class Pooled(NamedTuple):
    """Node values pooled by couplings, [G, M, d], and the energies and residuals [G, K]."""

    values: Tensor
    energies: Tensor
    residuals: Tensor


class Representation(NamedTuple):
    r"""The way from a batch of graphs to their vectors.

    vector: makes the vectors [G, D] of a batch and what was pooled over its nodes.
    node_values: gives the values V [N, d] to pool; ``None`` if nothing is pooled.
    by_roles: whether V is pooled as :math:`M R^\top V` rather than :math:`N T_{mix}^\top V`.
    """

    vector: Callable[[GraphBatch, Pooled], Tensor]
    node_values: Callable[[GraphBatch, ArtConfig], Tensor] | None = None
    by_roles: bool = False


def node_features(batch: GraphBatch, config: ArtConfig) -> Tensor:
    """Node features, [N, d]; of graphs that have none, what ``config.featureless`` says."""
    graphs = batch.graphs
    if graphs.x is not None:
        return graphs.x
    if config.featureless == "degree":
        return normalised_degree(graphs.degree, graphs.node_ptr).unsqueeze(1)
    return torch.ones(graphs.num_nodes, 1)


def paper_vector(energies: Tensor, transported: Tensor) -> Tensor:
    r""":math:`z(G) = [q(G) \,\|\, \mathrm{vec}\, H(G)]`, role by role.

    energies [G, K], transported features H [G, M, d] to [G, K + M d].
    """
    return torch.cat([coordinates(energies), transported.flatten(1)], 1)


REPRESENTATIONS = {
    "paper": Representation(
        lambda _, pooled: paper_vector(pooled.energies, pooled.values), node_features
    ),
    "coordinates": Representation(lambda _, pooled: coordinates(pooled.energies)),
    "features": Representation(lambda _, pooled: pooled.values.flatten(1), node_features),
    "plus": Representation(
        lambda batch, pooled: z_plus.vector(batch, pooled.values),
        lambda batch, _: z_plus.node_values(batch),
        by_roles=True,
    ),
    "plus-no-roles": Representation(lambda batch, _: z_plus.without_roles(batch)),
}


def check_representation(name: str) -> None:
    """Raise an error unless there is a representation of this name."""
    if name not in REPRESENTATIONS:
        raise ValueError(
            f"Unknown representation {name!r}. Choose one of {', '.join(REPRESENTATIONS)}."
        )


def feature_names(config: ArtConfig, representation: str, width: int) -> list[str]:
    """Name the columns of a representation of graphs with ``width`` features per node.

    Graphs without features have one in their place.
    """
    check_representation(representation)
    columns, roles = range(max(width, 1)), [f"role_{a}" for a in range(config.roles)]
    if representation == "plus-no-roles":
        return [f"{block}_{j}" for block in z_plus.BLOCKS for j in columns]
    if representation == "plus":
        if config.pooling == "each":
            roles = [f"base_{k}_{role}" for k in range(config.bases) for role in roles]
        return [f"{role}_{block}_{j}" for block in z_plus.BLOCKS for role in roles for j in columns]
    energies = [f"q_{k}" for k in range(config.bases)]
    transported = [f"{role}_x_{j}" for role in roles for j in columns]
    parts = {"paper": energies + transported, "coordinates": energies, "features": transported}
    return parts[representation]
