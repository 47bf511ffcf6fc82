"""Compiled kernels behind PyTorch's interface: float32 on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from artlas.kernels.compiled import core
from artlas.kernels.options import Mixing, Sinkhorn
from artlas.kernels.structure import Classes, Structure

WIDTH_UNIT = 32  # encoder widths are padded to multiples of this


def isa() -> str:
    """Return the instruction set in use: avx512, avx2 or base."""
    return core.isa()


def energies(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    **options: Unpack[Sinkhorn],
) -> tuple[Tensor, Tensor]:
    return _Energies.apply(nodes, roles, relations, structure, options)


class _Energies(torch.autograd.Function):
    """Energies with the exact gradients of the unrolled iterations, from their saved scalings."""

    @staticmethod
    def forward(
        ctx: Any,
        nodes: Tensor,
        roles: Tensor,
        relations: Tensor,
        structure: Structure,
        options: Sinkhorn,
    ) -> tuple[Tensor, Tensor]:
        sides = [t.detach().contiguous() for t in (nodes, roles, relations)]
        bases, role_count = roles.shape[:2]
        saved = None
        if any(ctx.needs_input_grad):
            padded = core.padded_roles(role_count)
            saved = nodes.new_empty(structure.num_graphs, bases, 2, options["steps"], padded)
        energy, residual = nodes.new_empty(2, structure.num_graphs, bases).unbind()
        _call(core.energies, _problem(structure, options), *sides, energy, residual, saved)
        ctx.mark_non_differentiable(residual)
        ctx.save_for_backward(*sides, energy, saved)
        ctx.structure, ctx.options = structure, options
        return energy, residual

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        *sides, energy, saved = ctx.saved_tensors
        grad = torch.where(energy > 0, grad, 0.0).contiguous()  # energies are clamped at zero
        grads = tuple(torch.empty_like(side) for side in sides)
        _call(core.backward, _problem(ctx.structure, ctx.options), *sides, saved, grad, *grads)
        return *grads, None, None


def couplings(
    nodes: Tensor, roles: Tensor, structure: Structure, **options: Unpack[Sinkhorn]
) -> Tensor:
    bases, role_count = roles.shape[:2]
    out = nodes.new_empty(bases, structure.num_nodes, role_count)
    sides = [t.detach().contiguous() for t in (nodes, roles)]
    unused = nodes.new_zeros(bases, role_count, role_count)
    _call(core.couplings, _problem(structure, options), *sides, unused, out)
    return out if structure.classes is None else structure.classes.split_rows(out)


def mixtures(
    nodes: Tensor, roles: Tensor, relations: Tensor, structure: Structure, **options: Unpack[Mixing]
) -> tuple[Tensor, Tensor, Tensor]:
    mixed = nodes.new_empty(structure.num_nodes, roles.shape[1])
    energy, residual = _mix(nodes, roles, relations, structure, options, mixture=mixed)
    classes = structure.classes
    return energy, residual, mixed if classes is None else classes.split_rows(mixed)


def transport_features(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    x: Tensor,
    measure: Tensor | None = None,
    **options: Unpack[Mixing],
) -> tuple[Tensor, Tensor, Tensor]:
    rows = class_averages(x.detach().contiguous(), measure, structure)
    moved = nodes.new_empty(structure.num_graphs, roles.shape[1], x.shape[1])
    energy, residual = _mix(nodes, roles, relations, structure, options, x=rows, transported=moved)
    return energy, residual, moved


def class_averages(x: Tensor, measure: Tensor | None, structure: Structure) -> Tensor:
    """Divide rows x [nodes, d] by their measure and average them over classes of alike nodes."""
    classes = structure.classes
    if classes is None and measure is None:
        return x
    out = x.new_empty(structure.num_nodes, x.shape[1])
    _call(
        core.averages,
        x,
        structure.node_ptr,
        out,
        measure=measure,
        class_of=None if classes is None else classes.class_of,
        count=None if classes is None else classes.count,
        sizes=None if classes is None else classes.sizes,
        threads=torch.get_num_threads(),
    )
    return out


def _mix(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    options: Mixing,
    **outputs: Tensor,
) -> tuple[Tensor, Tensor]:
    """Write ``mixture``, or ``transported`` of ``x``, and return energies and residuals."""
    energy, residual = nodes.new_empty(2, structure.num_graphs, len(roles)).unbind()
    _call(
        core.mixtures,
        _problem(structure, options),
        *(t.detach().contiguous() for t in (nodes, roles, relations)),
        energy,
        residual,
        temperature=options["temperature"],
        top=len(roles) if options["top_k"] is None else options["top_k"],
        **outputs,
    )
    return energy, residual


def join_alike_nodes(structure: Structure, rounds: int) -> Structure:
    """Merge the nodes of each graph that have the same ``rounds`` of neighbourhoods.

    Such nodes have the same embedding after as many GIN layers, and the same row in every coupling
    but for their measure: nothing is lost. Graphs that would hardly shrink stay as they are.
    """
    csr = structure.node_ptr, structure.row_ptr, structure.col
    merged = _call(core.merge_nodes, *csr, rounds, threads=torch.get_num_threads())
    if not merged.worthwhile:
        return structure
    measure = np.bincount(merged.class_of, structure.measure.numpy(), len(merged.count))
    fields = merged.weight, merged.count, merged.degree, merged.class_of
    weight, count, degree, class_of = map(torch.from_numpy, fields)
    return Structure(
        torch.from_numpy(merged.node_ptr),
        torch.from_numpy(merged.row_ptr),
        torch.from_numpy(merged.col),
        torch.from_numpy(measure).to(structure.measure.dtype),
        Classes(weight, count, degree, class_of, structure.node_ptr.diff()),
    )


def neighbour_sum(h: Tensor, structure: Structure) -> Tensor:
    classes = structure.classes
    return _NeighbourSum.apply(h if classes is None else h * classes.count[:, None], structure)


class _NeighbourSum(torch.autograd.Function):
    """A h; A is symmetric, so the gradient is the same product."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, structure: Structure) -> Tensor:
        ctx.structure = structure
        h = h.detach().contiguous()
        out = torch.empty_like(h)
        weight = None if structure.classes is None else structure.classes.weight
        graph = structure.row_ptr, structure.col, weight
        _call(core.neighbour_sum, *graph, h, out, threads=torch.get_num_threads())
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _NeighbourSum.apply(grad, ctx.structure), None


