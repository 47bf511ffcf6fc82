"""Graphs to vectors of named blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from artlas import kernels
from artlas.blocks import twin
from artlas.blocks.config import VectorConfig, as_config
from artlas.blocks.layout import Layout
from artlas.graphs.collection import Graphs
from artlas.io.reading import as_graphs

BATCH = 1 << 18  # nodes embedded between two looks at Ctrl-C
FEW = 64  # rows below which NumPy is faster row by row than column by column


def layout(preset: str | VectorConfig = "full") -> Layout:
    """Return the blocks of a vector: their names, columns and boundaries."""
    return as_config(preset).layout


def embed(graphs: Any, preset: str | VectorConfig = "full") -> Tensor:
    r"""Embed every graph as one vector of named blocks, float32 [G, D].

    No model is needed, and a graph's vector depends on that graph alone. With nine descriptors of
    every node (degree, degrees of its neighbours, triangles, clustering, core number, return
    probabilities) and its features X, if there are any, the blocks are

    - ``quantiles``: means of every descriptor over eight parts of equal mass;
    - ``waves``: :math:`\cos(H \Omega + b)` averaged over nodes, with fixed random
      :math:`\Omega`, H = [V, PV, P²V] for V the descriptors and log-scaled X, and
      :math:`P = D^{-1} A`;
    - ``colours_r``: log(1 + count) of Weisfeiler-Lehman colours of X after r rounds, hashed into
      buckets; ``shapes_r``: the same where triangles and core number are part of the first colour.

    The preset ``full`` has 3,912 columns, whatever the number of features; ``compact`` projects
    every block by fixed signs, to 244 columns in all; a :class:`VectorConfig` sets other widths.
    """
    config = as_config(preset)
    graphs = as_graphs(graphs)
    parts = [_full(part, config) for part in graphs.batches(BATCH)]
    vectors = parts[0] if len(parts) == 1 else torch.cat(parts)
    return _compact(vectors, config) if config.compact else vectors


def _full(graphs: Graphs, config: VectorConfig) -> Tensor:
    x = graphs.x if graphs.num_features else None
    out = torch.empty(len(graphs), config.full_layout.width, dtype=torch.float32)
    native = kernels.native_for(out)
    write = twin.write_blocks if native is None else native.write_blocks
    write(graphs.node_ptr, graphs.row_ptr, graphs.col, x, out, config.rounds, config.buckets)
    return out


def _compact(vectors: Tensor, config: VectorConfig) -> Tensor:
    """Multiply every block that is too wide with a fixed matrix of signs."""
    parts = []
    for (_, columns), width in zip(config.full_layout, config.layout.widths, strict=True):
        values = vectors[:, columns]
        wide = values.shape[1]
        if wide > width:
            values = _times(values, _signs(wide, width) / width**0.5)
        parts.append(values)
    return torch.cat(parts, 1)


def _signs(rows: int, columns: int) -> Tensor:
    keys = np.arange(rows * columns, dtype=np.uint64) + np.uint64(0x2545F491)
    bits = twin.scramble(twin.scramble(keys)) >> np.uint64(63)
    return torch.from_numpy(1.0 - 2.0 * bits.astype(np.float64)).view(rows, columns)


def _times(values: Tensor, matrix: Tensor) -> Tensor:
    """Multiply, adding from the first column to the last on every machine and for every batch.

    A matrix product, and PyTorch's sum, choose an order by batch and machine.
    """
    rows, weights = values.double().numpy(), matrix.numpy()
    if len(rows) < FEW:
        out = np.stack([(row[:, None] * weights).sum(0) for row in rows])
    else:
        out = np.zeros((len(rows), weights.shape[1]))
        for column, weight in zip(rows.T, weights, strict=True):
            out += column[:, None] * weight
    return torch.from_numpy(out).float()
