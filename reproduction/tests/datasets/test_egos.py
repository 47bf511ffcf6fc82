"""Ego-graphs of named datasets: kept once, and used again only for the same things."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

import artlas
from artlas import PprConfig
from artlas_paper import datasets
from artlas_paper.datasets import egos as module
from artlas_paper.datasets.centres import choose_centres
from artlas_paper.datasets.egos import egos_path, load_egos, read_egos, save_egos


@pytest.fixture
def searches(monkeypatch):
    """How often ego-graphs are looked for."""
    made, find = [], module.ego_graphs
    monkeypatch.setattr(module, "ego_graphs", lambda *a: made.append(a) or find(*a))
    return made


def test_cora_is_kept_and_found_again(raw, searches):
    root = raw("Cora")
    first = load_egos("Cora", root, per_class=20, verbose=False)
    again = load_egos("cora", root, per_class=20, verbose=False)
    assert len(searches) == 1
    assert len(first) == 7 * 20
    assert np.array_equal(first.nodes, again.nodes)
    assert np.array_equal(first.scores, again.scores)
    assert first[:3].x.shape[1] == 256
    assert np.bincount(first.y).tolist() == [20] * 7
    labels = datasets.load("Cora", root, "raw", verbose=False).y
    assert np.array_equal(first.centres, choose_centres(labels, 20))


def test_other_settings_are_other_files(raw, searches):
    root = raw("Cora")
    load_egos("Cora", root, "raw", 2, verbose=False)
    load_egos("Cora", root, "raw", 3, verbose=False)
    load_egos("Cora", root, "raw", 2, PprConfig(fill=True), verbose=False)
    assert len(searches) == 3
    load_egos("Cora", root, "paper", 2, verbose=False)  # features are not part of them
    assert len(searches) == 3


@pytest.mark.parametrize("damage", ["cut", "swapped"])
def test_damaged_or_foreign_ones_are_made_anew(raw, searches, damage):
    root = raw("Cora")
    wanted = load_egos("Cora", root, "raw", 4, verbose=False)
    path = egos_path(root, "Cora", 4, PprConfig())
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        load_egos("Cora", root, "raw", 5, verbose=False)
        path.write_bytes(egos_path(root, "Cora", 5, PprConfig()).read_bytes())
    before = len(searches)
    found = load_egos("Cora", root, "raw", 4, verbose=False)
    assert len(searches) == before + 1
    assert np.array_equal(found.nodes, wanted.nodes)


def test_collections_of_graphs_have_none():
    with pytest.raises(datasets.DatasetError, match="NCI1, a collection of graphs"):
        load_egos("NCI1")


def test_saved_and_read(tmp_path):
    def network(seed):
        return artlas.Graphs.from_networkx(nx.gnp_random_graph(300, 0.02, seed=seed))

    graph = network(0)
    egos = artlas.ego_graphs(graph, [4, 260, 8], PprConfig(threshold=1e-3, most_nodes=20))
    save_egos(egos, tmp_path / "egos.npz")
    again = read_egos(tmp_path / "egos.npz", graph)
    for name in ("node_ptr", "nodes", "scores", "centres", "pushes", "positive", "stopped"):
        assert np.array_equal(getattr(egos, name), getattr(again, name))
    assert again.config == egos.config
    assert torch.equal(egos[:].col, again[:].col)
    with pytest.raises(artlas.GraphError, match="another graph"):
        read_egos(tmp_path / "egos.npz", network(1))
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(artlas.GraphError, match="no ego-graphs"):
        read_egos(tmp_path / "other.npz", graph)
