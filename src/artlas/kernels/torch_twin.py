"""The PyTorch twin of the C++ kernel: couplings, energies and mixtures on any device.

For graph g with nodes Q [N_g, D] and base k with roles R_k [M, D] and relations B_k [M, M]:

    logits    l = scale * Q R_k^T, clamped if asked
    coupling  T' = Sinkhorn and rounding of l (torch_sinkhorn.py)
    energy    e = chi_A + chi_B - 2 <A T', T' B_k>

Graphs of similar size are padded together and a few bases taken at a time, so that a block of
(graph, base) pairs stays in cache. The backward pass recomputes the logits and follows the S
iterations down from the saved scalings: the exact gradient of the unrolled loop without its copies.

Shapes: G graphs, N nodes, K bases, M roles, D width of the embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, Unpack

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from artlas.kernels.structure import Chunk, Mixing, Sinkhorn, Structure, SymmetricProduct, wide
from artlas.kernels.torch_sinkhorn import Block, marginal_error, round_, round_pull_back

CACHE_BUDGET = 1 << 20  # elements of a block on the CPU: its few arrays stay in a last-level cache
MEMORY_BUDGET = 1 << 25  # and elsewhere


def energies(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    **options: Unpack[Sinkhorn],
) -> tuple[Tensor, Tensor]:
    return _Energies.apply(nodes, roles, relations, structure, options)


def couplings(
    nodes: Tensor, roles: Tensor, structure: Structure, **options: Unpack[Sinkhorn]
) -> list[Tensor]:
    """The rounded couplings T' of every graph, [K, N_g, M] each, without gradients."""
    _check(structure, options, nodes, roles)
    K, M, _ = roles.shape
    out = [nodes.new_empty(K, size, M) for size in structure.sizes]
    with _plain(nodes):
        for chunk, rows, slices in _blocks(nodes, roles, structure):
            for bases in slices:
                block = Block(chunk, rows, roles[bases], options)
                T = block.paired(round_(block.solve(options["steps"]), block.mu))
                for j, g in enumerate(chunk.graphs.tolist()):
                    out[g][bases] = T[:, j, : structure.sizes[g]]
    return out


def mixtures(
    nodes: Tensor, roles: Tensor, relations: Tensor, structure: Structure, **options: Unpack[Mixing]
) -> tuple[Tensor, Tensor, Tensor]:
    K, M, _ = roles.shape
    top_k = options["top_k"]
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be None or at least 1, got {top_k}")
    e, residual, states = _forward(
        nodes, roles, relations, structure, options, lambda block, *_: block.state(last=True)
    )
    weights = torch.softmax(-e / options["temperature"], dim=1)
    if top_k is not None and top_k < K:
        kept = weights.topk(top_k, dim=1)
        weights = torch.zeros_like(weights).scatter_(1, kept.indices, kept.values)
        weights /= weights.sum(1, keepdim=True)
    mixed = nodes.new_zeros(structure.num_nodes, M)
    with _plain(nodes):
        remaining = iter(states)
        for chunk, rows, slices in _blocks(nodes, roles, structure):
            mix = rows.new_zeros(chunk.rows, M)
            for bases in slices:
                block = Block(chunk, rows, roles[bases], options, next(remaining))
                T = block.paired(round_(block.coupling(), block.mu))
                w = weights[chunk.graphs, bases].T
                mix += T.mul_(w[:, :, None, None]).sum(0).view_as(mix)
            mixed.index_copy_(0, chunk.nodes, mix[chunk.slots])
    return e, residual, mixed


def transport_features(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    x: Tensor,
    measure: Tensor | None = None,
    **options: Unpack[Mixing],
) -> tuple[Tensor, Tensor, Tensor]:
    if measure is not None:
        x = (x / measure[:, None]).to(nodes)
    energy, residual, mixed = mixtures(nodes, roles, relations, structure, **options)
    parts = zip(mixed.split(structure.sizes), x.split(structure.sizes), strict=True)
    return energy, residual, torch.stack([len(t) * (t.T @ rows) for t, rows in parts])


def blocks(x: Tensor, degree: Tensor, structure: Structure) -> Tensor:
    summed = neighbour_sum(x.contiguous(), structure)
    across = x * summed
    return torch.cat([x, summed, across, degree[:, None] * x * x - across], 1)


def neighbour_sum(h: Tensor, structure: Structure) -> Tensor:
    _check_plain(structure)
    if h.dtype != structure.dtype or h.device != structure.device or len(h) != structure.num_nodes:
        wanted = f"{structure.num_nodes} rows of {structure.dtype} on {structure.device}"
        got = f"{tuple(h.shape)} of {h.dtype} on {h.device}"
        raise ValueError(f"expected {wanted}, got {got}; see Structure.to")
    return SymmetricProduct.apply(structure.adjacency.multiply, h)


