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

from artlas.kernels.structure import Chunk, Sinkhorn, wide

HARD = 70.0  # a pair with a wider row of logits is solved in the log domain
TINY = 1e-8  # least denominator of the rounding

State = tuple[Tensor | None, Tensor, Tensor | None]  # see Block


class Block:
    """The couplings of a chunk of graphs with some bases, each pair in the cheapest safe form.

    ``state`` is (hard, v, g): the mask of the hard pairs (None if there is none), the scalings
    v_0 .. v_S of the others, log scalings of the hard ones. Couplings and gradients follow from it.
    """

    def __init__(
        self,
        chunk: Chunk,
        rows: Tensor,
        roles: Tensor,
        options: Sinkhorn,
        state: State | None = None,
    ) -> None:
        """rows [b * n, D] of the chunk against roles [k, M, D]; ``state`` of an earlier solve."""
        self.shape = len(roles), len(chunk.graphs)
        self.mu = mu = chunk.measure.repeat(len(roles), 1).unsqueeze(-1)  # [P, n, 1]
        scaled = options["scale"] * roles.transpose(1, 2)
        logits = torch.bmm(rows.expand(len(roles), -1, -1), scaled)
        logits = logits.view(-1, chunk.size, roles.shape[1])
        clamp = options["clamp"]
        self.inside: Tensor | None = None
        if clamp is not None:
            self.inside = logits.abs() <= clamp if state is not None else None
            logits.clamp_(-clamp, clamp)
        hard, v, g = (None, None, None) if state is None else state
        if state is None and (clamp is None or 2 * clamp > HARD):  # a scaling form could underflow
            hard = (logits.amax(-1) - logits.amin(-1)).amax(-1) > HARD
            hard = hard if bool(hard.any()) else None
        self.hard = hard
        self.parts: list[tuple[Tensor | None, _Scaling | _LogDomain]]
        if hard is None:
            self.parts = [(None, _Scaling(logits, mu, v))]
        else:
            easy = _Scaling(logits[~hard], mu[~hard], v)
            self.parts = [(~hard, easy), (hard, _LogDomain(logits[hard], mu[hard], g))]

    def state(self, last: bool = False) -> State:
        """The state; if ``last``, a copy of only what ``coupling`` needs."""
        scalings = [part.scalings[-2:].clone() if last else part.scalings for _, part in self.parts]
        return self.hard, scalings[0], scalings[1] if len(scalings) > 1 else None

    def paired(self, x: Tensor) -> Tensor:
        """[P, ...] as [bases, graphs, ...]."""
        return x.view(*self.shape, *x.shape[1:])

    def solve(self, steps: int) -> Tensor:
        """T [P, n, M] after ``steps`` iterations."""
        return self._merge([part.solve(steps) for _, part in self.parts])

    def coupling(self) -> Tensor:
        """T again, from the state."""
        return self._merge([part.coupling() for _, part in self.parts])

    def pull_back(self, W: Tensor) -> Tensor:
        """dl from W = dT o T, which it may overwrite."""
        dl = self._merge([part.pull_back(W if m is None else W[m]) for m, part in self.parts])
        return dl if self.inside is None else dl.mul_(self.inside)

    def _merge(self, values: list[Tensor]) -> Tensor:
        if self.hard is None:
            return values[0]
        out = values[0].new_empty(len(self.hard), *values[0].shape[1:])
        for (mask, _), value in zip(self.parts, values, strict=True):
            out[mask] = value.to(out.dtype)
        return out