def blocks(x: Tensor, degree: Tensor, structure: Structure) -> Tensor:
    """See :func:`artlas.kernels.blocks`; without gradients, and for structures without classes."""
    x, out = x.detach().contiguous(), x.new_empty(len(x), 4 * x.shape[1])
    graph = structure.row_ptr, structure.col
    _call(core.blocks, *graph, x, degree, out, threads=torch.get_num_threads())
    return out


class PackedEncoder(NamedTuple):
    """Encoder weights as the kernel reads them: input-major, widths padded to W with zeros.

    lift_weight, lift_bias [W]; weights [layers, 2, W * W] of both linear maps; vectors
    [layers, 4, W]: both biases, scale and shift of the norm; self_weight [layers]: 1 + epsilon;
    projection [W, W].
    """

    lift_weight: Tensor
    lift_bias: Tensor
    weights: Tensor
    vectors: Tensor
    self_weight: Tensor
    projection: Tensor


def pack_encoder(encoder: Any, projection: Tensor) -> PackedEncoder:
    """Pack an encoder and the projection [D, D] of what it makes of the nodes."""
    more = -len(projection) % WIDTH_UNIT
    square = 0, more, 0, more
    maps = [m for layer in encoder.layers for m in (layer.inner, layer.outer)]
    vectors = [
        torch.stack([layer.inner.bias, layer.outer.bias, layer.norm.weight, layer.norm.bias])
        for layer in encoder.layers
    ]
    return PackedEncoder(
        pad(encoder.lift.weight[:, 0], (0, more)),
        pad(encoder.lift.bias, (0, more)),
        torch.stack([pad(m.weight.T, square).flatten() for m in maps]).unflatten(0, (-1, 2)),
        pad(torch.stack(vectors), (0, more)),
        torch.cat([1 + layer.epsilon for layer in encoder.layers]),
        pad(projection.T, square).contiguous(),
    )


def encode(packed: PackedEncoder, width: int, structure: Structure, x: Tensor) -> Tensor:
    """Compute projected node embeddings [N, width] from degrees x [N], without gradients."""
    out = x.new_empty(structure.num_nodes, width)
    classes = structure.classes
    _call(
        core.encode,
        structure.row_ptr,
        structure.col,
        x,
        out,
        weight=None if classes is None else classes.weight,
        count=None if classes is None else classes.count,
        threads=torch.get_num_threads(),
        **packed._asdict(),
    )
    return out


def _call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call compiled code with tensors as NumPy views, which it takes ten times faster."""
    views = (a.numpy() if isinstance(a, Tensor) else a for a in arguments)
    named = {name: a.numpy() if isinstance(a, Tensor) else a for name, a in named.items()}
    return function(*views, **named)


def _problem(structure: Structure, options: Sinkhorn) -> Any:
    """Pack what all calls that align graphs with bases share."""
    classes = structure.classes
    return _call(
        core.Problem,
        structure.node_ptr,
        structure.row_ptr,
        structure.col,
        structure.measure,
        weight=None if classes is None else classes.weight,
        sizes=None if classes is None else classes.sizes,
        scale=options["scale"],
        clamp=math.inf if options["clamp"] is None else options["clamp"],
        steps=options["steps"],
        threads=torch.get_num_threads(),
    )
