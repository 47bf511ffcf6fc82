"""Two further training objectives: contrast between views, and distillation of refined couplings.

Both need gradients through the couplings themselves, which the kernels do not give. They are
therefore written densely in PyTorch, for the graphs of a batch that are small enough to be padded.
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
class DenseCouplings:
    """The couplings of graphs that are padded to N nodes each.

    couplings T [G, K, N, M]; relations B [K, M, M]; measure mu [G, N], zero on padding.
    """

    graphs: Graphs
    couplings: Tensor
    relations: Tensor
    measure: Tensor

    def neighbours(self, couplings: Tensor) -> Tensor:
        """Compute A T, [G, K, N, M]."""
        graphs, (bases, roles) = self.graphs, (couplings.shape[1], couplings.shape[3])
        rows = couplings.transpose(1, 2)[_slots(graphs)].flatten(1)
        summed = kernels.on(rows).neighbour_sum(rows.contiguous(), prepare_structure(graphs, 1.0))
        return pad(graphs, summed.view(-1, bases, roles)).transpose(1, 2)

    def energies(self) -> Tensor:
        """Compute the relational energies, [G, K]."""
        squares = (self.measure * pad(self.graphs, self._carried_measure())).sum(1, keepdim=True)
        cross = (self.couplings @ self.relations * self.neighbours(self.couplings)).sum((2, 3))
        return squares + (self.relations**2).mean((1, 2)) - 2 * cross

    def _carried_measure(self) -> Tensor:
        mu = self.measure[_slots(self.graphs)][:, None].contiguous()
        return kernels.on(mu).neighbour_sum(mu, prepare_structure(self.graphs, 1.0))[:, 0]


def _slots(graphs: Graphs) -> tuple[Tensor, Tensor]:
    """Return the graph of every node, and its index there."""
    owner = torch.repeat_interleave(torch.arange(len(graphs)), graphs.sizes)
    return owner, torch.arange(graphs.num_nodes) - graphs.node_ptr[owner]


def pad(graphs: Graphs, values: Tensor) -> Tensor:
    """Pad values [nodes, ...] to [G, N, ...], with zeros beyond a graph's own nodes."""
    out = values.new_zeros(len(graphs), int(graphs.sizes.max()), *values.shape[1:])
    return out.index_put(_slots(graphs), values)


def dense_couplings(model: ART, graphs: Graphs, steps: int = 10) -> DenseCouplings:
    """Compute couplings with gradients, by Sinkhorn scaling of kernels cut off at exp(-30)."""
    structure = prepare_structure(graphs, model.config.measure_epsilon)
    nodes = pad(graphs, model.encoder(structure) @ model.node_projection.weight.T)
    relations = model.atlas.relations()
    roles = model.role_projection(model.role_encoder(relations))
    logits = torch.einsum("gnd,kmd->gknm", nodes, roles) * model.config.sinkhorn_options["scale"]
    measure = pad(graphs, structure.measure)
    kernel = torch.exp((logits - logits.amax(3, keepdim=True)).clamp_min(-30))
    return DenseCouplings(graphs, _sinkhorn(kernel, measure, steps), relations, measure)


def _sinkhorn(kernel: Tensor, measure: Tensor, steps: int) -> Tensor:
    """Scale a positive kernel [G, K, N, M] onto the marginals mu and 1 / M."""
    kernel = kernel * (measure > 0)[:, None, :, None]
    mu, v = measure[:, None], kernel.new_ones(*kernel.shape[:2], kernel.shape[3])
    u = mu
    for _ in range(steps):
        u = mu / (torch.einsum("gknm,gkm->gkn", kernel, v) + 1e-30)
        v = 1 / kernel.shape[3] / (torch.einsum("gknm,gkn->gkm", kernel, u) + 1e-30)
    return kernel * u[..., None] * v[:, :, None]


@torch.no_grad()
def refine(dense: DenseCouplings, rounds: int = 8, stride: float = 4.0) -> Tensor:
    """Lower the energy of couplings by mirror descent, [G, K, N, M]."""
    couplings = dense.couplings
    for _ in range(rounds):
        slope = dense.neighbours(couplings) @ dense.relations
        slope = slope / slope.amax((2, 3), keepdim=True).clamp_min(TINY)
        kernel = couplings.clamp_min(TINY) * torch.exp(stride * slope)
        couplings = _sinkhorn(kernel, dense.measure, 10)
    return couplings


def distillation(dense: DenseCouplings) -> Tensor:
    """Average the divergence of the refined couplings from the amortised ones."""
    refined = refine(dense)
    ratio = refined.clamp_min(TINY).log() - dense.couplings.clamp_min(TINY).log()
    return (refined * ratio).sum((2, 3)).mean()


def pool_degrees(dense: DenseCouplings, model: ART) -> Tensor:
    """Pool degrees over neighbourhoods by roles, as z+ pools features; [G, d]."""
    graphs, config = dense.graphs, model.config
    structure, degree = prepare_structure(graphs, 1.0), graphs.degree.float()[:, None]
    second = kernels.on(degree).neighbour_sum(degree, structure)
    third = kernels.on(second).neighbour_sum(second, structure)
    values = pad(graphs, torch.cat([degree, second.log1p(), third.log1p(), degree**2], 1))
    roles = dense.couplings / dense.measure.clamp_min(TINY)[:, None, :, None]
    if config.pooling == "mixed":
        weight = responsibilities(dense.energies(), config.responsibility_temperature)
        roles = (roles * weight[..., None, None]).sum(1, keepdim=True)
    return signed_log(config.roles * torch.einsum("gknm,gnd->gkmd", roles, values)).flatten(1)


class ContrastLoss(nn.Module):
    """A contrastive loss that draws two views of a graph together and apart from other graphs."""

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
    """Remove a random share of the edges and keep all nodes."""
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
