"""Graphs to vectors of named blocks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from artlas.blocks.layout import Layout
from artlas.io.reading import as_graphs


def layout(num_features: int) -> Layout:
    """Return the blocks of vectors of graphs whose nodes have this many features."""
    return Layout.of_widths({"size": 3, "feat": 2 * num_features})


def embed(graphs: Any) -> Tensor:
    """Embed every graph as one vector, float32 [G, D]."""
    graphs = as_graphs(graphs)
    sizes = graphs.sizes.double()
    entries = (graphs.row_ptr[graphs.node_ptr].diff() / 2).double()
    size = torch.stack([sizes.log(), entries.log1p(), entries.log1p() - sizes.log()], 1)
    parts = [size]
    if graphs.x is not None:
        owner = torch.repeat_interleave(torch.arange(len(graphs)), graphs.sizes)
        total = torch.zeros(len(graphs), graphs.num_features, dtype=torch.float64)
        total.index_add_(0, owner, graphs.x.double())
        parts += [total.abs().log1p() * total.sign(), total / sizes[:, None]]
    return torch.cat(parts, 1).float()
