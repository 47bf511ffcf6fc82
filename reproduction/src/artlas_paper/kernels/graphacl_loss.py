"""GraphACL's error of nodes that foretell their neighbours: compiled, and in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from artlas.kernels import native_for


def foretelling_error(
    q: Tensor,
    u: Tensor,
    v: Tensor,
    w: Tensor,
    row_ptr: Tensor,
    col: Tensor,
    nodes: int,
    temperature: float,
) -> Tensor:
    r"""The sum over i of the mean over j of :math:`softplus(r_i - q_i \cdot u_j / \tau)`, by nodes.

    j are i and its neighbours on the adjacency row_ptr int64 [N + 1], col int32 [E]. The rows of
    w [n, c] stand for those of all nodes of a batch, of which these may be a part only:
    :math:`r_i = \log \frac{nodes}n \sum_k e^{v_i \cdot w_k / \tau}`. q, u, v are [N, c]; all rows
    are of length 1 or 0, so that exponentials need no shift. Differentiable but in u.
    """
    native = native_for(q)
    if native is not None and q.shape[1] % native.linear_width() == 0:
        return _Errors.apply(q, u, v, w, row_ptr, col, nodes, temperature)
    rest = (v @ w.T / temperature).logsumexp(1) + math.log(nodes / len(w))
    degree = row_ptr.diff()
    row = torch.repeat_interleave(degree)
    own = softplus(rest - (q * u).sum(1) / temperature)
    others = softplus(rest[row] - (q[row] * u[col]).sum(1) / temperature)
    return (own.index_add(0, row, others) / (degree + 1)).sum() / nodes


class _Errors(torch.autograd.Function):
    """All gradients are found with the error: none is asked for without it, in training."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        u: Tensor,
        v: Tensor,
        w: Tensor,
        row_ptr: Tensor,
        col: Tensor,
        nodes: int,
        temperature: float,
    ) -> Tensor:
        native = native_for(q)
        assert native is not None
        scaled = pad(w.detach() / temperature, (0, 0, 0, -len(w) % native.linear_width()))
        made = torch.empty_like(q), torch.empty_like(v), torch.empty_like(scaled)
        found = native.foretelling(
            row_ptr,
            col,
            q,
            u,
            v,
            scaled,
            len(w),
            1 / temperature,
            math.log(nodes / len(w)),
            1 / nodes,
            *made,
        )
        ctx.save_for_backward(*made[:2], made[2][: len(w)] / temperature)
        return q.new_tensor(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        made = ctx.saved_tensors
        d_q, d_v, d_w = made if grads[0] == 1 else (grads[0] * each for each in made)
        return d_q, None, d_v, d_w, None, None, None, None
