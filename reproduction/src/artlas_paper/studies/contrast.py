"""Two further objectives for an atlas: views of a graph agree, and couplings follow a solver's.

Both need gradients through couplings themselves, which the kernels do not give; so they are written
densely in PyTorch, for the graphs of a batch that are small enough to be padded together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from artlas import kernels
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import prepare_structure
from artlas.method.energy import responsibilities
from artlas.method.model import ART
from artlas.method.z_plus import signed_log

TINY = 1e-12


@dataclass(frozen=True)
class Dense:
    """Couplings of graphs padded to N nodes each.

    couplings T [G, K, N, M]; relations B [K, M, M]; measure mu [G, N], zero on padding.
    """

    graphs: Graphs
    couplings: Tensor
    relations: Tensor
    measure: Tensor

    def neighbours(self, couplings: Tensor) -> Tensor:
        """A T, [G, K, N, M]."""
        graphs, (bases, roles) = self.graphs, (couplings.shape[1], couplings.shape[3])
        rows = couplings.transpose(1, 2)[_places(graphs)].flatten(1)
        summed = kernels.neighbour_sum(rows.contiguous(), prepare_structure(graphs, 1.0))
        return pad(graphs, summed.view(-1, bases, roles)).transpose(1, 2)

    def energies(self) -> Tensor:
        """The relational energies, [G, K]."""
        squares = (self.measure * pad(self.graphs, self._carried_measure())).sum(1, keepdim=True)
        cross = (self.couplings @ self.relations * self.neighbours(self.couplings)).sum((2, 3))
        return squares + (self.relations**2).mean((1, 2)) - 2 * cross

    def _carried_measure(self) -> Tensor:
        mu = self.measure[_places(self.graphs)]
        structure = prepare_structure(self.graphs, 1.0)
        return kernels.neighbour_sum(mu[:, None].contiguous(), structure)[:, 0]


def _places(graphs: Graphs) -> tuple[Tensor, Tensor]:
    """The graph of every node, and its place there."""
    owner = torch.repeat_interleave(torch.arange(len(graphs)), graphs.sizes)
    return owner, torch.arange(graphs.num_nodes) - graphs.node_ptr[owner]


def pad(graphs: Graphs, values: Tensor) -> Tensor:
    """Values [nodes, ...] as [G, N, ...], zero beyond a graph's own nodes."""
    out = values.new_zeros(len(graphs), int(graphs.sizes.max()), *values.shape[1:])
    return out.index_put(_places(graphs), values)


def dense_couplings(model: ART, graphs: Graphs, steps: int = 10) -> Dense:
    """Couplings with gradients: scaling iterations on kernels cut off at exp(-30)."""
    structure = prepare_structure(graphs, model.config.measure_epsilon)
    nodes = pad(graphs, model.encoder(structure) @ model.node_projection.weight.T)
    relations = model.atlas.relations()
    roles = model.role_projection(model.role_encoder(relations))
    logits = torch.einsum("gnd,kmd->gknm", nodes, roles) * model.config.logit_scale
    measure = pad(graphs, structure.measure)
    kernel = torch.exp((logits - logits.amax(3, keepdim=True)).clamp_min(-30))
    return Dense(graphs, _project(kernel, measure, steps), relations, measure)


def _project(kernel: Tensor, measure: Tensor, steps: int) -> Tensor:
    """Sinkhorn scaling of a positive kernel [G, K, N, M] onto the marginals mu and 1 / M."""
    kernel = kernel * (measure > 0)[:, None, :, None]
    mu, v = measure[:, None], kernel.new_ones(*kernel.shape[:2], kernel.shape[3])
    u = mu
    for _ in range(steps):
        u = mu / (torch.einsum("gknm,gkm->gkn", kernel, v) + 1e-30)
        v = 1 / kernel.shape[3] / (torch.einsum("gknm,gkn->gkm", kernel, u) + 1e-30)
    return kernel * u[..., None] * v[:, :, None]


@torch.no_grad()
def refine(dense: Dense, rounds: int = 8, stride: float = 4.0) -> Tensor:
    """What mirror descent on the energy makes of couplings, [G, K, N, M]."""
    found = dense.couplings
    for _ in range(rounds):
        slope = dense.neighbours(found) @ dense.relations
        slope = slope / slope.amax((2, 3), keepdim=True).clamp_min(TINY)
        found = _project(found.clamp_min(TINY) * torch.exp(stride * slope), dense.measure, 10)
    return found


def distillation(dense: Dense) -> Tensor:
    """The mean divergence of the refined couplings from the amortised ones."""
    wanted = refine(dense)
    ratio = wanted.clamp_min(TINY).log() - dense.couplings.clamp_min(TINY).log()
    return (wanted * ratio).sum((2, 3)).mean()


def pooled(dense: Dense, model: ART) -> Tensor:
    """Degrees near and farther off, pooled by roles as z+ pools features; [G, d]."""
    graphs, config = dense.graphs, model.config
    structure, degree = prepare_structure(graphs, 1.0), graphs.degree.float()[:, None]
    second = kernels.neighbour_sum(degree, structure)
    third = kernels.neighbour_sum(second, structure)
    values = pad(graphs, torch.cat([degree, second.log1p(), third.log1p(), degree**2], 1))
    roles = dense.couplings / dense.measure.clamp_min(TINY)[:, None, :, None]
    if config.pooling == "mixed":
        weight = responsibilities(dense.energies(), config.responsibility_temperature)
        roles = (roles * weight[..., None, None]).sum(1, keepdim=True)
    return signed_log(config.roles * torch.einsum("gknm,gnd->gkmd", roles, values)).flatten(1)


class Contrast(nn.Module):
    """Two views of a graph, a fifth of the edges gone from each, are closer than other graphs."""

    def __init__(self, width: int, sharpness: float = 5.0) -> None:
        super().__init__()
        self.head = nn.Sequential(
            nn.BatchNorm1d(width), nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 64)
        )
        self.sharpness = sharpness

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        unit = nn.functional.normalize(self.head(torch.cat([first, second])), dim=1)
        likeness = self.sharpness * unit @ unit.T
        likeness = likeness.masked_fill(torch.eye(len(unit), dtype=torch.bool), -torch.inf)
        count = torch.arange(len(first))
        return nn.functional.cross_entropy(likeness, torch.cat([count + len(first), count]))


def drop_edges(graphs: Graphs, share: float, generator: torch.Generator) -> Graphs:
    """The same nodes without a random share of the edges."""
    row = torch.repeat_interleave(torch.arange(graphs.num_nodes), graphs.row_ptr.diff())
    col = graphs.col.long()
    once = row < col
    row, col = row[once], col[once]
    kept = torch.rand(len(row), generator=generator) >= share
    row, col = row[kept], col[kept]
    both = torch.stack([torch.cat([row, col]), torch.cat([col, row])])
    both = both[:, torch.argsort(both[0] * graphs.num_nodes + both[1])]
    row_ptr = torch.zeros(graphs.num_nodes + 1, dtype=torch.int64)
    row_ptr[1:] = torch.bincount(both[0], minlength=graphs.num_nodes).cumsum(0)
    return Graphs(graphs.node_ptr, row_ptr, both[1].to(torch.int32))
