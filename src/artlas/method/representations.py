"""The representations of graphs: their names, their columns, and the parts of the paper's own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from artlas import blocks
from artlas.blocks.config import PRESETS
from artlas.graphs.measure import normalised_degree
from artlas.method import z_plus
from artlas.method.batching import GraphBatch
from artlas.method.config import ArtConfig
from artlas.method.energy import coordinates
from artlas.nodes.ego import EgoGraphs

# Vectors of named blocks (artlas.blocks), by representation; they need no model.
BLOCKS = {"blocks": PRESETS["full"], "compact": PRESETS["compact"]}
REPRESENTATIONS = (*BLOCKS, "plus", "plus-no-roles", "paper", "coordinates", "features")
WITHOUT_MODEL = (*BLOCKS, "plus-no-roles")
DEFAULT = "blocks"  # of graphs
DEFAULT_EGO = "plus-no-roles"  # of ego-graphs


def node_features(batch: GraphBatch, config: ArtConfig) -> Tensor:
    """Node features, [N, d]; of graphs that have none, what ``config.featureless`` says."""
    graphs = batch.graphs
    if graphs.x is not None:
        return graphs.x
    if config.featureless == "degree":
        return normalised_degree(graphs.degree, graphs.node_ptr).unsqueeze(1)
    return torch.ones(graphs.num_nodes, 1)


def default_for(graphs: Any) -> str:
    """Return the default representation of graphs, or of ego-graphs."""
    return DEFAULT_EGO if isinstance(graphs, EgoGraphs) else DEFAULT


def without_model(batch: GraphBatch, representation: str) -> Tensor:
    """Embed graphs in one of the representations that need no model, [G, D]."""
    if representation in BLOCKS:
        return blocks.embed(batch.graphs, BLOCKS[representation])
    return z_plus.without_roles(batch)


def paper_vector(energies: Tensor, transported: Tensor) -> Tensor:
    r""":math:`z(G) = [q(G) \,\|\, \mathrm{vec}\, H(G)]`, role by role.

    energies [G, K], transported features H [G, M, d] to [G, K + M d].
    """
    return torch.cat([coordinates(energies), transported.flatten(1)], 1)


def check_representation(name: str) -> None:
    """Raise an error unless there is a representation of this name."""
    if name not in REPRESENTATIONS:
        known = ", ".join(REPRESENTATIONS)
        raise ValueError(f"Unknown representation {name!r}. Choose one of {known}.")


def feature_names(config: ArtConfig, representation: str, width: int) -> list[str]:
    """Name the columns of a representation of graphs with ``width`` features per node.

    Graphs without features have one in their place, but for vectors of blocks.
    """
    check_representation(representation)
    if representation in BLOCKS:
        return list(blocks.layout(BLOCKS[representation]).columns)
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
