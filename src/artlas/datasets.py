"""Graphs that need no download: digits, real networks from NetworkX, and synthetic families.

scikit-learn and NetworkX are imported where they are used, so that importing this is cheap.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from artlas.errors import import_extra
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import normalised_degree

DENSITY = 4  # mean degree of every family whose density can be chosen
_networkx = functools.partial(import_extra, "networkx", "These graphs need NetworkX", "demo")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled graphs: ``graphs.y`` [G] counts classes from 0, and ``names[y]`` names them."""

    name: str
    graphs: Graphs
    names: tuple[str, ...]

    @property
    def labels(self) -> NDArray[np.int64]:
        """The class of every graph, [G]."""
        assert self.graphs.y is not None
        return self.graphs.y.numpy()

    def halves(self, seed: int) -> tuple[Dataset, Dataset]:
        """Split every class at random into two disjoint halves, the smaller first."""
        rng = np.random.default_rng(seed)
        first = np.zeros(len(self.graphs), dtype=bool)
        for label in range(len(self.names)):
            members = rng.permutation(np.flatnonzero(self.labels == label))
            first[members[: len(members) // 2]] = True
        ids = np.flatnonzero(first), np.flatnonzero(~first)
        one, other = (Dataset(self.name, self.graphs[half], self.names) for half in ids)
        return one, other


def digits_as_graphs(per_class: int = 120, threshold: int = 4, seed: int = 0) -> Dataset:
    """Convert scikit-learn's handwritten digits, 8 x 8 pixels of 0 to 16, to graphs of their ink.

    Nodes are pixels of at least ``threshold``, edges join a pixel with its eight neighbours, and
    x [N, 3] is intensity / 16, row and column in [-1, 1]. The edges hold the drawing's topology
    (strokes, holes, ends); only the features hold its position.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8)
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(labels == c))[:per_class] for c in range(10)]
    chosen = np.sort(np.concatenate(drawn))
    pairs, features = zip(*(_pixels(images[i], threshold) for i in chosen), strict=True)
    graphs = Graphs.from_edges(pairs, x=list(features), y=labels[chosen])
    return Dataset("digits", graphs, tuple(str(c) for c in range(10)))


def _pixels(image: NDArray[np.float64], threshold: int) -> tuple[Any, NDArray[np.float64]]:
    """Convert an image [8, 8] to ``(num_nodes, edge_index)`` and features [n, 3]."""
    place = np.argwhere(image >= threshold)
    distance = np.abs(place[:, None] - place[None]).max(-1)  # 1 for the eight neighbours
    intensity = image[place[:, 0], place[:, 1]] / 16
    x = np.column_stack([intensity, place / 3.5 - 1])
    return (len(place), np.stack(np.nonzero(distance == 1))), x


def real_networks() -> Dataset:
    """Load the real networks that NetworkX ships, each its own class; no features, no weights.

    The karate club appears whole, and as the two clubs it split into.
    """
    nx = _networkx()
    karate = nx.karate_club_graph()
    clubs = dict(karate.nodes(data="club"))
    networks = {
        "Karate club": karate,
        "Karate, Mr. Hi": karate.subgraph(n for n in karate if clubs[n] == "Mr. Hi"),
        "Karate, officers": karate.subgraph(n for n in karate if clubs[n] == "Officer"),
        "Les Misérables": nx.les_miserables_graph(),
        "Florentine families": nx.florentine_families_graph(),
        "Southern women": nx.davis_southern_women_graph(),
    }
    plain = [nx.Graph(nx.to_dict_of_lists(network)) for network in networks.values()]
    return Dataset("networks", Graphs.from_networkx(plain, y=range(len(plain))), tuple(networks))


def synthetic_families(
    per_class: int = 120, smallest: int = 20, largest: int = 80, seed: int = 0
) -> Dataset:
    """Generate random graphs of eight families, with sizes uniform in [smallest, largest].

    All families but trees and grids have a mean degree near 4, so that size and density alone do
    not distinguish them. Cliques in a ring have 3 to 7 nodes or a few more, and grids lack one edge
    in twenty, so that hardly any graph occurs twice. x [N, 1] is degree / maximum degree, the
    published replacement for missing features.
    """
    nx = _networkx()
    generators = _generators(nx)
    rng = np.random.default_rng(seed)
    graphs = [
        make(int(rng.integers(smallest, largest + 1)), int(rng.integers(2**31)))
        for make in generators.values()
        for _ in range(per_class)
    ]
    families = Graphs.from_networkx(graphs, y=np.repeat(np.arange(len(generators)), per_class))
    return Dataset("families", families.with_features(relative_degree(families)), tuple(generators))


def _generators(nx: Any) -> dict[str, Callable[[int, int], Any]]:
    """Map each family's name to a generator of a graph from its number of nodes and a seed."""

    def blocks(n: int, seed: int) -> Any:
        sizes = [n // 3, n // 3, n - 2 * (n // 3)]
        inside, across = 0.85 * 3 * DENSITY / n, 0.15 * 1.5 * DENSITY / n
        matrix = [[min(1.0, inside) if a == b else across for b in range(3)] for a in range(3)]
        return nx.stochastic_block_model(sizes, matrix, seed=seed)

    def cliques(n: int, seed: int) -> Any:
        rng, sizes = np.random.default_rng(seed), list[int]()
        while (rest := n - sum(sizes)) >= 3:
            sizes.append(min(rest, int(rng.integers(3, 8))))
        sizes[-1] += rest
        ring = nx.disjoint_union_all([nx.complete_graph(size) for size in sizes])
        last = np.cumsum(sizes) - 1
        ring.add_edges_from((int(end), (int(end) + 1) % n) for end in last)
        return ring

    def grid(n: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(3, int(n**0.5) + 1))
        whole = nx.grid_2d_graph(-(-n // rows), rows)
        net = nx.Graph(whole.subgraph(sorted(whole)[:n]))  # the last row may be short
        edges = sorted(net.edges())
        net.remove_edges_from(edges[i] for i in rng.choice(len(edges), len(edges) // 20, False))
        return net

    return {
        "Erdős–Rényi": lambda n, seed: nx.gnm_random_graph(n, n * DENSITY // 2, seed=seed),
        "Barabási–Albert": lambda n, seed: nx.barabasi_albert_graph(n, DENSITY // 2, seed=seed),
        "Watts–Strogatz": lambda n, seed: nx.watts_strogatz_graph(n, DENSITY, 0.1, seed=seed),
        "Random regular": lambda n, seed: nx.random_regular_graph(DENSITY, n, seed=seed),
        "Block model": blocks,
        "Ring of cliques": cliques,
        "Grid": grid,
        "Tree": lambda n, seed: nx.random_labeled_tree(n, seed=seed),
    }


def relative_degree(graphs: Graphs) -> Tensor:
    """Divide each node's degree by its graph's largest, [N, 1]; 0 in a graph without edges."""
    return normalised_degree(graphs.degree, graphs.node_ptr).unsqueeze(1)
