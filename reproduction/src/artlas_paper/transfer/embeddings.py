"""Frozen representations of a target, the model's and the controls, each computed once and kept."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas.errors import ReadError
from artlas.evaluation import controls
from artlas.evaluation.accuracy import Scaling
from artlas.files.atomic import atomic
from artlas.files.untrusted import read_npz
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint, z_plus
from artlas.method.batching import GraphBatch
from artlas.method.config import ArtConfig
from artlas.method.model import ART
from artlas.nodes.ego import EgoGraphs, PprConfig
from artlas_paper import datasets
from artlas_paper.transfer.control_roles import independent, pool_by, random_balanced
from artlas_paper.transfer.structural_features import structural_features

VERSION = 1  # of the representations: raise it when one of them changes
Matrix = NDArray[Any]
Data = Graphs | EgoGraphs


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to read a frozen model.

    features: how the dataset's are prepared; released: the settings of the authors' code;
    filled: ego-graphs filled up with nodes of score zero, as theirs; trained: or the weights that
    the model began with; scaling: of the support, as :func:`artlas.evaluation.accuracy` takes it.
    """

    features: str = "paper"
    representation: str = "paper"
    released: bool = False
    filled: bool = False
    trained: bool = True
    scaling: Scaling = "double"


_BOTH = {
    "paper": Variant(),
    "paper-single": Variant(scaling="single"),
    "q": Variant(representation="coordinates"),
    "H": Variant(representation="features"),
}
GRAPH_VARIANTS = {
    **_BOTH,
    "released": Variant("released", released=True),
    "released-single": Variant("released", released=True, scaling="single"),
    "plus": Variant("released", "plus"),
    "plus-untrained": Variant("released", "plus", trained=False),
}
NODE_VARIANTS = {
    **_BOTH,
    "paper-filled": Variant(filled=True),
    "released": Variant(released=True, filled=True, scaling="single"),
    "plus": Variant(representation="plus"),
    "plus-untrained": Variant(representation="plus", trained=False),
}


def sum_log(graphs: Graphs) -> Matrix:
    """The signed logarithm of the sum pool, [G, d]."""
    pooled = controls.sum_pool(graphs)
    return np.sign(pooled) * np.log1p(np.abs(pooled))


def plus_by(data: Data, roles: Callable[[Graphs], Tensor] | None = None) -> Matrix:
    """z+ without a model: by roles [N, M] that are given for the nodes of graphs, or without."""
    made = []
    for part in data.split() if isinstance(data, EgoGraphs) else [data]:
        batch = GraphBatch.of(part)
        if roles is None:
            made.append(z_plus.without_roles(batch))
        else:
            pooled = pool_by(roles(batch.graphs))(batch.graphs, z_plus.node_values(batch))
            made.append(z_plus.vector(batch, pooled))
    return torch.cat(made).numpy()


def random_roles(graphs: Graphs) -> Tensor:
    """As many roles as an atlas has, of equal mass, by chance."""
    return random_balanced(graphs, ArtConfig().roles)


def independent_roles(graphs: Graphs) -> Tensor:
    """Every node in every role alike: what the independent coupling makes of z+."""
    return independent(graphs, ArtConfig().roles)


def wl_kernel(graphs: Graphs, rounds: int = 3) -> Matrix:
    """Vectors whose products are GraKeL's Weisfeiler-Lehman subtree kernel, normalised; [G, r].

    The labels of nodes are their binary features, or their degree where there are none.
    """
    try:
        from grakel import Graph
        from grakel.kernels import VertexHistogram, WeisfeilerLehman
    except ImportError as error:
        raise ImportError(
            "The Weisfeiler-Lehman kernel is GraKeL's, which is not installed. "
            "To fix this: pip install 'artlas[studies]'"
        ) from error

    labels = _discrete(graphs)
    made = []
    for graph, own in zip(graphs, np.split(labels, graphs.node_ptr.numpy()[1:-1]), strict=True):
        source = np.repeat(np.arange(graph.num_nodes), graph.row_ptr.diff().numpy())
        edges = list(zip(source.tolist(), graph.col.tolist(), strict=True))
        neighbours: dict[int, list[int]] = {i: [] for i in range(graph.num_nodes)}
        for u, v in edges:
            neighbours[u].append(v)
        made.append(Graph(neighbours, dict(enumerate(own.tolist()))))
    kernel = WeisfeilerLehman(n_iter=rounds, base_graph_kernel=VertexHistogram, normalize=True)
    values, vectors = np.linalg.eigh(kernel.fit_transform(made))
    kept = values > values[-1] * 1e-10
    return vectors[:, kept] * np.sqrt(values[kept])


def _discrete(graphs: Graphs) -> NDArray[np.int64]:
    if graphs.x is not None:
        x = graphs.x.numpy()
        binary = x[:, ((x == 0) | (x == 1)).all(0)]
        if binary.shape[1]:
            return np.unique(binary, axis=0, return_inverse=True)[1].reshape(-1)
    return graphs.degree.numpy().astype(np.int64)


def centre(egos: EgoGraphs) -> Matrix:
    """The features of the centre alone, [C, d]."""
    x = _features(egos)
    return x[egos.centres]