class _Scaling:
    """Sinkhorn on E = exp(l - row maximum); ``scalings`` [S + 1, P, 1, M] are those of v.

    Products are row vector times matrix, with E or its stored transpose: on the CPU several times
    faster than matrix times column. No row is wider than HARD, so that |log v_s| <= HARD (the
    iterations do not move away from the limit, whose log v fits in +-HARD / 2): float32 holds it.
    """

    def __init__(self, logits: Tensor, mu: Tensor, v: Tensor | None) -> None:
        self.scalings = logits.new_empty(0) if v is None else v
        self.E = logits.sub_(logits.amax(-1, keepdim=True)).exp_()  # [P, n, M], in place
        self.Et = self.E.transpose(1, 2).contiguous()
        self.mu = mu.transpose(1, 2)  # [P, 1, n]
        self.nu = 1 / logits.shape[-1]

    def solve(self, steps: int) -> Tensor:
        P, _, M = self.E.shape
        self.scalings = v = self.E.new_ones(steps + 1, P, 1, M)
        nu = self.E.new_tensor(self.nu)
        now = v[0]
        for after in v[1:-1].unbind():
            u = self.mu / torch.bmm(now, self.Et)
            now = torch.div(nu, torch.bmm(u, self.E), out=after)
        u = self.mu / torch.bmm(now, self.Et)
        T = self.E * u.transpose(1, 2)
        torch.div(nu, T.sum(-2, keepdim=True), out=v[-1])  # a more accurate sum than bmm's
        return T.mul_(v[-1])

    def coupling(self) -> Tensor:
        v = self.scalings
        u = self.mu / torch.bmm(v[-2], self.Et)
        return (self.E * u.transpose(1, 2)).mul_(v[-1])

    def pull_back(self, W: Tensor) -> Tensor:
        r"""dl = W - sum_s (Pc_s diag(dg_s) + diag(df_s) Pr_s), with f = log u and g = log v.

        Pc_s = diag(u_s) E diag(v_s) / nu and Pr_s = diag(1 / E v_{s-1}) E diag(v_{s-1}) are the
        softmaxes of the column and of the row update, so the sum is E o (a product of rank 2 S).
        """
        v = self.scalings
        inverse = torch.bmm(v[:-1, :, 0].transpose(0, 1), self.Et).reciprocal_()  # 1 / E v_{s-1}
        inverse = inverse.transpose(0, 1).contiguous().unsqueeze(2)  # [S, P, 1, n]
        u = inverse * self.mu
        weight = v[1:].square().div_(self.nu)
        t, x = torch.empty_like(weight), torch.empty_like(u)  # -v_s dg_s / nu and df_s / E v_{s-1}
        torch.mul(W.sum(-2, keepdim=True).div_(-self.nu), v[-1], out=t[-1])
        df = torch.bmm(t[-1], self.Et).mul_(u[-1]).add_(W.sum(-1).unsqueeze(1))
        columns = list(zip(t.unbind(), weight.unbind(), u.unbind(), strict=True))[:-1]
        rows = list(zip(x.unbind(), inverse.unbind(), strict=True))
        for (x_s, inverse_s), (t_s, weight_s, u_s) in zip(rows[:0:-1], columns[::-1], strict=True):
            torch.mul(df, inverse_s, out=x_s)  # dg_{s-1} = -v_{s-1} E^T x_s
            torch.mul(torch.bmm(x_s, self.E), weight_s, out=t_s)
            df = torch.bmm(t_s, self.Et).mul_(u_s)  # df_{s-1} = u_{s-1} E t_{s-1}
        torch.mul(df, inverse[0], out=x[0])
        product = torch.bmm(u[:, :, 0].permute(1, 2, 0), t[:, :, 0].transpose(0, 1))
        product.baddbmm_(x[:, :, 0].permute(1, 2, 0), v[:-1, :, 0].transpose(0, 1), alpha=-1)
        return W.addcmul_(self.E, product)


class _LogDomain:
    """Sinkhorn on log scalings g = log v, in the widest dtype: any finite logits."""

    def __init__(self, logits: Tensor, mu: Tensor, g: Tensor | None) -> None:
        self.l = logits.to(wide(logits.device))
        self.scalings = self.l.new_empty(0) if g is None else g
        self.log_mu = mu.to(self.l.dtype).log()  # [P, n, 1]; -inf on padding
        self.log_nu = -math.log(logits.shape[-1])

    def solve(self, steps: int) -> Tensor:
        P, _, M = self.l.shape
        self.scalings = g = self.l.new_zeros(steps + 1, P, 1, M)
        for s in range(steps):
            f = self._row_update(g[s])
            g[s + 1] = self.log_nu - torch.logsumexp(self.l + f, -2, keepdim=True)
        return self.coupling()

    def coupling(self) -> Tensor:
        before, g = self.scalings[-2:]
        return (self.l + self._row_update(before) + g).exp_()

    def pull_back(self, W: Tensor) -> Tensor:
        dl = W.to(self.l.dtype)
        df, dg = dl.sum(-1, keepdim=True), dl.sum(-2, keepdim=True)
        for g in self.scalings[:-1].flip(0):
            column = torch.softmax(self.l + self._row_update(g), -2).mul_(dg)
            df = df - column.sum(-1, keepdim=True)
            row = torch.softmax(self.l + g, -1).mul_(df)
            dl = dl - column - row
            df, dg = torch.zeros_like(df), -row.sum(-2, keepdim=True)
        return dl

    def _row_update(self, g: Tensor) -> Tensor:
        return self.log_mu - torch.logsumexp(self.l + g, -1, keepdim=True)


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
