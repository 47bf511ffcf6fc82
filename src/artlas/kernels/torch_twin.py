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
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from artlas.kernels.structure import Chunk, Structure, wide
from artlas.kernels.torch_sinkhorn import Block, State, marginal_error, round_, round_pull_back

CACHE_BUDGET = 1 << 20  # elements of a block on the CPU: its few arrays stay in a last-level cache
MEMORY_BUDGET = 1 << 25  # and elsewhere


def energies(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    *,
    scale: float,
    clamp: float | None,
    steps: int,
) -> tuple[Tensor, Tensor]:
    r"""Alignment energies, with gradients, and the marginal residuals of the couplings behind them.

    .. math:: e_{gk} = \chi_A + \chi_B - 2 \langle A T', T' B_k \rangle

    nodes [N, D], roles [K, M, D], relations [K, M, M] symmetric -> energies, residuals [G, K].
    """
    _check(nodes, roles, relations, structure, steps)
    inputs = (nodes, roles, relations)
    if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
        return _Energies.apply(*inputs, structure, scale, clamp, steps)
    return _forward(*inputs, structure, scale, clamp, steps)


def couplings(
    nodes: Tensor,
    roles: Tensor,
    structure: Structure,
    *,
    scale: float,
    clamp: float | None,
    steps: int,
) -> list[Tensor]:
    """The rounded couplings T' of every graph, [K, N_g, M] each, without gradients."""
    _check(nodes, roles, None, structure, steps)
    K, M, _ = roles.shape
    out = [nodes.new_empty(K, size, M) for size in structure.sizes]
    with _plain(nodes):
        for chunk, rows, slices in _blocks(nodes, roles, structure):
            for bases in slices:
                block = Block(chunk, rows, roles[bases], scale, clamp)
                T = block.paired(round_(block.solve(steps), block.mu))
                for j, g in enumerate(chunk.graphs.tolist()):
                    out[g][bases] = T[:, j, : structure.sizes[g]]
    return out


