"""Node measures, normalised degrees, and the structures that the kernels take."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from artlas.graphs.collection import Graphs
from artlas.kernels.structure import Structure


def degree_measure(graphs: Graphs, epsilon: float) -> Tensor:
    r"""The degree-smoothed measure of every node, float64 [N].

    .. math:: \mu_G(i) = \frac{\deg(i) + \epsilon_u}{\sum_j [\deg(j) + \epsilon_u]}

    A graph without edges gets the uniform measure, as the formula says.
    """
    mass = graphs.row_ptr.diff().numpy().astype(np.float64) + epsilon
    total = np.add.reduceat(mass, graphs.node_ptr[:-1].numpy())
    return torch.from_numpy(mass / np.repeat(total, graphs.node_ptr.diff().numpy()))


def prepare_structure(
    graphs: Graphs,
    epsilon: float,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Structure:
    """Put the ragged CSR and the measure of graphs on a device, in the dtype to compute in."""
    measure = degree_measure(graphs, epsilon).to(dtype)
    return Structure(graphs.node_ptr, graphs.row_ptr, graphs.col, measure).to(device)


def normalised_degree(degree: Tensor, node_ptr: Tensor) -> Tensor:
    r"""The only structural input, :math:`X_s(i) = \deg(i) / (\max_j \deg(j) \vee 1)`.

    degree [N] of nodes whose graphs start at node_ptr [G + 1]; computed on the CPU.
    """
    values, starts = degree.cpu().numpy(), node_ptr.cpu().numpy()
    most = np.maximum.reduceat(values, starts[:-1]).clip(1)
    return torch.from_numpy(values / np.repeat(most, np.diff(starts))).to(degree.device)
