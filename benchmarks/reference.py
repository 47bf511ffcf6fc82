"""The published form of SCGFM-ART in plain PyTorch: padded, log-domain, autograd throughout.

Everything static about a batch (clean edges, sparse adjacency, measures, padding slots) is made
once in :class:`PaddedBatch`, outside the timings; the published code repeats it at every step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

TINY = 1e-8
PADDED_MASS = 1e-20
SPARSE_FROM_NODES = 2048


@dataclass(frozen=True)
class GinLayer:
    """Weights of h <- LayerNorm(h + MLP((1 + eps) h + sum of the neighbours' h))."""

    epsilon: Tensor
    first: tuple[Tensor, Tensor]
    second: tuple[Tensor, Tensor]
    norm: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Weights:
    """Every tensor the published form needs; views of a model's parameters, not copies."""

    atlas: Tensor
    lift: tuple[Tensor, Tensor]
    layers: Sequence[GinLayer]
    base_encoder: Sequence[tuple[Tensor, Tensor]]
    query: Tensor
    key: Tensor


@dataclass(frozen=True)
class Settings:
    """The settings of the forward pass."""

    temperature: float
    iterations: int = 20
    clamp: float | None = None


@dataclass(frozen=True)
class PaddedBatch:
    """Graphs as one edge list, with the slots of their nodes in a [B, Nmax] table."""

    count: int
    widest: int
    source: Tensor
    target: Tensor
    adjacency: Tensor
    slot: Tensor
    degree_input: Tensor
    mu: Tensor
    chi_a: Tensor

    @classmethod
    def of(cls, node_ptr: Tensor, row_ptr: Tensor, col: Tensor) -> PaddedBatch:
        """Pad the graphs of a ragged CSR whose column ids are global."""
        sizes = node_ptr.diff()
        count, widest, nodes = len(sizes), int(sizes.max()), int(sizes.sum())
        graph = torch.repeat_interleave(torch.arange(count), sizes)
        slot = graph * widest + torch.arange(nodes) - node_ptr[:-1][graph]
        degree = row_ptr.diff().float()
        source, target = torch.repeat_interleave(row_ptr.diff()), col.long()
        padded = torch.zeros(count * widest).index_copy(0, slot, degree).view(count, widest)
        top = padded.amax(1).clamp(min=1.0)
        mu = _measure(graph, degree, count)
        products = mu[source].double() * mu[target].double()
        pairs = torch.zeros(count).double().index_add(0, graph[source], products)
        ones = torch.ones(len(source))
        adjacency = torch.sparse_coo_tensor(
            torch.stack([source, target]), ones, (nodes, nodes), check_invariants=False
        ).coalesce()
        return cls(
            count=count,
            widest=widest,
            source=source,
            target=target,
            adjacency=adjacency,
            slot=slot,
            degree_input=(degree / top[graph])[:, None],
            mu=torch.zeros(count * widest).index_copy(0, slot, mu).view(count, widest),
            chi_a=pairs.float(),
        )


def _measure(graph: Tensor, degree: Tensor, count: int) -> Tensor:
    """Compute the degree measure mu of every node; uniform where a graph has no edge."""
    mass = degree.double() + TINY
    total = torch.zeros(count).double().index_add(0, graph, mass)
    return (mass / total[graph]).float()


def relations(atlas: Tensor) -> Tensor:
    """Compute B_k = Hollow(sigmoid((Z_k + Z_k^T) / 2)), [K, M, M]."""
    hollow = 1.0 - torch.eye(atlas.shape[-1])
    return torch.sigmoid((atlas + atlas.transpose(1, 2)) / 2) * hollow


def encode_nodes(weights: Weights, batch: PaddedBatch) -> Tensor:
    """Encode nodes by a residual GIN on the normalised degree, [N, D]."""
    h = torch.relu(functional.linear(batch.degree_input, *weights.lift))
    for layer in weights.layers:
        neighbours = torch.zeros_like(h).index_add(0, batch.target, h[batch.source])
        mixed = (1.0 + layer.epsilon) * h + neighbours
        update = functional.linear(
            torch.relu(functional.linear(mixed, *layer.first)), *layer.second
        )
        h = functional.layer_norm(h + update, h.shape[-1:], *layer.norm)
    return h


def encode_bases(weights: Weights, bases: Tensor) -> Tensor:
    """Encode roles by a shared row-wise MLP on B_k, [K, M, D]."""
    r = bases
    for index, (matrix, bias) in enumerate(weights.base_encoder):
        r = functional.linear(torch.relu(r) if index else r, matrix, bias)
    return r


def logits(weights: Weights, batch: PaddedBatch, bases: Tensor) -> Tensor:
    """Compute scaled dot products of nodes and roles, padded with zeros, [B, K, Nmax, M]."""
    h = encode_nodes(weights, batch)
    table = h.new_zeros(batch.count * batch.widest, h.shape[1]).index_copy(0, batch.slot, h)
    query = functional.linear(table.view(batch.count, batch.widest, -1), weights.query)
    key = functional.linear(encode_bases(weights, bases), weights.key)
    return torch.einsum("bnd,kmd->bknm", query, key) / math.sqrt(key.shape[-1])


def sinkhorn(scores: Tensor, mu: Tensor, settings: Settings) -> Tensor:
    """Compute couplings by log-domain iterations on full matrices, rows first, and one rounding.

    The published code runs on the permuted strides that the einsum leaves. One copy here makes
    every later logsumexp up to 1.3 times faster.
    """
    log_t = scores.contiguous() / settings.temperature
    if settings.clamp is not None:
        log_t = log_t.clamp(-settings.clamp, settings.clamp)
    log_mu = mu.clamp(min=PADDED_MASS).log()[:, None, :, None]
    log_nu = -math.log(scores.shape[-1])
    for _ in range(settings.iterations):
        log_t = log_t + (log_mu - torch.logsumexp(log_t, dim=3, keepdim=True))
        log_t = log_t + (log_nu - torch.logsumexp(log_t, dim=2, keepdim=True))
    return round_to_polytope(log_t.exp(), mu)


def round_to_polytope(t: Tensor, mu: Tensor) -> Tensor:
    """Shrink rows, then columns, to their marginals and add the rank-one remainder."""
    rows, nu = mu[:, None, :, None], 1.0 / t.shape[-1]
    t = t * (rows / t.sum(3, keepdim=True).clamp(min=TINY)).clamp(max=1.0)
    t = t * (nu / t.sum(2, keepdim=True).clamp(min=TINY)).clamp(max=1.0)
    row_deficit = (rows - t.sum(3, keepdim=True)).clamp(min=0.0)
    column_deficit = (nu - t.sum(2, keepdim=True)).clamp(min=0.0)
    mass = row_deficit.sum(2, keepdim=True).clamp(min=TINY)
    return t + row_deficit * column_deficit / mass


def neighbour_sum(t: Tensor, batch: PaddedBatch) -> Tensor:
    """Compute A T of padded couplings: gather to [N, K * M], multiply, scatter back."""
    count, k, widest, m = t.shape
    flat = t.transpose(1, 2).reshape(count * widest, k * m)
    dense = flat.index_select(0, batch.slot)
    if len(dense) >= SPARSE_FROM_NODES:
        summed = torch.sparse.mm(batch.adjacency, dense)
    else:
        gathered = dense.index_select(0, batch.source)
        summed = torch.zeros_like(dense).index_add(0, batch.target, gathered)
    padded = torch.zeros_like(flat).index_copy(0, batch.slot, summed)
    return padded.view(count, widest, k, m).transpose(1, 2)


def energies(weights: Weights, batch: PaddedBatch, settings: Settings) -> Tensor:
    """Compute e = max(0, chi_A + chi_B - 2 <A T, T B>), [B, K]."""
    bases = relations(weights.atlas)
    t = sinkhorn(logits(weights, batch, bases), batch.mu, settings)
    t_b = torch.einsum("bknm,kml->bknl", t, bases)
    cross = (neighbour_sum(t, batch) * t_b).sum((2, 3))
    chi_b = bases.square().sum((1, 2)) / bases.shape[-1] ** 2
    return (batch.chi_a[:, None] + chi_b - 2.0 * cross).clamp(min=0.0)


def coverage(energy: Tensor, temperature: float) -> Tensor:
    """Compute the soft-min coverage of every graph, [B]."""
    soft = torch.logsumexp(-energy / temperature, dim=1) - math.log(energy.shape[1])
    return -temperature * soft
