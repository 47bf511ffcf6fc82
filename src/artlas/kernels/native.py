"""The compiled kernels behind PyTorch's interface: float32 on the CPU."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from artlas.kernels import _art
from artlas.kernels.structure import Structure


def isa() -> str:
    """The instruction set in use: avx512, avx2 or base."""
    return _art.isa()


class Sinkhorn(NamedTuple):
    scale: float
    clamp: float | None
    steps: int

    def problem(self, structure: Structure) -> Any:
        clamp = math.inf if self.clamp is None else self.clamp
        return _art.Problem(
            structure.node_ptr,
            structure.row_ptr,
            structure.col,
            structure.measure,
            self.scale,
            clamp,
            self.steps,
            torch.get_num_threads(),
        )


class _Energies(torch.autograd.Function):
    """Exact gradients of the unrolled iterations, from the scalings kept of every iteration."""

    @staticmethod
    def forward(
        ctx: Any,
        nodes: Tensor,
        roles: Tensor,
        relations: Tensor,
        structure: Structure,
        options: Sinkhorn,
    ) -> tuple[Tensor, Tensor]:
        nodes, roles, relations = _plain(nodes, roles, relations)
        bases, role_count = roles.shape[:2]
        saved = None
        if any(ctx.needs_input_grad):
            padded = _art.padded_roles(role_count)
            saved = nodes.new_empty(structure.num_graphs, bases, 2, options.steps, padded)
        found, residuals = _pair_outputs(nodes, roles, structure)
        _art.energies(options.problem(structure), nodes, roles, relations, found, residuals, saved)
        ctx.mark_non_differentiable(residuals)
        ctx.save_for_backward(nodes, roles, relations, found, saved)
        ctx.structure, ctx.options = structure, options
        return found, residuals

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        nodes, roles, relations, found, saved = ctx.saved_tensors
        grad = torch.where(found > 0, grad, 0.0)  # energies are clamped at zero
        grads = torch.empty_like(nodes), torch.empty_like(roles), torch.empty_like(relations)
        problem = ctx.options.problem(ctx.structure)
        _art.backward(problem, nodes, roles, relations, saved, grad.contiguous(), *grads)
        return *grads, None, None


class _NeighbourSum(torch.autograd.Function):
    """A is symmetric, so that its product is its own gradient."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, structure: Structure) -> Tensor:
        ctx.structure = structure
        h = h.contiguous()
        out = torch.empty_like(h)
        _art.neighbour_sum(
            structure.row_ptr, structure.col, h.detach(), torch.get_num_threads(), out
        )
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _NeighbourSum.apply(grad, ctx.structure), None


def energies(
    nodes: Tensor, roles: Tensor, relations: Tensor, structure: Structure, **options: Any
) -> tuple[Tensor, Tensor]:
    return _Energies.apply(nodes, roles, relations, structure, Sinkhorn(**options))


def couplings(
    nodes: Tensor, roles: Tensor, relations: Tensor, structure: Structure, **options: Any
) -> Tensor:
    nodes, roles, relations = _plain(nodes, roles, relations)
    out = nodes.new_empty(roles.shape[0], structure.num_nodes, roles.shape[1])
    _art.couplings(Sinkhorn(**options).problem(structure), nodes, roles, relations, out)
    return out


def mixtures(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    *,
    temperature: float,
    top_k: int | None,
    **options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    mixed = nodes.new_empty(structure.num_nodes, roles.shape[1])
    found = _mix(nodes, roles, relations, structure, temperature, top_k, options, mixed=mixed)
    return *found, mixed


def transport_features(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    x: Tensor,
    *,
    temperature: float,
    top_k: int | None,
    **options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    moved = nodes.new_empty(structure.num_graphs, roles.shape[1], x.shape[1])
    found = _mix(
        nodes, roles, relations, structure, temperature, top_k, options, x=x, moved=moved
    )
    return *found, moved


def neighbour_sum(h: Tensor, structure: Structure) -> Tensor:
    return _NeighbourSum.apply(h, structure)


def encode(encoder: Any, projection: Tensor, structure: Structure) -> Tensor:
    """The encoder's forward pass and the projection [D, D] of its result, without gradients."""
    packed = _packed(encoder, projection)
    width = projection.shape[0]
    out = projection.new_empty(structure.num_nodes, width)
    threads = torch.get_num_threads()
    _art.encode(
        structure.node_ptr, structure.row_ptr, structure.col, *packed, width, threads, out
    )
    return out


def _mix(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    temperature: float,
    top_k: int | None,
    options: dict[str, Any],
    x: Tensor | None = None,
    moved: Tensor | None = None,
    mixed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    nodes, roles, relations = _plain(nodes, roles, relations)
    found, residuals = _pair_outputs(nodes, roles, structure)
    bases = roles.shape[0]
    _art.mixtures(
        Sinkhorn(**options).problem(structure),
        nodes,
        roles,
        relations,
        temperature,
        bases if top_k is None else top_k,
        None if x is None else x.detach().contiguous(),
        found,
        residuals,
        moved,
        mixed,
    )
    return found, residuals


def _plain(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(t.detach().contiguous() for t in tensors)


def _pair_outputs(nodes: Tensor, roles: Tensor, structure: Structure) -> tuple[Tensor, Tensor]:
    shape = structure.num_graphs, roles.shape[0]
    return nodes.new_empty(shape), nodes.new_empty(shape)


def _packed(encoder: Any, projection: Tensor) -> tuple[Tensor, ...]:
    """Weights as the kernel reads them: input-major, padded with zeros to a width of 32."""
    width = projection.shape[0]
    padded = -(-width // 32) * 32

    def grow(t: Tensor) -> Tensor:
        out = t.new_zeros([padded] * t.dim())
        out[tuple(slice(n) for n in t.shape)] = t
        return out

    layers = encoder.layers
    return (
        grow(encoder.lift.weight[:, 0]),
        grow(encoder.lift.bias),
        torch.stack(
            [
                torch.stack([grow(lin.weight.T).flatten() for lin in (layer.inner, layer.outer)])
                for layer in layers
            ]
        ),
        torch.stack(
            [
                torch.stack(
                    [
                        grow(v)
                        for v in (
                            layer.inner.bias,
                            layer.outer.bias,
                            layer.norm.weight,
                            layer.norm.bias,
                        )
                    ]
                )
                for layer in layers
            ]
        ),
        torch.cat([1 + layer.epsilon for layer in layers]),
        grow(projection.T),
    )
