"""Prepare node features as the paper and its released code do."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from artlas.datasets import relative_degree
from artlas.graphs.collection import Graphs
from artlas_paper.datasets.registry import DatasetError
from artlas_paper.protocol import PADDED_WIDTH, PROJECTED_WIDTH, PROJECTION_SEED

BLOCK = 16_384  # rows projected at a time


def paper_features(graphs: Graphs, width: int = PADDED_WIDTH) -> Graphs:
    """Return the graphs with x padded by zeros to [N, width]; absent features are constant 1."""
    x = graphs.x if graphs.num_features else None
    if x is None:
        x = torch.ones(graphs.num_nodes, 1)
    if x.shape[1] > width:
        raise DatasetError(
            f"features are wider than the paper's unified width; got {x.shape[1]:,} for {width}. "
            f"To fix this, keep at most {width} columns, or use features='released' or 'raw'."
        )
    padded = torch.zeros(len(x), width)
    padded[:, : x.shape[1]] = x
    return dataclasses.replace(graphs, x=padded)


def released_features(graphs: Graphs) -> Graphs:
    """Return the graphs with x as it is; absent features are degree / maximum degree, [N, 1]."""
    return graphs if graphs.num_features else dataclasses.replace(graphs, x=relative_degree(graphs))


def project(x: Tensor, width: int = PROJECTED_WIDTH, seed: int = PROJECTION_SEED) -> Tensor:
    """Multiply x [N, d] by a Gaussian matrix [d, width] / 16, in float32 and blocks of rows.

    The matrix depends on d and the seed alone, so that equal widths are projected alike. Its scale
    is that of the authors' code, 1 / sqrt(256).
    """
    gauss = torch.randn(x.shape[1], width, generator=torch.Generator().manual_seed(seed)) / 16
    out = torch.empty(len(x), width)
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        torch.matmul(x[rows].to(torch.float32), gauss, out=out[rows])
    return out
