r"""SCGFM, the conference predecessor: bases learned by sliced distances, alignment by iteration.

No code of it was published. K bases :math:`B_k \in [0, 1]^{M \times M}` are learned, symmetric and
without a diagonal:

.. math:: \delta_k = SGW(A, B_k), \quad w = \mathrm{softmax}(-\delta / \tau), \quad
    \tilde B = \sum_k w_k B_k

.. math:: \mathcal L = SGW(A, \tilde B) + \alpha\, MSE(f(w), s(A))
    + \beta\, \mathrm{mean}_{i < j} \max(0, m - \|B_i - B_j\|_F)

with a decoder f of statistics s (:mod:`artlas_paper.methods.statistics`). SGW compares the sorted
columns of :math:`A \theta` and :math:`B \theta`, both padded with zeros to D rows, for L random
directions :math:`\theta` of unit norm. Only at inference a coupling T of A with :math:`\tilde B` is
found by iterated Gromov-Wasserstein, and :math:`z = [w \,\|\, f(w) \,\|\, \mathrm{vec}(N T^\top
X)]`. The vector of a centre c has its own share of the last part, :math:`N T_c^\top x_c`. Features
are not seen in training.

What the sources do not say was chosen: the sizes and weights of :class:`ScgfmConfig`, the bins of
s, uniform measures, conditional gradients from the product of the measures with at most 50 steps,
and the numbering of nodes, on which SGW and a solver with ties depend. Nodes are put in order by
degree and colour, and rows of :math:`\theta` are averaged over nodes that these do not tell apart,
so that the coordinates do not depend on how nodes were numbered. Notes on the paper sum the
transported features of all bases; its stated cost fits one coupling with the mixture, as here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from artlas import checks
from artlas.graphs.collection import Graphs
from artlas.gw import solver
from artlas.method.config import UNIFORM
from artlas_paper.methods.base import Baseline, BaselineConfig, Domains
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.statistics import CLUSTERINGS, COUNTS, DEGREES, describe, order_of

Solver = Literal["artlas", "pot", "pot-entropic"]
Align = Callable[[Graphs, NDArray[np.float64]], NDArray[np.float64]]
PADDED = 100  # rows that the smallest graphs are padded to
PART = 1 << 14  # nodes that are projected at a time


@dataclass(frozen=True)
class ScgfmConfig(BaselineConfig):
    r"""Settings of SCGFM; hidden is the width of the decoder, layers means nothing here.

    bases: K; roles: M; slices, training_slices: L at inference and in training; temperature:
    :math:`\tau`; statistics, separation: :math:`\alpha, \beta`; margin: m; iterations: most steps
    of the solver. solver: the conditional gradient of :mod:`artlas.gw`, that of POT, or POT's
    entropic projected gradient of strength epsilon. seed: of weights and slices.
    """

    bases: int = 16
    roles: int = 32
    slices: int = 200
    training_slices: int = 50
    temperature: float = 0.1
    statistics: float = 1.0
    separation: float = 0.1
    margin: float = 6.0
    iterations: int = 50
    solver: Solver = "artlas"
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(self, "bases", "roles", "slices", "training_slices", "iterations")
        checks.positive(self, "temperature", "epsilon")
        checks.one_of(self, "solver", tuple(SOLVERS))
        if self.training_slices > self.slices:
            raise ValueError(
                f"ScgfmConfig.training_slices must be at most slices = {self.slices}, got "
                f"{self.training_slices}."
            )


@dataclass(frozen=True)
class Slices:
    """What the sliced distance needs of G graphs.

    low, high [G, M, L]: the M smallest and M largest of the padded columns of A theta, ascending;
    squares [G, L]: their sums of squares; norms [G, L]: squared norms of theta's first D rows;
    padded [G]: D. The M rows of a base meet no other of the D sorted ones.
    """

    low: Tensor
    high: Tensor
    squares: Tensor
    norms: Tensor
    padded: Tensor

    def distances(self, base: Tensor) -> Tensor:
        """To every base, given its B theta [K, M, L]: [G, K]."""
        base, weight = base.sort(1).values, self._weight()
        cross = base.clamp(max=0).flatten(1) @ (self.low * weight[:, None]).flatten(1).T
        cross = cross + base.clamp(min=0).flatten(1) @ (self.high * weight[:, None]).flatten(1).T
        own = (self.squares * weight).sum(1)
        return own[:, None] + weight @ base.square().sum(1).T - 2 * cross.T

    def distance(self, base: Tensor) -> Tensor:
        """Of each graph to one of its own, given its B theta [G, M, L]: [G]."""
        base = base.sort(1).values
        cross = (base.clamp(max=0) * self.low + base.clamp(min=0) * self.high).sum(1)
        return ((self.squares + base.square().sum(1) - 2 * cross) * self._weight()).sum(1)

    def double(self) -> Slices:
        """The same in float64."""
        return Slices(
            self.low.double(),
            self.high.double(),
            self.squares.double(),
            self.norms.double(),
            self.padded,
        )

    def _weight(self) -> Tensor:
        return 1 / (self.norms * self.padded[:, None] * self.norms.shape[1])


class SCGFM(Baseline):
    """The model; see the module."""

    name = "scgfm"
    Config = ScgfmConfig
    config: ScgfmConfig

    def build(self) -> None:
        config = self.config
        self.logits = nn.Parameter(torch.randn(config.bases, config.roles, config.roles))
        self.decoder = nn.Sequential(
            nn.Linear(config.bases, config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, DEGREES + CLUSTERINGS + COUNTS),
        )
        self._theta = np.empty((0, config.slices), dtype=np.float32)
        self._statistics: dict[str, Tensor] = {}

    def prepare(self, domains: Domains) -> None:
        """Count the statistics of all graphs."""
        self._statistics = {
            name: torch.from_numpy(describe(graphs)) for name, graphs in domains.items()
        }

    def relations(self) -> Tensor:
        """The bases, symmetric with zero diagonal, [K, M, M]."""
        symmetric = (self.logits + self.logits.transpose(1, 2)) / 2
        return symmetric.sigmoid() * (1 - torch.eye(self.config.roles))

    def theta(self, rows: int, slices: int) -> NDArray[np.float32]:
        """The first rows and columns of the random directions, the same however many are asked."""
        if rows > len(self._theta):
            rng = np.random.default_rng(self.config.seed)
            shape = (1 << (rows - 1).bit_length(), self.config.slices)
            self._theta = rng.standard_normal(shape, dtype=np.float32)
        return self._theta[:rows, :slices]

    def slice(self, graphs: Graphs, slices: int) -> Slices:
        """Project graphs on so many random directions."""
        parts = [self._slice(part, slices) for part in graphs.batches(PART)]
        columns = zip(*((p.low, p.high, p.squares, p.norms, p.padded) for p in parts), strict=True)
        return Slices(*(torch.cat(column) for column in columns))

    def _slice(self, graphs: Graphs, slices: int) -> Slices:
        roles, sizes = self.config.roles, graphs.sizes.numpy()
        padded = np.maximum(sizes, max(PADDED, roles))
        theta = self.theta(int(padded.max()), slices)
        order = order_of(graphs)
        members = np.diff(np.append(order.starts, graphs.num_nodes))
        means = np.add.reduceat(theta[order.position], order.starts) / members[:, None]
        own = np.empty((graphs.num_nodes, slices), dtype=np.float32)
        own[order.nodes] = np.repeat(means, members, axis=0)
        projected = _neighbour_sums(graphs, torch.from_numpy(own))
        low, high = projected.new_empty(2, len(graphs), roles, slices)
        zeros = projected.new_zeros(roles, slices)
        for g, columns in enumerate(projected.split(sizes.tolist())):
            missing = min(int(padded[g] - sizes[g]), roles)
            columns = torch.cat([columns, zeros[:missing]]).T.contiguous()
            low[g] = columns.topk(roles, largest=False).values.T
            high[g] = columns.topk(roles).values.flip(1).T
        first = graphs.node_ptr[:-1].numpy()
        squares = np.add.reduceat(projected.numpy() ** 2, first)
        norms = np.cumsum(theta.astype(np.float64) ** 2, axis=0)[padded - 1]
        return Slices(
            low,
            high,
            torch.from_numpy(squares),
            torch.from_numpy(norms).float(),
            torch.from_numpy(padded).float(),
        )

    def coordinates(self, slices: Slices) -> Tensor:
        """w of every graph, [G, K]."""
        relations = self.relations().to(slices.low)
        theta = torch.from_numpy(self.theta(self.config.roles, slices.low.shape[2])).to(slices.low)
        return torch.softmax(-slices.distances(relations @ theta) / self.config.temperature, 1)

    def loss(self, batch: Batch) -> Tensor:
        """The mean loss of some graphs."""
        config, relations = self.config, self.relations()
        statistics = torch.stack([self._statistics[name][i] for name, i in batch.members])
        slices = self.slice(_structure(batch), config.training_slices)
        weights = self.coordinates(slices)
        theta = torch.from_numpy(self.theta(config.roles, config.training_slices))
        mixed = torch.einsum("gk,kml->gml", weights, relations @ theta)
        loss = slices.distance(mixed).mean()
        loss = loss + config.statistics * nn.functional.mse_loss(self.decoder(weights), statistics)
        if config.bases > 1:
            apart = torch.pdist(relations.flatten(1))
            loss = loss + config.separation * (config.margin - apart).clamp(min=0).mean()
        return loss

    def states(self, batch: Batch) -> Tensor:
        """The coordinates of its graph and the scaled row of the coupling, [N, K + M]."""
        graphs, nodes = _in_order(batch)
        weights = self.coordinates(self.slice(graphs, self.config.slices).double())
        mixture = torch.einsum("gk,kml->gml", weights, self.relations().double())
        # A solver's ties are decided by the last bits, and in float64 these depend on the batch.
        mixed = mixture.float().double().detach().numpy()
        align = SOLVERS[self.config.solver](self.config)

        def couple(graph: Graphs, base: NDArray[np.float64]) -> Tensor:
            return graph.num_nodes * torch.from_numpy(align(graph, base)).float()

        # our solver takes one problem a thread; POT holds the interpreter's lock
        workers = torch.get_num_threads() if self.config.solver == "artlas" else 1
        with ThreadPoolExecutor(workers) as pool:
            rows = torch.cat(list(pool.map(couple, graphs, mixed)))
        back = torch.empty_like(rows)
        back[nodes] = rows
        return torch.cat([weights.float()[batch.graph_of], back], 1)

    def pool(self, batch: Batch, states: Tensor) -> Tensor:
        """z of every graph, [G, K + s + M d]."""
        sizes, bases = batch.sizes.tolist(), self.config.bases
        rows = zip(states[:, bases:].split(sizes), batch.x.split(sizes), strict=True)
        carried = torch.stack([own.T @ x for own, x in rows])
        return self._joined(states[batch.node_ptr[:-1], :bases], carried)

    def read_centre(self, batch: Batch, states: Tensor) -> Tensor:
        """The same with what the centre alone carries."""
        first, bases = batch.node_ptr[:-1], self.config.bases
        carried = states[first, bases:, None] * batch.x[first, None]
        return self._joined(states[first, :bases], carried)

    def _joined(self, weights: Tensor, carried: Tensor) -> Tensor:
        return torch.cat([weights, self.decoder(weights), carried.flatten(1)], 1)


def _structure(batch: Batch) -> Graphs:
    return Graphs(batch.node_ptr, batch.row_ptr, batch.col)


def _neighbour_sums(graphs: Graphs, values: Tensor) -> Tensor:
    """A V for values [N, L]."""
    n = graphs.num_nodes
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        ones = torch.ones(len(graphs.col))
        adjacency = torch.sparse_csr_tensor(
            graphs.row_ptr, graphs.col.long(), ones, (n, n), check_invariants=False
        )
        return adjacency @ values


def _in_order(batch: Batch) -> tuple[Graphs, NDArray[np.int64]]:
    """The same graphs, their nodes by degree and colour (see the module), and which these are."""
    nodes = order_of(Graphs(batch.node_ptr, batch.row_ptr, batch.col, batch.x)).nodes
    place = np.empty_like(nodes)
    place[nodes] = np.arange(len(nodes))
    rows, col = place[batch.row.numpy()], place[batch.col.numpy()]
    entries = np.lexsort((col, rows))
    pointer = np.concatenate([[0], np.cumsum(batch.degree.numpy()[nodes])])
    col = torch.from_numpy(col[entries].astype(np.int32))
    return Graphs(batch.node_ptr, torch.from_numpy(pointer), col), nodes


def _dense(graph: Graphs) -> NDArray[np.float64]:
    made = np.zeros((graph.num_nodes, graph.num_nodes))
    made[np.repeat(np.arange(len(made)), graph.row_ptr.diff().numpy()), graph.col.numpy()] = 1
    return made


def _by_pot(config: ScgfmConfig) -> Align:
    """POT's conditional gradient, started at the product of the measures."""
    gromov = _gromov()

    def align(graph: Graphs, base: NDArray[np.float64]) -> NDArray[np.float64]:
        return gromov.gromov_wasserstein(
            _dense(graph), base, loss_fun="square_loss", symmetric=True, max_iter=config.iterations
        )

    return align


