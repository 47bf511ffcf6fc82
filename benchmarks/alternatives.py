"""Prepare what a user would choose instead of `artlas embed`, to be timed on the same graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas import Graphs
from artlas.graphs.measure import normalised_degree
from benchmarks.data import SEED
from benchmarks.timing import Call

HIDDEN, LAYERS, BATCH = 64, 3, 64  # for the GIN
WL_ROUNDS = 3
ALPHA = 0.5  # for TFGW: POT's default weighs features and structure equally


def features(graphs: Graphs) -> Tensor:
    """Return node features [N, d], or the normalised degree where there are none."""
    if graphs.x is not None:
        return graphs.x
    return normalised_degree(graphs.degree, graphs.node_ptr).unsqueeze(1)


def weisfeiler_lehman(graphs: Graphs) -> Call:
    """Prepare GraKeL's kernel matrix of all graphs, nodes labelled by features or degree."""
    from grakel import Graph
    from grakel.kernels import VertexHistogram, WeisfeilerLehman

    x = graphs.degree[:, None] if graphs.x is None else graphs.x
    labels = np.unique(x.numpy(), axis=0, return_inverse=True)[1].reshape(-1)
    inputs = []
    for graph, own in zip(graphs, np.split(labels, graphs.node_ptr.numpy()[1:-1]), strict=True):
        rows = np.split(graph.col.numpy(), graph.row_ptr.numpy()[1:-1])
        neighbours = {i: row.tolist() for i, row in enumerate(rows)}
        inputs.append(Graph(neighbours, dict(enumerate(own.tolist()))))

    def call() -> object:
        kernel = WeisfeilerLehman(
            n_iter=WL_ROUNDS, base_graph_kernel=VertexHistogram, normalize=True
        )
        return kernel.fit_transform(inputs)

    return call


def tfgw(graphs: Graphs, relations: Tensor) -> Call:
    """Prepare POT's fused Gromov-Wasserstein distances of every graph to every template.

    The templates are relations [K, M, M], with the features of nodes drawn from the graphs.
    """
    import ot

    templates = relations.double().numpy()
    count, roles = templates.shape[:2]
    x, rng = features(graphs).double().numpy(), np.random.default_rng(SEED)
    places = [x[rng.choice(len(x), roles)] for _ in range(count)]
    nodes = np.split(x, graphs.node_ptr.numpy()[1:-1])
    problems = [
        (graphs.to_scipy(g).toarray().astype(np.float64), [ot.dist(own, place) for place in places])
        for g, own in enumerate(nodes)
    ]

    def call() -> NDArray[np.float64]:
        distances = [
            ot.gromov.fused_gromov_wasserstein2(cost, relation, template, alpha=ALPHA)
            for relation, costs in problems
            for cost, template in zip(costs, templates, strict=True)
        ]
        return np.array(distances).reshape(len(problems), count)

    return call


class Gin:
    """An untrained GIN of PyTorch Geometric with sum pooling, in batches of a DataLoader."""

    def __init__(self, width: int) -> None:
        from torch_geometric.nn import GIN

        torch.manual_seed(SEED)
        self.net = GIN(width, HIDDEN, LAYERS).eval()

    @torch.no_grad()
    def embed(self, data: Sequence[Any]) -> Tensor:
        """Compute one vector per graph, [G, HIDDEN]."""
        from torch_geometric.loader import DataLoader
        from torch_geometric.nn import global_add_pool

        rows = []
        for batch in DataLoader(data, batch_size=BATCH):
            x = batch.x if batch.x is not None else _degrees(batch)
            nodes = self.net(x, batch.edge_index)
            rows.append(global_add_pool(nodes, batch.batch, batch.num_graphs))
        return torch.cat(rows)


def _degrees(batch: Any) -> Tensor:
    from torch_geometric.utils import degree

    return degree(batch.edge_index[0], batch.num_nodes)[:, None]


def to_pyg(graphs: Graphs) -> list[Any]:
    """Convert graphs to PyTorch Geometric's Data, with degrees where there are no features."""
    from torch_geometric.data import Data

    x, data = graphs.degree[:, None] if graphs.x is None else graphs.x, []
    for graph, own in zip(graphs, x.split(graphs.sizes.tolist()), strict=True):
        source = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.row_ptr.diff())
        edges = torch.stack([source, graph.col.long()])
        data.append(Data(x=own.clone(), edge_index=edges, num_nodes=graph.num_nodes))
    return data


def gin(graphs: Graphs) -> Call:
    """Prepare the GIN on graphs in memory."""
    data = to_pyg(graphs)
    net = Gin(data[0].x.shape[1])
    return lambda: net.embed(data)


def gin_from_text(root: Path, name: str, width: int) -> Call:
    """Prepare the GIN on what PyTorch Geometric reads from ROOT/NAME/raw at each call."""
    from torch_geometric.datasets import TUDataset

    net = Gin(width)

    def call() -> Tensor:
        data = TUDataset(str(root), name, use_node_attr=True, force_reload=True)
        return net.embed(data)

    return call


def write_tu(folder: Path, name: str, graphs: Graphs) -> None:
    """Write graphs in TU layout: features as node attributes, graph labels or else 0."""
    from pyarrow import csv, table

    folder.mkdir(parents=True)
    source = np.repeat(np.arange(graphs.num_nodes), graphs.row_ptr.diff().numpy())
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes.numpy())
    columns: dict[str, list[Any]] = {
        "A": [source + 1, graphs.col.numpy() + 1],
        "graph_indicator": [owner + 1],
        "graph_labels": [np.zeros(len(graphs), dtype=np.int64) if graphs.y is None else graphs.y],
    }
    if graphs.x is not None:
        columns["node_attributes"] = list(graphs.x.numpy().T)
    for kind, values in columns.items():
        columns_table = table(
            [np.asarray(value) for value in values], list(map(str, range(len(values))))
        )
        options = csv.WriteOptions(include_header=False)
        csv.write_csv(columns_table, str(folder / f"{name}_{kind}.txt"), options)