def mixtures(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    *,
    scale: float,
    clamp: float | None,
    steps: int,
    temperature: float,
    top_k: int | None,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Energies, residuals and the mixed coupling, without gradients.

    .. math:: T_{mix} = \sum_k w_k T'_k, \quad w = \mathrm{softmax}_k(-e_k / \text{temperature})

    With ``top_k`` the largest weights are kept and renormalised. -> [G, K], [G, K], [N, M].
    """
    _check(nodes, roles, relations, structure, steps)
    K, M, _ = roles.shape
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be None or at least 1, got {top_k}")
    states: list[State] = []

    def keep(block: Block, AT: Tensor, TAT: Tensor) -> None:
        states.append(block.last)

    e, residual = _forward(nodes, roles, relations, structure, scale, clamp, steps, keep)
    weights = torch.softmax(-e / temperature, dim=1)
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
                block = Block(chunk, rows, roles[bases], scale, clamp, next(remaining))
                T = block.paired(round_(block.coupling(), block.mu))
                w = weights[chunk.graphs, bases].T
                mix += T.mul_(w[:, :, None, None]).sum(0).view_as(mix)
            mixed.index_copy_(0, chunk.nodes, mix[chunk.slots])
    return e, residual, mixed


def neighbour_sum(h: Tensor, structure: Structure) -> Tensor:
    """A h for h [N, D], with gradient: A is symmetric, so the backward pass is the same product."""
    _check_plain(structure)
    if h.dtype != structure.dtype or h.device != structure.device or len(h) != structure.num_nodes:
        raise ValueError(
            f"expected {structure.num_nodes} rows of {structure.dtype} on {structure.device}, got "
            f"{tuple(h.shape)} of {h.dtype} on {h.device}; see Structure.to"
        )
    return _NeighbourSum.apply(h, structure)


def _forward(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    scale: float,
    clamp: float | None,
    steps: int,
    keep: Callable[[Block, Tensor, Tensor], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """Energies and residuals; ``keep(block, A T', T'^T A T')`` is called once a block."""
    K, M, _ = roles.shape
    e = nodes.new_empty(structure.num_graphs, K, dtype=wide(nodes.device))
    residual = nodes.new_empty(structure.num_graphs, K)
    with _plain(nodes):
        for chunk, rows, slices in _blocks(nodes, roles, structure):
            for bases in slices:
                block = Block(chunk, rows, roles[bases], scale, clamp)
                T = round_(block.solve(steps), block.mu)
                AT = torch.empty_like(T)
                by_base = (-1, chunk.rows, M)
                for x, out in zip(T.view(by_base), AT.view(by_base), strict=True):
                    chunk.adjacency.multiply(x, out)
                TAT = torch.bmm(T.transpose(1, 2), AT)
                cross = (block.paired(TAT) * relations[bases, None]).sum((2, 3), dtype=e.dtype)
                e[chunk.graphs, bases] = cross.T
                residual[chunk.graphs, bases] = block.paired(marginal_error(T, block.mu)).T
                if keep is not None:
                    keep(block, AT, TAT)
        chi_B = relations.to(e.dtype).square().sum((1, 2)) / M**2
        e = (structure.self_energy[:, None] + chi_B - 2 * e).clamp_(min=0)
    return e.to(nodes.dtype), residual


class _Energies(torch.autograd.Function):
    """energies() with the exact gradient of its unrolled iterations and of the rounding."""

    @staticmethod
    def forward(
        ctx: Any,
        nodes: Tensor,
        roles: Tensor,
        relations: Tensor,
        structure: Structure,
        scale: float,
        clamp: float | None,
        steps: int,
    ) -> tuple[Tensor, Tensor]:
        saved: list[Tensor | None] = []

        def keep(block: Block, AT: Tensor, TAT: Tensor) -> None:
            saved.extend((*block.state, AT, TAT))

        e, residual = _forward(nodes, roles, relations, structure, scale, clamp, steps, keep)
        ctx.settings = structure, scale, clamp
        ctx.save_for_backward(nodes, roles, relations, e, *saved)
        ctx.mark_non_differentiable(residual)
        return e, residual

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        nodes, roles, relations, e, *saved = ctx.saved_tensors
        structure, scale, clamp = ctx.settings
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
                    block = Block(chunk, rows, R, scale, clamp, state)
                    dT = torch.bmm(AT.view(len(w), chunk.rows, M), -4 * B)  # dE/dT' = -4 w A T' B
                    dT = dT.view_as(AT).mul_(w.view(-1, 1, 1))
                    W = round_pull_back(block.coupling(), block.mu, dT)
                    dl = block.pull_back(W).view(len(w), chunk.rows, M)
                    for d, r in zip(dl, R, strict=True):
                        d_rows.addmm_(d, r, alpha=scale)
                    d_roles[bases] += torch.bmm(dl.transpose(1, 2), rows.expand(len(w), -1, -1))
                d_nodes.index_copy_(0, chunk.nodes, d_rows[chunk.slots])
        d_roles *= scale
        return d_nodes, d_roles, d_relations, None, None, None, None


class _NeighbourSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, structure: Structure) -> Tensor:
        ctx.structure = structure
        return structure.adjacency @ h.contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return neighbour_sum(grad, ctx.structure), None


def _check_plain(structure: Structure) -> None:
    if structure.classes is not None:
        raise ValueError(
            "this structure has alike nodes joined, which only the compiled kernels read; make it "
            "inside kernels.use('twin')"
        )


def _check(
    nodes: Tensor, roles: Tensor, relations: Tensor | None, structure: Structure, steps: int
) -> None:
    _check_plain(structure)
    N, (K, M, D) = structure.num_nodes, roles.shape
    for name, x, shape in (
        ("nodes", nodes, (N, D)),
        ("roles", roles, (K, M, D)),
        ("relations", relations, (K, M, M)),
    ):
        if x is None:
            continue
        if x.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {tuple(x.shape)}")
        if x.dtype != structure.dtype or x.device != structure.device:
            raise ValueError(
                f"{name} is {x.dtype} on {x.device} but the structure is {structure.dtype} on "
                f"{structure.device}; convert one of them (Structure.to)"
            )
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")


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
