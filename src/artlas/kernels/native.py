"""Compiled kernels and readers behind PyTorch's and NumPy's interfaces: float32 on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from artlas.kernels.structure import Classes, Mixing, Sinkhorn, Structure, SymmetricProduct

WIDTH_UNIT = 32  # encoder widths are padded to multiples of this

# The extension modules, or None where artlas was installed without a compiler.
core: Any = None  # couplings, energies, encoder, iterative solver; isa(): avx512, avx2 or base
ingest: Any = None  # number tables, canonical rows, ego-graphs
_blocks: Any = None  # vectors of named blocks
if find_spec("artlas.kernels._core") is not None:
    try:
        core = import_module("artlas.kernels._core")
        ingest = import_module("artlas.kernels._ingest")
        _blocks = import_module("artlas.kernels._blocks")
    except ImportError as error:  # present but broken: never fall back in silence
        wrong = f"artlas' compiled kernels are installed but do not load ({error})"
        raise ImportError(f"{wrong}. Reinstall artlas in this environment.") from error

Walker: Any = getattr(ingest, "Walker", None)  # see ego_twin.Walker


def energies(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    **options: Unpack[Sinkhorn],
) -> tuple[Tensor, Tensor]:
    r"""Compute energies and marginal residuals, [G, K] each; differentiable in the first three.

    .. math:: e_{gk} = \chi_A + \chi_B - 2 \langle A T', T' B_k \rangle

    nodes [N, D] and roles [K, M, D] are projected; their products times ``scale`` are the logits.
    relations [K, M, M] must be symmetric.
    """
    return _Energies.apply(nodes, roles, relations, structure, options)


class _Energies(torch.autograd.Function):
    """Energies with the exact gradients of the unrolled iterations, from their saved scalings."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        *tensors, structure, options = inputs
        sides = nodes, roles, _ = [t.detach().contiguous() for t in tensors]
        shape, saved = (structure.num_graphs, len(roles)), None
        if any(ctx.needs_input_grad):
            padded = core.padded_roles(roles.shape[1])
            saved = nodes.new_empty(*shape, 2, options["steps"], padded)
        energy, residual = nodes.new_empty(2, *shape).unbind()
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
) -> list[Tensor]:
    """Compute the rounded couplings, [K, N, M], of every graph: here it must be one."""
    bases, role_count = roles.shape[:2]
    out = nodes.new_empty(bases, structure.num_nodes, role_count)
    sides = [t.detach().contiguous() for t in (nodes, roles)]
    unused = nodes.new_zeros(bases, role_count, role_count)
    _call(core.couplings, _problem(structure, options), *sides, unused, out)
    return [out if structure.classes is None else structure.classes.split_rows(out)]