def _forward(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    options: Sinkhorn,
    keep: Callable[[Block, Tensor, Tensor], Any],
) -> tuple[Tensor, Tensor, list[Any]]:
    """Energies, residuals, and ``keep(block, A T', T'^T A T')`` of every block."""
    _check(structure, options, nodes, roles, relations)
    K, M, _ = roles.shape
    e = nodes.new_empty(structure.num_graphs, K, dtype=wide(nodes.device))
    residual = nodes.new_empty(structure.num_graphs, K)
    kept = []
    with _plain(nodes):
        for chunk, rows, slices in _blocks(nodes, roles, structure):
            for bases in slices:
                block = Block(chunk, rows, roles[bases], options)
                T = round_(block.solve(options["steps"]), block.mu)
                AT = torch.empty_like(T)
                by_base = (-1, chunk.rows, M)
                for x, out in zip(T.view(by_base), AT.view(by_base), strict=True):
                    chunk.adjacency.multiply(x, out)
                TAT = torch.bmm(T.transpose(1, 2), AT)
                cross = (block.paired(TAT) * relations[bases, None]).sum((2, 3), dtype=e.dtype)
                e[chunk.graphs, bases] = cross.T
                residual[chunk.graphs, bases] = block.paired(marginal_error(T, block.mu)).T
                kept.append(keep(block, AT, TAT))
        chi_B = relations.to(e.dtype).square().sum((1, 2)) / M**2
        e = (structure.self_energy[:, None] + chi_B - 2 * e).clamp_(min=0)
    return e.to(nodes.dtype), residual, kept


class _Energies(torch.autograd.Function):
    """energies() with the exact gradient of its unrolled iterations and of the rounding."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        nodes, roles, relations, ctx.structure, ctx.options = inputs
        needed = any(ctx.needs_input_grad)

        def keep(block: Block, AT: Tensor, TAT: Tensor) -> tuple[Tensor | None, ...]:
            return (*block.state(), AT, TAT) if needed else ()

        e, residual, saved = _forward(nodes, roles, relations, ctx.structure, ctx.options, keep)
        ctx.save_for_backward(nodes, roles, relations, e, *chain.from_iterable(saved))
        ctx.mark_non_differentiable(residual)
        return e, residual

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        nodes, roles, relations, e, *saved = ctx.saved_tensors
        structure, scale = ctx.structure, ctx.options["scale"]
        M = roles.shape[1]
        grad = grad.masked_fill(e <= 0, 0)  # an energy clamped at 0 has no gradient
        d_nodes, d_roles = torch.zeros_like(nodes), torch.zeros_like(roles)
        d_relations = relations * (2 / M**2 * grad.sum(0))[:, None, None]
        blocks = (((h, v, g), AT, TAT) for h, v, g, AT, TAT in zip(*[iter(saved)] * 5, strict=True))
        with _plain(nodes):
            for chunk, rows, slices in _blocks(nodes, roles, structure):
                d_rows = torch.zeros_like(rows)
                for bases in slices:
                    state, AT, TAT = next(blocks)
                    R, B = roles[bases], relations[bases]
                    w = grad[chunk.graphs, bases].T.contiguous()  # [bases, graphs]
                    dB = torch.bmm(w.unsqueeze(1), TAT.view(*w.shape, M * M)).view_as(B)
                    d_relations[bases] -= 2 * dB
                    if not any(ctx.needs_input_grad[:2]):
                        continue
                    block = Block(chunk, rows, R, ctx.options, state)
                    dT = torch.bmm(AT.view(len(w), chunk.rows, M), -4 * B)  # dE/dT' = -4 w A T' B
                    dT = dT.view_as(AT).mul_(w.view(-1, 1, 1))
                    W = round_pull_back(block.coupling(), block.mu, dT)
                    dl = block.pull_back(W).view(len(w), chunk.rows, M)
                    for d, r in zip(dl, R, strict=True):
                        d_rows.addmm_(d, r, alpha=scale)
                    d_roles[bases] += torch.bmm(dl.transpose(1, 2), rows.expand(len(w), -1, -1))
                d_nodes.index_copy_(0, chunk.nodes, d_rows[chunk.slots])
        d_roles *= scale
        return d_nodes, d_roles, d_relations, None, None


def _check_plain(structure: Structure) -> None:
    if structure.classes is not None:
        raise ValueError("only the compiled kernels read joined nodes: use kernels.use('twin')")


def _check(structure: Structure, options: Sinkhorn, *inputs: Tensor) -> None:
    """Refuse nodes, roles and relations, if given, of other shapes or types than the structure."""
    _check_plain(structure)
    K, M, D = inputs[1].shape
    shapes = {"nodes": (structure.num_nodes, D), "roles": (K, M, D), "relations": (K, M, M)}
    for x, (name, shape) in zip(inputs, shapes.items(), strict=False):
        if x.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {tuple(x.shape)}")
        if x.dtype != structure.dtype or x.device != structure.device:
            other = f"{structure.dtype} on {structure.device}; convert one of them (Structure.to)"
            raise ValueError(f"{name} is {x.dtype} on {x.device} but the structure is {other}")
    if options["steps"] < 1:
        raise ValueError(f"steps must be at least 1, got {options['steps']}")


@contextmanager
def _plain(x: Tensor) -> Iterator[None]:
    """No gradient tracking and no autocast: the iterations need their full precision."""
    with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
        yield


def _blocks(
    nodes: Tensor, roles: Tensor, structure: Structure
) -> Iterator[tuple[Chunk, Tensor, list[slice]]]:
    """Chunks of graphs, their padded rows of ``nodes``, and the slices to take the bases in."""
    K, M, _ = roles.shape
    budget = CACHE_BUDGET if nodes.device.type == "cpu" else MEMORY_BUDGET
    for chunk in structure.chunks(max(1, budget // M)):
        width = max(1, budget // (chunk.rows * M))
        yield chunk, chunk.pad(nodes), [slice(k, min(k + width, K)) for k in range(0, K, width)]
