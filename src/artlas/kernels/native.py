"""The compiled kernels behind PyTorch's interface: float32 on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from artlas.kernels import _art  # type: ignore[attr-defined]
from artlas.kernels.options import Mixing, Sinkhorn
from artlas.kernels.structure import Classes, Structure


def isa() -> str:
    """The instruction set in use: avx512, avx2 or base."""
    return _art.isa()


def gw(*arguments: Any) -> None:
    """See artlas.gw: solves problems in place of their starting couplings."""
    _art.gw(*arguments)


def done() -> int:
    """Nodes times bases that were aligned since the process began, by a call that runs too."""
    return _art.done()


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
            saved = nodes.new_empty(structure.num_graphs, bases, 2, options["steps"], padded)
        found, residuals = _pair_outputs(nodes, roles, structure)
        problem = _problem(structure, options)
        _call(_art.energies, problem, nodes, roles, relations, found, residuals, saved)
        ctx.mark_non_differentiable(residuals)
        ctx.save_for_backward(nodes, roles, relations, found, saved)
        ctx.structure, ctx.options = structure, options
        return found, residuals

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        nodes, roles, relations, found, saved = ctx.saved_tensors
        grad = torch.where(found > 0, grad, 0.0)  # energies are clamped at zero
        grads = torch.empty_like(nodes), torch.empty_like(roles), torch.empty_like(relations)
        problem = _problem(ctx.structure, ctx.options)
        grad = grad.contiguous()
        _call(_art.backward, problem, nodes, roles, relations, saved, grad, *grads)
        return *grads, None, None


def join_alike_nodes(structure: Structure, rounds: int) -> Structure:
    """The same graphs with one node for all that have the same ``rounds`` of neighbourhoods.

    Such nodes have the same embedding after as many GIN layers, and the same row in every coupling
    but for their measure: nothing is lost. Graphs that would hardly shrink stay as they are.
    """
    csr = structure.node_ptr, structure.row_ptr, structure.col
    quotient = _call(_art.quotient, *csr, rounds, torch.get_num_threads())
    if not quotient.worthwhile:
        return structure
    joint = np.bincount(quotient.classes, structure.measure.numpy(), len(quotient.count))
    weight, count, degree, of = (
        torch.from_numpy(part)
        for part in (quotient.weight, quotient.count, quotient.degree, quotient.classes)
    )
    return Structure(
        torch.from_numpy(quotient.node_ptr),
        torch.from_numpy(quotient.row_ptr),
        torch.from_numpy(quotient.col),
        torch.from_numpy(joint).to(structure.dtype),
        Classes(weight, count, degree, of, structure.node_ptr.diff()),
    )


class _NeighbourSum(torch.autograd.Function):
    """A is symmetric, so that its product is its own gradient."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, structure: Structure) -> Tensor:
        ctx.structure = structure
        h = h.contiguous()
        out = torch.empty_like(h)
        weight = None if structure.classes is None else structure.classes.weight
        graph = structure.row_ptr, structure.col, weight
        _call(_art.neighbour_sum, *graph, h.detach(), torch.get_num_threads(), out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _NeighbourSum.apply(grad, ctx.structure), None


class _Additive(torch.autograd.Function):
    """Means by a GAT's weights; nothing but the sums of softmaxes is kept for the gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        sent: Tensor,
        met: Tensor,
        row_ptr: Tensor,
        col: Tensor,
        slope: float,
    ) -> Tensor:
        inputs = row_ptr, col, *_plain(values, sent, met)
        out, log_sum = values.new_empty(values.shape), sent.new_empty(sent.shape)
        _call(_art.additive, *inputs, slope, torch.get_num_threads(), out, log_sum)
        ctx.save_for_backward(*inputs, out, log_sum)
        ctx.slope = slope
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        *inputs, out, log_sum = ctx.saved_tensors
        grad = grads[0].contiguous()
        along = (grad * out).unflatten(1, (log_sum.shape[1], -1)).sum(2)
        made = tuple(torch.empty_like(given) for given in inputs[2:])
        received, threads = (grad, log_sum, along), torch.get_num_threads()
        _call(_art.additive_backward, *inputs, ctx.slope, *received, threads, *made)
        return *made, None, None, None


class _Normalised(torch.autograd.Function):
    """A graph convolution's adjacency is symmetric, likewise; V' is what its gradient is of V.

    Of y = S (A + I) S V, S has the gradient (g . y + V . V') / S by rows.
    """

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, bias: Tensor | None, scale: Tensor, *place: Tensor
    ) -> Tensor:
        ctx.graph = scale.detach(), *place
        out = _Normalised.product(values, bias, 1.0, *ctx.graph)
        if ctx.needs_input_grad[2]:
            ctx.save_for_backward(values, bias, out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        of_values, of_bias, of_scale, *_ = ctx.needs_input_grad
        back, d_scale = None, None
        if of_values or of_scale:
            back = _Normalised.product(grads[0], None, 1.0, *ctx.graph)
        if of_scale:
            values, bias, out = ctx.saved_tensors
            d_scale = (grads[0] * out).sum(1) + (values * back).sum(1)
            if bias is not None:
                d_scale -= grads[0] @ bias
            d_scale /= ctx.graph[0]
        return back, grads[0].sum(0) if of_bias else None, d_scale, None, None

    @staticmethod
    def product(
        values: Tensor, bias: Tensor | None, own: float, scale: Tensor | None, *place: Tensor
    ) -> Tensor:
        (values,), threads = _plain(values), torch.get_num_threads()
        out, bias = torch.empty_like(values), None if bias is None else bias.detach()
        _call(_art.normalised, *place, values, bias, scale, own, threads, out)
        return out


class _SelfSums(torch.autograd.Function):
    """A + (1 + eps) I is symmetric, likewise."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, eps: Tensor, bias: Tensor, *graph: Tensor) -> Tensor:
        ctx.graph, ctx.own = graph, 1 + float(eps)
        (values,) = _plain(values)
        ctx.save_for_backward(values)
        return _Normalised.product(values, bias, ctx.own, None, *graph)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,), (values,) = _plain(grads[0]), ctx.saved_tensors
        of_values, of_eps, of_bias, *_ = ctx.needs_input_grad
        return (
            _Normalised.product(grad, None, ctx.own, None, *ctx.graph) if of_values else None,
            torch.dot(grad.flatten(), values.flatten())[None] if of_eps else None,
            grad.sum(0) if of_bias else None,
            None,
            None,
        )


class _Product(torch.autograd.Function):
    """Means by softmaxes of products, likewise."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, row_ptr: Tensor, col: Tensor
    ) -> Tensor:
        inputs = row_ptr, col, *_plain(query, key, value)
        out, log_sum = value.new_empty(value.shape), value.new_empty(len(value))
        _call(_art.product, *inputs, torch.get_num_threads(), out, log_sum)
        ctx.save_for_backward(*inputs, out, log_sum)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        *inputs, out, log_sum = ctx.saved_tensors
        grad = grads[0].contiguous()
        received = grad, log_sum, (grad * out).sum(1)
        made = tuple(torch.empty_like(given) for given in inputs[2:])
        threads = torch.get_num_threads()
        _call(_art.product_backward, *inputs, *received, threads, *made)
        return *made, None, None


class _Map(torch.autograd.Function):
    """A map of a manifold; what its gradient needs is found anew from the inputs."""

    @staticmethod
    def forward(ctx: Any, name: str, curvature: int, x: Tensor, y: Tensor | None) -> Tensor:
        kind = getattr(_art.Map, name)
        width = x.shape[1] - (0 if name in ("from_origin", "unit") else 1)
        columns = {"from_origin": width + 1, "to_origin": width, "carried": width}
        out = x.new_empty(len(x), columns.get(name, x.shape[1]))
        (x,), y = _plain(x), None if y is None else _plain(y)[0]
        _call(_art.map, kind, curvature, width, x, y, torch.get_num_threads(), out)
        ctx.save_for_backward(x, y)
        ctx.map = kind, curvature, width
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, y = ctx.saved_tensors
        made = torch.empty_like(x), None if y is None else torch.empty_like(y)
        grad, threads = grads[0].contiguous(), torch.get_num_threads()
        _call(_art.map_backward, *ctx.map, x, y, grad, threads, *made)
        return None, None, *made


class _BatchNorm(torch.autograd.Function):
    """Columns of mean 0 and variance 1, scaled and shifted; sums over rows in double precision."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        slope: Tensor | None,
        eps: float,
        rectify: bool,
        drop: float,
        seed: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        (x, weight, bias), threads = _plain(x, weight, bias), torch.get_num_threads()
        mean, variance = torch.empty(2, x.shape[1], dtype=torch.float64)
        _call(_art.moments, x, threads, mean, variance)
        inverse = (variance + eps).rsqrt()
        factor, offset = (weight * inverse).to(x), (bias - mean * weight * inverse).to(x)
        out, mean, variance = torch.empty_like(x), mean.to(x), variance.to(x)
        kind = _art.Bend.leaky if slope is not None else _bend(rectify)
        ctx.after = kind, 0.0 if slope is None else float(slope), drop, seed
        _call(_art.columns, x, factor, offset, mean, *ctx.after, threads, out)
        ctx.save_for_backward(x, factor, offset, mean, inverse)
        ctx.mark_non_differentiable(mean, variance)
        return out, mean, variance

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, factor, offset, mean, inverse = ctx.saved_tensors
        given = x, factor, offset, mean, *ctx.after, grads[0].contiguous()
        threads, out = torch.get_num_threads(), torch.empty_like(x)
        total, along, bent = torch.empty(3, x.shape[1], dtype=torch.float64)
        _call(_art.column_sums, *given, threads, total, along, bent)
        shift = (factor * total / len(x)).to(x)
        slope = (factor * inverse**2 * along / len(x)).to(x)
        _call(_art.columns_backward, *given, shift, slope, threads, out)
        of_slope = bent.sum()[None].to(x) if ctx.needs_input_grad[3] else None
        return out, (inverse * along).to(x), total.to(x), of_slope, None, None, None, None


class _Dropout(torch.autograd.Function):
    """Rows with some entries dropped: columns that are not normalised."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, drop: float, seed: int) -> Tensor:
        (x,), zeros = _plain(x), x.new_zeros(x.shape[1])
        ctx.columns = zeros + 1, zeros, zeros, _art.Bend.none, 0.0, drop, seed
        out = torch.empty_like(x)
        _call(_art.columns, x, *ctx.columns, torch.get_num_threads(), out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = _plain(grads[0])
        return _Dropout.apply(grad, *ctx.columns[-2:]), None, None


def _bend(rectify: bool) -> Any:
    return _art.Bend.relu if rectify else _art.Bend.none


class _Linear(torch.autograd.Function):
    """x W' + b, and a ReLU if asked for."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, rectify: bool) -> Tensor:
        (x, weight), offset = _plain(x, weight), None if bias is None else bias.detach()
        out = x.new_empty(len(x), len(weight))
        _call(_art.linear, x, weight, offset, True, rectify, torch.get_num_threads(), out)
        ctx.save_for_backward(x, weight, out if rectify else None)
        ctx.with_bias = bias is not None
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, weight, out = ctx.saved_tensors
        (grad,), threads = _plain(grads[0]), torch.get_num_threads()
        of_x, *_ = ctx.needs_input_grad
        d_x = torch.empty_like(x) if of_x else None
        d_weight, d_bias = torch.empty_like(weight), grad.new_empty(len(weight))
        _call(_art.linear_backward, x, weight, grad, out, threads, d_x, d_weight, d_bias)
        return d_x, d_weight, d_bias if ctx.with_bias else None, None


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, rectify: bool) -> Tensor:
    rows = _Linear.apply(x.reshape(-1, x.shape[-1]), weight, bias, rectify)
    return rows.view(*x.shape[:-1], len(weight))