def mixtures(
    nodes: Tensor, roles: Tensor, relations: Tensor, structure: Structure, **options: Unpack[Mixing]
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Compute energies, residuals and the mixed coupling [N, M], without gradients.

    .. math:: T_{mix} = \sum_k w_k T'_k, \quad w = \mathrm{softmax}_k(-e_k / \text{temperature})

    With ``top_k`` the largest weights are kept and renormalised.
    """
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
    r"""Compute energies, residuals and :math:`H = N T_{mix}^\top X`, [G, M, d], for x [N, d].

    Rows of x are divided by ``measure`` [N] of float64 first, where it is given.
    """
    rows = class_averages(x.detach().contiguous(), measure, structure)
    moved = nodes.new_empty(structure.num_graphs, roles.shape[1], x.shape[1])
    energy, residual = _mix(nodes, roles, relations, structure, options, x=rows, transported=moved)
    return energy, residual, moved


def class_averages(x: Tensor, measure: Tensor | None, structure: Structure) -> Tensor:
    """Divide rows x [nodes, d] by their measure and average them over classes of alike nodes."""
    if structure.classes is None and measure is None:
        return x
    out = x.new_empty(structure.num_nodes, x.shape[1])
    classes = _of_classes(structure, "class_of", "count", "sizes")
    threads = torch.get_num_threads()
    _call(core.averages, x, structure.node_ptr, out, measure=measure, **classes, threads=threads)
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
    """Compute A h, the sum of h [N, D] over neighbours; differentiable."""
    classes = structure.classes
    graph = structure.row_ptr, structure.col, None if classes is None else classes.weight

    def multiply(h: Tensor) -> Tensor:
        out = torch.empty_like(h)
        _call(core.neighbour_sum, *graph, h, out, threads=torch.get_num_threads())
        return out

    return SymmetricProduct.apply(multiply, h if classes is None else h * classes.count[:, None])


def blocks(x: Tensor, degree: Tensor, structure: Structure) -> Tensor:
    """Compute [X | AX | X o AX | deg X o X - X o AX] of x [N, d] and degree [N], [N, 4 d].

    Without gradients, and for structures without classes.
    """
    out, threads = x.new_empty(len(x), 4 * x.shape[1]), torch.get_num_threads()
    x = x.detach().contiguous()
    _call(core.blocks, structure.row_ptr, structure.col, x, degree, out, threads=threads)
    return out


def pack_encoder(encoder: Any, projection: Tensor) -> dict[str, Tensor]:
    """Pack an encoder and the projection [D, D] of its output as the kernel reads them.

    Maps are input-major, and widths padded to W with zeros: lift_weight, lift_bias [W]; weights
    [layers, 2, W * W] of both linear maps; vectors [layers, 4, W]: both biases, scale and shift of
    the norm; self_weight [layers]: 1 + epsilon; projection [W, W].
    """
    more = -len(projection) % WIDTH_UNIT
    square = 0, more, 0, more
    maps = [m for layer in encoder.layers for m in (layer.inner, layer.outer)]
    weights = [pad(m.weight.T, square).flatten() for m in maps]
    vectors = [
        torch.stack([layer.inner.bias, layer.outer.bias, layer.norm.weight, layer.norm.bias])
        for layer in encoder.layers
    ]
    return {
        "lift_weight": pad(encoder.lift.weight[:, 0], (0, more)),
        "lift_bias": pad(encoder.lift.bias, (0, more)),
        "weights": torch.stack(weights).unflatten(0, (-1, 2)),
        "vectors": pad(torch.stack(vectors), (0, more)),
        "self_weight": torch.cat([1 + layer.epsilon for layer in encoder.layers]),
        "projection": pad(projection.T, square).contiguous(),
    }


def encode(packed: dict[str, Tensor], width: int, structure: Structure, x: Tensor) -> Tensor:
    """Compute projected node embeddings [N, width] from degrees x [N], without gradients."""
    out = x.new_empty(structure.num_nodes, width)
    more = {**_of_classes(structure, "weight", "count"), **packed}
    graph, threads = (structure.row_ptr, structure.col), torch.get_num_threads()
    _call(core.encode, *graph, x, out, **more, threads=threads)
    return out


def text_table(data: NDArray[np.uint8], columns: int | None, skip: int) -> Any:
    """Measure a table in text without parsing it; its ``parse(out)`` writes [rows, columns]."""
    return ingest.TextTable(data, columns or 0, skip, threads=torch.get_num_threads())


def canonical(ends: NDArray[np.int32], nodes: int, first: int = 0) -> Any:
    """Make entries [2, E] of nodes that count from ``first`` undirected, loop-free, sorted rows.

    The result has row_ptr [nodes + 1] and col, and how many loops were dropped, duplicates merged
    and one_way entries completed. It is None if a node is out of range.
    """
    return ingest.canonical(ends, nodes, first, threads=torch.get_num_threads())


def canonical_text(data: NDArray[np.uint8], nodes: int, first: int) -> Any:
    """Make canonical rows of the edges in text, two numbers a line; see :func:`canonical`.

    None if they are not in ascending order, or if the text holds anything else.
    """
    table = text_table(data, 2, 0)
    return ingest.canonical_text(table, nodes, first, threads=torch.get_num_threads())


def induce(
    row_ptr: NDArray[np.int64],
    col: NDArray[np.int32],
    node_ptr: NDArray[np.int64],
    nodes: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return row_ptr and col of the subgraphs that the nodes of every ego-graph induce."""
    induced = ingest.induce(row_ptr, col, node_ptr, nodes, threads=torch.get_num_threads())
    return induced.row_ptr, induced.col


def write_blocks(
    node_ptr: Tensor,
    row_ptr: Tensor,
    col: Tensor,
    x: Tensor | None,
    out: Tensor,
    rounds: int,
    buckets: int,
) -> None:
    """Write vectors of blocks into out [G, D]; see :func:`artlas.blocks.embed`."""
    x = None if x is None else x.contiguous()
    arrays = (node_ptr, row_ptr, col, x, out)
    _call(_blocks.embed, *arrays, rounds, buckets, threads=torch.get_num_threads())


def _call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call compiled code with tensors as NumPy views, which it takes ten times faster."""
    views = (a.numpy() if isinstance(a, Tensor) else a for a in arguments)
    named = {name: a.numpy() if isinstance(a, Tensor) else a for name, a in named.items()}
    return function(*views, **named)


def _of_classes(structure: Structure, *names: str) -> dict[str, Tensor | None]:
    """Return arguments about the classes of alike nodes, None where nodes are not merged."""
    return {name: getattr(structure.classes, name, None) for name in names}


def _problem(structure: Structure, options: Sinkhorn) -> Any:
    """Pack what all calls that align graphs with bases share."""
    return _call(
        core.Problem,
        structure.node_ptr,
        structure.row_ptr,
        structure.col,
        structure.measure,
        **_of_classes(structure, "weight", "sizes"),
        scale=options["scale"],
        clamp=math.inf if options["clamp"] is None else options["clamp"],
        steps=options["steps"],
        threads=torch.get_num_threads(),
    )