def ego_mean(egos: EgoGraphs, weighted: bool) -> Matrix:
    """The mean of the features over an ego-graph, weighted by score or not, [C, d]."""
    x, starts = _features(egos), egos.node_ptr[:-1]
    weight = egos.scores.astype(np.float64) if weighted else np.ones(len(egos.nodes))
    total = np.add.reduceat(weight, starts)
    out = np.empty((len(egos), x.shape[1]))
    for i, (begin, end) in enumerate(zip(starts, egos.node_ptr[1:], strict=True)):
        out[i] = weight[begin:end] @ x[egos.nodes[begin:end]] / total[i]
    return out


def _features(egos: EgoGraphs) -> Matrix:
    if egos.graph.x is None:
        degree = egos.graph.degree.double().numpy()[:, None]
        return degree / max(degree.max(), 1.0)
    return egos.graph.x.numpy()


GRAPH_CONTROLS: dict[str, Callable[[Any], Matrix]] = {
    "sum": controls.sum_pool,
    "mean": controls.mean_pool,
    "log-sum": sum_log,
    "degree-histogram": controls.degree_histogram,
    "size": controls.size,
    "plus-no-roles": plus_by,
    "plus-independent": lambda data: plus_by(data, independent_roles),
    "plus-random-roles": lambda data: plus_by(data, random_roles),
}
NODE_CONTROLS: dict[str, Callable[[Any], Matrix]] = {
    "centre": centre,
    "ppr-mean": lambda egos: ego_mean(egos, True),
    "mean": lambda egos: ego_mean(egos, False),
    "sum": lambda egos: ego_mean(egos, False) * np.diff(egos.node_ptr)[:, None],
    "degree-histogram": lambda egos: np.concatenate(
        [controls.degree_histogram(part) for part in egos.batches()]
    ),
    "size": lambda egos: np.concatenate([controls.size(part) for part in egos.batches()]),
    "plus-no-roles": plus_by,
    "plus-independent": lambda data: plus_by(data, independent_roles),
    "plus-random-roles": lambda data: plus_by(data, random_roles),
}


@dataclasses.dataclass(frozen=True)
class Target:
    """A dataset to be classified, with the examples that the episodes use."""

    name: str
    root: Path | None
    level: str
    cache: Path
    members: NDArray[np.int64]

    def data(self, features: Any, filled: bool = False) -> Data:
        """The members, with features prepared as asked for; ego-graphs filled up or not."""
        if self.level == "graph":
            return datasets.load(self.name, self.root, features, verbose=False)[self.members]
        config = PprConfig.released() if filled else PprConfig()
        egos = datasets.load_egos(self.name, self.root, features, 300, config, verbose=False)
        if egos.graph.x is None:
            egos = dataclasses.replace(egos, graph=structural_features(egos.graph))
        return egos.select(self.members)

    def control(self, variant: str) -> Matrix:
        """What a control makes of the members, [n, d]."""
        if self.level == "graph":
            return GRAPH_CONTROLS[variant](self.data("released"))
        return NODE_CONTROLS[variant](self.data("paper"))

    def wl(self) -> Matrix:
        """The Weisfeiler-Lehman kernel of the members as vectors, of the dataset once and kept."""

        def whole() -> Matrix:
            return wl_kernel(datasets.load(self.name, self.root, "raw", verbose=False))

        key = {"version": VERSION, "target": self.name, "wl": "whole"}
        return self._kept(key, whole)[self.members]

    def embed(self, model: ART, variant: Variant) -> Matrix:
        """A representation of the members by a frozen model, [n, d], kept between calls."""
        if variant.released:
            model = as_released(model)
        if not variant.trained:
            model = ART(model.config)
        made_from = dataclasses.asdict(variant)
        del made_from["scaling"], made_from["trained"]  # the head's, and told by the weights
        key = {
            "version": VERSION,
            "target": self.name,
            "members": _hash(self.members.tobytes()),
            **made_from,
            "config": dataclasses.asdict(model.config),
            "weights": checkpoint.weights_hash(model),
        }
        return self._kept(
            key,
            lambda: model.embed(
                self.data(variant.features, variant.filled), variant.representation
            ).numpy(),
        )

    def _kept(self, key: dict[str, Any], make: Callable[[], Matrix]) -> Matrix:
        name = _hash(json.dumps(key, sort_keys=True).encode())[:16]
        path = self.cache / f"{self.name}-{name}.npz"
        if path.exists():
            try:
                return read_npz(path)["z"]
            except ReadError:  # cut off or damaged: made anew
                path.unlink()
        made = make()
        self.cache.mkdir(parents=True, exist_ok=True)
        with atomic(path) as out:
            np.savez(out, z=made)
        return made


def as_released(model: ART) -> ART:
    """The same weights under the settings of the authors' code."""
    preset, own = ArtConfig.released(), model.config
    changes = {name: getattr(preset, name) for name in ("top_k", "logit_clamp", "featureless")}
    changes["top_k"] = min(preset.top_k or own.bases, own.bases)
    other = ART(dataclasses.replace(own, **changes))
    other.load_state_dict(model.state_dict())
    return other.eval()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