def linear_width() -> int:
    """What the widths of compiled linear maps are multiples of."""
    return _art.linear_width


def fits_linear(weight: Tensor) -> bool:
    """Whether the compiled map has such weights [o, d]."""
    return all(size % linear_width() == 0 for size in weight.shape)


def foretelling(
    row_ptr: Tensor,
    col: Tensor,
    q: Tensor,
    u: Tensor,
    v: Tensor,
    w: Tensor,
    counted: int,
    inverse: float,
    shift: float,
    weight: float,
    *made: Tensor,
) -> float:
    """See artlas_paper.kernels.graphacl_loss: the error; its gradients are written to ``made``."""
    rows, numbers = _plain(q, u, v, w), (counted, inverse, shift, weight)
    return _call(_art.foretelling, row_ptr, col, *rows, *numbers, torch.get_num_threads(), *made)


def batch_norm(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _BatchNorm.apply(*arguments)


def dropout(x: Tensor, share: float, seed: int) -> Tensor:
    return _Dropout.apply(x.reshape(-1, x.shape[-1]), share, seed).view(x.shape)


def manifold_map(name: str, curvature: int, x: Tensor, y: Tensor | None) -> Tensor:
    return _Map.apply(name, curvature, x, y)


def additive_attention(
    values: Tensor, sent: Tensor, met: Tensor, row_ptr: Tensor, col: Tensor, slope: float
) -> Tensor:
    return _Additive.apply(values, sent, met, row_ptr, col, slope)


def normalised_sums(
    values: Tensor, bias: Tensor | None, scale: Tensor, row_ptr: Tensor, col: Tensor
) -> Tensor:
    return _Normalised.apply(values, bias, scale, row_ptr, col)


def self_sums(values: Tensor, eps: Tensor, bias: Tensor, row_ptr: Tensor, col: Tensor) -> Tensor:
    return _SelfSums.apply(values, eps, bias, row_ptr, col)


def product_attention(
    query: Tensor, key: Tensor, value: Tensor, row_ptr: Tensor, col: Tensor
) -> Tensor:
    return _Product.apply(query, key, value, row_ptr, col)


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
) -> Tensor:
    nodes, roles = _plain(nodes, roles)
    bases, role_count = roles.shape[:2]
    out = nodes.new_empty(bases, structure.num_nodes, role_count)
    unused = nodes.new_zeros(bases, role_count, role_count)
    _call(_art.couplings, _problem(structure, options), nodes, roles, unused, out)
    return out if structure.classes is None else structure.classes.share(out)


