"""Couplings of a block of (graph, base) pairs: Sinkhorn, rounding, and their gradients.

    Sinkhorn  u_s = mu / (E v_{s-1}), v_s = nu / (E^T u_s), E = exp(l), s = 1 .. S, v_0 = 1
              T = diag(u_S) E diag(v_S)
    rounding  T' = diag(a) T + dr dc^T / sum(dr), a = min(1, mu / T1)
              dr and dc: what the rows and the columns of diag(a) T still miss

Tensors are [P, n, M]: P pairs, n padded rows (measure 0 on padding), M roles (nu = 1 / M).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from artlas.kernels.structure import Chunk, wide

HARD = 40.0  # a pair with a wider row of logits is solved in the log domain
TINY = 1e-8  # least denominator of the rounding

State = tuple[Tensor | None, Tensor | None, Tensor | None]  # hard, v, g: see Block


class Block:
    """The couplings of one chunk of graphs with some bases, pair by pair in the cheapest safe form.

    ``state`` is (hard, v, g): which pairs are hard (None if none is), the scalings v_0 .. v_S of
    the easy ones, log scalings of the hard ones; couplings and gradients follow from it.
    """

    def __init__(
        self,
        chunk: Chunk,
        rows: Tensor,
        roles: Tensor,
        scale: float,
        clamp: float | None,
        state: State | None = None,
    ) -> None:
        """rows [b * n, D] of the chunk against roles [k, M, D]; ``state`` of an earlier solve."""
        self.shape = len(roles), len(chunk.graphs)
        self.mu = chunk.measure.repeat(len(roles), 1).unsqueeze(-1)  # [P, n, 1]
        logits = torch.bmm(rows.expand(len(roles), -1, -1), scale * roles.transpose(1, 2))
        logits = logits.view(-1, chunk.size, roles.shape[1])
        self.inside: Tensor | None = None
        if clamp is not None:
            self.inside = logits.abs() <= clamp if state is not None else None
            logits.clamp_(-clamp, clamp)
        hard = _hard(logits, clamp) if state is None else state[0]
        self.state: State = (hard, None, None) if state is None else state
        self.hard_part: _LogDomain | None = None
        if hard is None:
            self.easy_part = _Scaling(logits, self.mu)
        else:
            self.easy_part = _Scaling(logits[~hard], self.mu[~hard])
            self.hard_part = _LogDomain(logits[hard], self.mu[hard])

    def paired(self, x: Tensor) -> Tensor:
        """[P, ...] as [bases, graphs, ...]."""
        return x.view(*self.shape, *x.shape[1:])

    def last(self) -> State:
        """The part of the state that ``coupling`` needs."""
        hard, v, g = self.state
        return hard, None if v is None else v[-2:].clone(), None if g is None else g[-2:].clone()

    def solve(self, steps: int) -> Tensor:
        """T [P, n, M] after ``steps`` iterations; the scalings go to ``state``."""
        T, v = self.easy_part.solve(steps)
        if self.hard_part is None:
            self.state = None, v, None
            return T
        T_hard, g = self.hard_part.solve(steps)
        self.state = self.state[0], v, g
        return self._merge(T, T_hard)

    def coupling(self) -> Tensor:
        """T again, from the state."""
        _, v, g = self.state
        T = self.easy_part.coupling(v)
        return T if self.hard_part is None else self._merge(T, self.hard_part.coupling(g))

    def pull_back(self, W: Tensor) -> Tensor:
        """dl from W = dT o T, which it may overwrite."""
        hard, v, g = self.state
        if self.hard_part is None:
            dl = self.easy_part.pull_back(v, W)
        else:
            easy = self.easy_part.pull_back(v, W[~hard])
            dl = self._merge(easy, self.hard_part.pull_back(g, W[hard]))
        return dl if self.inside is None else dl.mul_(self.inside)

    def _merge(self, easy: Tensor, hard: Tensor) -> Tensor:
        mask = self.state[0]
        out = easy.new_empty(len(mask), *easy.shape[1:])
        out[~mask], out[mask] = easy, hard.to(easy.dtype)
        return out


def _hard(pairs: Tensor, clamp: float | None) -> Tensor | None:
    """Mask of the pairs whose scaling form could underflow; None if there is none."""
    if clamp is not None and 2 * clamp <= HARD:
        return None
    hard = (pairs.amax(-1) - pairs.amin(-1)).amax(-1) > HARD
    return hard if bool(hard.any()) else None


class _Scaling:
    """Sinkhorn on E = exp(l - row maximum).

    Products are row vector times matrix, with E or its stored transpose: on the CPU several times
    faster than matrix times column. No row is wider than HARD, so that |log v_s| <= HARD (the
    iterations do not move away from the limit, whose log v fits in +-HARD / 2): float32 holds it.
    """

    def __init__(self, logits: Tensor, mu: Tensor) -> None:
        self.E = (logits - logits.amax(-1, keepdim=True)).exp_()  # [P, n, M]
        self.Et = self.E.transpose(1, 2).contiguous()
        self.mu = mu.transpose(1, 2)  # [P, 1, n]
        self.nu = 1 / logits.shape[-1]

    def solve(self, steps: int) -> tuple[Tensor, Tensor]:
        P, _, M = self.E.shape
        v = self.E.new_ones(steps + 1, P, 1, M)
        for s in range(steps - 1):
            u = self.mu / torch.bmm(v[s], self.Et)
            torch.bmm(u, self.E, out=v[s + 1]).reciprocal_().mul_(self.nu)
        u = self.mu / torch.bmm(v[-2], self.Et)
        T = self.E * u.transpose(1, 2)
        torch.sum(T, -2, keepdim=True, out=v[-1]).reciprocal_().mul_(self.nu)  # pairwise, so exact
        return T.mul_(v[-1]), v

    def coupling(self, v: Tensor) -> Tensor:
        u = self.mu / torch.bmm(v[-2], self.Et)
        return (self.E * u.transpose(1, 2)).mul_(v[-1])

    def pull_back(self, v: Tensor, W: Tensor) -> Tensor:
        r"""dl = W - sum_s Pc_s diag(dg_s) + diag(df_s) Pr_s, with f = log u and g = log v.

        Pc_s = diag(u_s) E diag(v_s) / nu and Pr_s = diag(1 / (E v_{s-1})) E diag(v_{s-1}) are the
        softmaxes of the column and the row update, so the sum is E times one product of rank 2 S.
        """
        S = len(v) - 1
        P, n, M = W.shape
        inverse = torch.bmm(v[:-1, :, 0].transpose(0, 1), self.Et).reciprocal_()  # 1 / E v_{s-1}
        inverse = inverse.transpose(0, 1).unsqueeze(2).contiguous()  # [S, P, 1, n]
        left, right = W.new_empty(2 * S, P, 1, n), W.new_empty(2 * S, P, 1, M)
        torch.mul(inverse, self.mu, out=left[:S])  # u_s
        right[S:] = v[:-1]
        for s in range(S - 1, -1, -1):
            # column half, with t = -v_s dg_s / nu: df_s = u_s E t (+ W 1 at the last step)
            t = right[s]
            if s == S - 1:
                torch.mul(W.sum(-2, keepdim=True), v[S], out=t).mul_(-1 / self.nu)
            df = torch.bmm(t, self.Et).mul_(left[s])
            if s == S - 1:
                df += W.sum(-1).unsqueeze(1)
            # row half, with x = df_s / (E v_{s-1}): dg_{s-1} = -v_{s-1} E^T x
            x = torch.mul(df, inverse[s], out=left[S + s]).neg_()
            if s > 0:
                torch.bmm(x, self.E, out=right[s - 1]).mul_(v[s].square().mul_(-1 / self.nu))
        update = torch.bmm(left[:, :, 0].permute(1, 2, 0), right[:, :, 0].transpose(0, 1))
        return W.addcmul_(self.E, update)


class _LogDomain:
    """The same for hard pairs: potentials g = log v, in the widest dtype, any finite logits."""

    def __init__(self, logits: Tensor, mu: Tensor) -> None:
        self.l = logits.to(wide(logits.device))
        self.log_mu = mu.to(self.l.dtype).log()  # [P, n, 1]; -inf on padding
        self.log_nu = -math.log(logits.shape[-1])

    def _row_update(self, g: Tensor) -> Tensor:
        return self.log_mu - torch.logsumexp(self.l + g, -1, keepdim=True)

    def solve(self, steps: int) -> tuple[Tensor, Tensor]:
        P, _, M = self.l.shape
        g = self.l.new_zeros(steps + 1, P, 1, M)
        for s in range(steps):
            f = self._row_update(g[s])
            g[s + 1] = self.log_nu - torch.logsumexp(self.l + f, -2, keepdim=True)
        return self.coupling(g), g

    def coupling(self, g: Tensor) -> Tensor:
        return (self.l + self._row_update(g[-2]) + g[-1]).exp_()

    def pull_back(self, g: Tensor, W: Tensor) -> Tensor:
        dl = W.to(self.l.dtype)
        df, dg = dl.sum(-1, keepdim=True), dl.sum(-2, keepdim=True)
        for s in range(len(g) - 1, 0, -1):
            column = torch.softmax(self.l + self._row_update(g[s - 1]), -2).mul_(dg)
            df = df - column.sum(-1, keepdim=True)
            row = torch.softmax(self.l + g[s - 1], -1).mul_(df)
            dl = dl - column - row
            df, dg = torch.zeros_like(df), -row.sum(-2, keepdim=True)
        return dl


# --- Rounding onto the polytope -------------------------------------------------------------------


def round_(T: Tensor, mu: Tensor) -> Tensor:
    """T' of T [P, n, M], in place. The columns of T have their measure and can only shrink."""
    r = T.sum(-1, keepdim=True)
    T.mul_(torch.where(r > mu, mu / r, 1))
    missing_rows = (mu - r).clamp_(min=0)
    missing_columns = (1 / T.shape[-1] - T.sum(-2, keepdim=True)).clamp_(min=0)
    missing_columns /= missing_rows.sum(1, keepdim=True).clamp_(min=TINY)
    return T.addcmul_(missing_rows, missing_columns)


