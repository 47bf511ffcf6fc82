"""Roles of equal mass along the degree: the control that an atlas of roles has to beat."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas_paper.transfer.control_roles import equal_mass

ROLES = 32


def degree_roles(graphs: Graphs, count: int = ROLES) -> Tensor:
    """Cut the nodes of every graph, by ascending degree, into roles of equal mass, [N, M].

    Nodes of equal degree share their roles evenly, so that the order of nodes does not matter.
    """
    degree = graphs.degree.numpy().astype(np.int64)
    parts = []
    for own in np.split(degree, graphs.node_ptr.numpy()[1:-1]):
        levels, place, alike = np.unique(own, return_inverse=True, return_counts=True)
        starts = np.concatenate([[0], np.cumsum(alike)[:-1]])
        shares = np.add.reduceat(equal_mass(len(own), count), starts) / alike[:, None]
        assert len(shares) == len(levels)
        parts.append(shares[place].astype(np.float32))
    return torch.from_numpy(np.concatenate(parts))