def mixtures(
    nodes: Tensor, roles: Tensor, relations: Tensor, structure: Structure, **options: Unpack[Mixing]
) -> tuple[Tensor, Tensor, Tensor]:
    mixed = nodes.new_empty(structure.num_nodes, roles.shape[1])
    found = _mix(nodes, roles, relations, structure, options, None, None, mixed)
    return *found, mixed if structure.classes is None else structure.classes.share(mixed)


def transport_features(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    x: Tensor,
    measure: Tensor | None = None,
    **options: Unpack[Mixing],
) -> tuple[Tensor, Tensor, Tensor]:
    moved = nodes.new_empty(structure.num_graphs, roles.shape[1], x.shape[1])
    x = _averages(x.detach().contiguous(), measure, structure)
    found = _mix(nodes, roles, relations, structure, options, x, moved, None)
    return *found, moved


def _averages(x: Tensor, measure: Tensor | None, structure: Structure) -> Tensor:
    """Rows x [nodes, d] over their measure, averaged over alike nodes, [N, d]."""
    classes = structure.classes
    if classes is None and measure is None:
        return x
    out = x.new_empty(structure.num_nodes, x.shape[1])
    joined = (None,) * 3 if classes is None else (classes.of, classes.count, classes.sizes)
    _call(_art.averages, x, measure, *joined, structure.node_ptr, torch.get_num_threads(), out)
    return out


