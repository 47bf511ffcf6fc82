"""Time one step of the baselines' layers, forward and backward, beside PyTorch Geometric's."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import torch
from torch import nn
from torch_geometric.nn import GATConv, GCNConv

import artlas
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.layers import GATLayer, GCNLayer
from benchmarks.data import real_batch
from benchmarks.report import Measurement
from benchmarks.timing import Call, Rounds, interleave, ratio

WIDTH, HEADS = 64, 4  # those of the paper's GCN and GAT


def measure(graphs: int, rounds: Rounds) -> Iterable[Measurement]:
    """Measure the time of PyTorch Geometric's layer over ours with the same weights."""
    for name in ("NCI1", "COLLAB"):
        sample = artlas.Graphs.from_edges(real_batch(name, graphs).edge_lists())
        torch.manual_seed(0)
        batch = Batch.of(sample.with_features(torch.randn(sample.num_nodes, WIDTH)))
        edges = batch.edge_index
        for kind, ours, theirs in (
            ("GCN", GCNLayer(WIDTH, WIDTH), GCNConv(WIDTH, WIDTH)),
            ("GAT", GATLayer(WIDTH, WIDTH // HEADS, HEADS), GATConv(WIDTH, WIDTH // HEADS, HEADS)),
        ):
            theirs.load_state_dict(ours.state_dict())
            calls = {"theirs": _step(theirs, batch.x, edges), "ours": _step(ours, batch.x, batch)}
            seconds = interleave(calls, rounds)
            note = (
                f"{graphs} graphs, {len(batch.col):,} entries: {1e3 * min(seconds['theirs']):.1f} "
                f"ms PyTorch Geometric, {1e3 * min(seconds['ours']):.1f} ms ours, at best"
            )
            yield Measurement.of(
                f"{kind} layer, PyTorch Geometric / ours, seconds: {name}",
                ratio(seconds, "theirs", "ours"),
                note=note,
                raw=seconds,
            )


def _step(layer: nn.Module, x: torch.Tensor, structure: torch.Tensor | Batch) -> Call:
    x = x.clone().requires_grad_()

    def step() -> None:
        # a new batch each time, because a batch keeps what it derives from its structure
        fresh = dataclasses.replace(structure) if isinstance(structure, Batch) else structure
        layer(x, fresh).square().sum().backward()

    return step
