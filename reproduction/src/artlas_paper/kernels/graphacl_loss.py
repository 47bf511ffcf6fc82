"""GraphACL's loss: every node predicts its neighbours, against random nodes of the batch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, softplus

BLOCK = 1024  # rows whose products with all of w are held at a time


def prediction_error(
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
    return _PredictionError.apply(q, u, v, w, row_ptr, col, nodes, temperature)


class _PredictionError(torch.autograd.Function):
    """Compute the gradients together with the error: nothing of [N, n] is kept between the two."""

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
        degree = row_ptr.diff()
        row = torch.repeat_interleave(degree)
        share = 1 / ((degree + 1) * nodes).to(q)
        own = (q * u).sum(1) / temperature
        others = q.index_select(0, row).mul_(u.index_select(0, col)).sum(1) / temperature
        by_own, by_others = torch.empty_like(own), torch.empty_like(others)  # gradients, negated
        d_v, scaled, d_w = torch.empty_like(v), w / temperature, torch.zeros_like(w)
        error, shift = q.new_zeros(()), math.log(nodes / len(w))
        for begin in range(0, len(q), BLOCK):
            rows = slice(begin, min(begin + BLOCK, len(q)))
            entries = slice(int(row_ptr[rows.start]), int(row_ptr[rows.stop]))
            local = row[entries] - begin
            products = (v[rows] @ scaled.T).exp_()
            total = products.sum(1)
            rest = total.log() + shift
            far, near = rest[local] - others[entries], rest - own[rows]
            error += (softplus(near).index_add_(0, local, softplus(far)) * share[rows]).sum()
            by_own[rows] = near.sigmoid_() * share[rows]
            by_others[entries] = far.sigmoid_() * share[rows][local]
            products *= (by_own[rows].index_add(0, local, by_others[entries]) / total)[:, None]
            torch.mm(products, scaled, out=d_v[rows])
            d_w.addmm_(products.T, v[rows])
        sums = by_own[:, None] * u
        if len(col):
            begin_of = row_ptr[:-1].to(col.dtype)
            sums += embedding_bag(col, u, begin_of, mode="sum", per_sample_weights=by_others)
        ctx.save_for_backward(sums / -temperature, d_v, d_w / temperature)
        return error

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        d_q, d_v, d_w = (grads[0] * gradient for gradient in ctx.saved_tensors)
        return d_q, None, d_v, d_w, None, None, None, None