def blocks(x: Tensor, degree: Tensor, structure: Structure) -> Tensor:
    """[X | AX | X o AX | deg X o X - X o AX] of rows x [N, d], [N, 4 d]; no gradients."""
    x, out = x.contiguous(), x.new_empty(len(x), 4 * x.shape[1])
    _call(_art.blocks, x, neighbour_sum(x, structure), degree, torch.get_num_threads(), out)
    return out


def neighbour_sum(h: Tensor, structure: Structure) -> Tensor:
    classes = structure.classes
    return _NeighbourSum.apply(h if classes is None else h * classes.count[:, None], structure)


def encode(packed: tuple[Tensor, ...], width: int, structure: Structure, x: Tensor) -> Tensor:
    """Projected node embeddings [N, D] from packed weights and degrees x [N], no gradients."""
    out = packed[0].new_empty(structure.num_nodes, width)
    classes = structure.classes
    weighting = (None, None) if classes is None else (classes.weight, classes.count)
    graph = structure.row_ptr, structure.col, *weighting, x
    _call(_art.encode, *graph, *packed, width, torch.get_num_threads(), out)
    return out


def _mix(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    options: Mixing,
    x: Tensor | None,
    moved: Tensor | None,
    mixed: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Energies and residuals; what is mixed goes to ``moved`` (features) or ``mixed``."""
    sides = _plain(nodes, roles, relations)
    found, residuals = _pair_outputs(nodes, roles, structure)
    top = roles.shape[0] if options["top_k"] is None else options["top_k"]
    problem, temperature = _problem(structure, options), options["temperature"]
    _call(_art.mixtures, problem, *sides, temperature, top, x, found, residuals, moved, mixed)
    return found, residuals


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call compiled code with tensors as NumPy views, which it takes ten times faster."""
    return function(*(a.numpy() if isinstance(a, Tensor) else a for a in arguments))


def _problem(structure: Structure, options: Sinkhorn) -> Any:
    classes = structure.classes
    return _call(
        _art.Problem,
        structure.node_ptr,
        structure.row_ptr,
        structure.col,
        structure.measure,
        None if classes is None else classes.weight,
        None if classes is None else classes.sizes,
        options["scale"],
        math.inf if options["clamp"] is None else options["clamp"],
        options["steps"],
        torch.get_num_threads(),
    )


def _plain(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(t.detach().contiguous() for t in tensors)


def _pair_outputs(nodes: Tensor, roles: Tensor, structure: Structure) -> tuple[Tensor, Tensor]:
    shape = structure.num_graphs, roles.shape[0]
    return nodes.new_empty(shape), nodes.new_empty(shape)


def pack_encoder(encoder: Any, projection: Tensor) -> tuple[Tensor, ...]:
    """Weights as the kernel reads them: input-major, padded with zeros to a width of 32."""
    width = projection.shape[0]
    padded = -(-width // 32) * 32

    def grow(t: Tensor) -> Tensor:
        out = t.new_zeros([padded] * t.dim())
        out[tuple(slice(n) for n in t.shape)] = t
        return out

    weights, vectors = [], []
    for layer in encoder.layers:
        weights.append(
            torch.stack([grow(m.weight.T).flatten() for m in (layer.inner, layer.outer)])
        )
        parts = layer.inner.bias, layer.outer.bias, layer.norm.weight, layer.norm.bias
        vectors.append(torch.stack([grow(part) for part in parts]))
    return (
        grow(encoder.lift.weight[:, 0]),
        grow(encoder.lift.bias),
        torch.stack(weights),
        torch.stack(vectors),
        torch.cat([1 + layer.epsilon for layer in encoder.layers]),
        grow(projection.T),
    )