def _by_pot_entropic(config: ScgfmConfig) -> Align:
    """POT's projected gradient with entropy."""
    gromov = _gromov()

    def align(graph: Graphs, base: NDArray[np.float64]) -> NDArray[np.float64]:
        return gromov.entropic_gromov_wasserstein(
            _dense(graph),
            base,
            loss_fun="square_loss",
            epsilon=config.epsilon,
            symmetric=True,
            max_iter=config.iterations,
            warn=False,
        )

    return align


def _by_artlas(config: ScgfmConfig) -> Align:
    """The same conditional gradient, compiled and on sparse adjacencies."""
    steps = solver.SolverConfig(exact=config.iterations)

    def align(graph: Graphs, base: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = [(solver.product_start(base[None], UNIFORM), steps)]
        return solver.solve(graph, base[None], starts, UNIFORM).couplings[0][0]

    return align


SOLVERS: dict[str, Callable[[ScgfmConfig], Align]] = {
    "artlas": _by_artlas,
    "pot": _by_pot,
    "pot-entropic": _by_pot_entropic,
}


def _gromov() -> Any:
    try:
        from ot import gromov
    except ImportError as error:
        raise ImportError(
            "This solver of SCGFM's is POT's, which is not installed. "
            "To fix this: pip install 'artlas[bench]', or choose the solver 'artlas'."
        ) from error
    return gromov