def round_pull_back(T: Tensor, mu: Tensor, G: Tensor) -> Tensor:
    """W = dT o T for T before rounding and G = dT', which is overwritten."""
    r = T.sum(-1, keepdim=True)
    over = r > mu
    a = torch.where(over, mu / r, 1)
    dr = (mu - r).clamp_(min=0)
    dc = (1 / T.shape[-1] - torch.bmm(a.transpose(1, 2), T)).clamp_(min=0)
    total = dr.sum(1, keepdim=True)
    least = total.clamp(min=TINY)
    G_columns = torch.bmm(dr.transpose(1, 2), G) / least  # gradient of dc
    G_rows = torch.bmm(G, dc.transpose(1, 2)) / least  # of dr, and through its sum
    G_rows -= torch.where(total > TINY, (G_columns * dc).sum(-1, keepdim=True) / least, 0)
    G -= torch.where(dc > 0, G_columns, 0)
    G_a = (G * T).sum(-1, keepdim=True)
    G_r = torch.where(over, -a / r * G_a, torch.where(dr > 0, -G_rows, 0))
    return G.mul_(a).add_(G_r).mul_(T)


def marginal_error(T: Tensor, mu: Tensor) -> Tensor:
    """Largest error of the marginals of T [P, n, M]: [P]."""
    rows = (T.sum(-1, keepdim=True) - mu).abs_().amax((1, 2))
    columns = (T.sum(-2) - 1 / T.shape[-1]).abs_().amax(1)
    return torch.maximum(rows, columns)
