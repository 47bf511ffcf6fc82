"""The built-in graphs: their contents, and that a seed reproduces them."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from sklearn.datasets import load_digits

from artlas.datasets import digits_as_graphs, real_networks, synthetic_families


@pytest.fixture(scope="module")
def families():
    return synthetic_families(per_class=12, seed=3)


def as_networkx(graphs, g):
    return nx.from_scipy_sparse_array(graphs.to_scipy(g))


def same(a, b):
    return all(
        np.array_equal(getattr(a.graphs, name), getattr(b.graphs, name))
        for name in ("node_ptr", "row_ptr", "col", "x", "y")
    )


def test_digit_is_its_inked_pixels_joined_to_eight_neighbours():
    data = digits_as_graphs(per_class=1000, threshold=4)
    images, labels = load_digits(return_X_y=True)
    assert len(data.graphs) == len(images)  # no class has as many: all are taken, in order
    np.testing.assert_array_equal(data.labels, labels)
    for g in (0, 7, 1234):
        image = images[g].reshape(8, 8)
        graph, degree = data.graphs[g], []
        for r, c in np.argwhere(image >= 4):
            around = image[max(0, r - 1) : r + 2, max(0, c - 1) : c + 2]
            degree.append((around >= 4).sum() - 1)
        assert graph.degree.tolist() == degree
        inked = image[image >= 4] / 16
        np.testing.assert_allclose(graph.x[:, 0], inked)
        rows = (graph.x[:, 1:].numpy() + 1) * 3.5
        np.testing.assert_allclose(rows, np.argwhere(image >= 4), atol=1e-5)


def test_digits_are_balanced_and_seeded():
    data = digits_as_graphs(per_class=7, seed=1)
    assert np.bincount(data.labels).tolist() == [7] * 10
    assert data.names == tuple("0123456789")
    assert same(data, digits_as_graphs(per_class=7, seed=1))
    assert not same(data, digits_as_graphs(per_class=7, seed=2))


def test_real_networks_are_the_known_ones():
    data = real_networks()
    sizes = {
        name: (graph.num_nodes, graph.num_edges)
        for name, graph in zip(data.names, data.graphs, strict=True)
    }
    assert sizes == {
        "Karate club": (34, 78),
        "Karate, Mr. Hi": (17, 35),
        "Karate, officers": (17, 32),
        "Les Misérables": (77, 254),
        "Florentine families": (15, 20),
        "Southern women": (32, 89),
    }
    assert data.labels.tolist() == list(range(6))
    assert nx.is_bipartite(as_networkx(data.graphs, 5))


def test_families_have_their_defining_properties(families):
    graphs, names = families.graphs, np.array(families.names)[families.labels]
    for g, name in enumerate(names):
        graph = as_networkx(graphs, g)
        degree = [d for _, d in graph.degree()]
        if name == "Tree":
            assert nx.is_tree(graph)
        if name == "Random regular":
            assert set(degree) == {4}
        if name == "Erdős–Rényi":
            assert graph.number_of_edges() == 2 * len(graph)
        if name == "Barabási–Albert":
            assert graph.number_of_edges() == 2 * (len(graph) - 2)
        if name == "Watts–Strogatz":
            assert graph.number_of_edges() == 2 * len(graph)
            assert nx.average_clustering(graph) > 0.2
        if name == "Grid":
            assert nx.is_bipartite(graph)
            assert max(degree) <= 4
        if name == "Ring of cliques":
            blocks = sum(len(c) >= 3 for c in nx.find_cliques(graph))
            joints = sum(len(c) == 2 for c in nx.find_cliques(graph))
            assert blocks == joints >= 3  # as many joints as cliques close the ring
            assert nx.is_connected(graph)
            assert not nx.has_bridges(graph)


def test_families_share_their_sizes_and_most_their_density(families):
    sizes, degree = families.graphs.sizes.numpy(), families.graphs.degree.numpy()
    assert sizes.min() >= 20
    assert sizes.max() <= 80
    assert np.ptp(sizes) > 40
    owner = np.repeat(families.labels, sizes)
    for label, name in enumerate(families.names):
        assert (families.labels == label).sum() == 12
        if name not in ("Tree", "Grid"):
            assert 3.5 < degree[owner == label].mean() < 4.8, name


def test_family_features_are_relative_degrees(families):
    for graph in list(families.graphs)[::17]:
        expected = graph.degree / graph.degree.max()
        np.testing.assert_allclose(graph.x[:, 0], expected, rtol=1e-6)


def test_families_are_seeded_and_hardly_repeat(families):
    assert same(families, synthetic_families(per_class=12, seed=3))
    assert not same(families, synthetic_families(per_class=12, seed=4))
    seen = {(tuple(g.row_ptr.tolist()), tuple(g.col.tolist())) for g in families.graphs}
    assert len(seen) >= len(families.graphs) - 1


def test_halves_are_disjoint_and_keep_every_class(families):
    marked = families.graphs.with_features(
        np.repeat(np.arange(len(families.graphs)), families.graphs.sizes)[:, None]
    )
    data = type(families)("marked", marked, families.names)
    first, second = data.halves(seed=0)
    ids = [set(half.graphs.x[:, 0].tolist()) for half in (first, second)]
    assert not ids[0] & ids[1]
    assert len(ids[0] | ids[1]) == len(families.graphs)
    assert np.bincount(first.labels).tolist() == [6] * 8
    assert np.bincount(second.labels).tolist() == [6] * 8
    assert ids[0] != set(data.halves(seed=1)[0].graphs.x[:, 0].tolist())


@pytest.mark.slow
def test_importing_artlas_imports_no_demo_dependency():
    heavy = ["typer", "rich", "sklearn", "matplotlib", "networkx"]
    # torch itself may load some of them: only what artlas adds counts.
    code = (
        "import sys, torch; before = set(sys.modules); import artlas; "
        "artlas.ART, artlas.load, artlas.read, artlas.pretrain, artlas.datasets, artlas.kernels; "
        f"print([m for m in {heavy} if m in set(sys.modules) - before])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_missing_networkx_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    for make in (real_networks, synthetic_families):
        with pytest.raises(ImportError, match=r"pip install 'artlas\[demo\]'"):
            make()
