"""The real files: the paper's counts, PyTorch Geometric as oracle, and features."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from tiny_datasets import entries, in_order

from artlas_paper.datasets import load, prepare

# The paper's two tables, and the widths that its text and the collections give.
GRAPH_LEVEL = {
    "NCI1": (4_110, 2, 29.87, 32.30, 37),
    "BZR": (405, 2, 35.75, 38.36, 56),
    "COLLAB": (5_000, 3, 74.49, 2_457.22, 0),
    "IMDB-BINARY": (1_000, 2, 19.77, 96.53, 0),
    "PROTEINS": (1_113, 2, 39.06, 72.82, 4),
    "COLORS-3": (10_500, 11, 61.31, 91.03, 5),
    "COLORS-3-clean": (10_500, 11, 61.31, 91.03, 4),
    "ogbg-molhiv": (41_127, 2, 25.51, 27.47, 9),
}
NODE_LEVEL = {
    "Cora": (2_708, 10_556, 1_433, 7),
    "CiteSeer": (3_327, 9_104, 3_703, 6),
    "PubMed": (19_717, 88_648, 500, 3),
    "Computers": (13_752, 491_722, 767, 10),
    "Photo": (7_650, 238_162, 745, 8),
    "ogbn-arxiv": (169_343, 2 * 1_157_799, 0, 40),  # its 128 features are not among the files
}


@pytest.mark.parametrize("name", GRAPH_LEVEL)
def test_graph_level_is_as_in_the_paper(raw, name):
    graphs = load(name, raw(name.removesuffix("-clean")), "raw")
    total, classes, nodes, edges, width = GRAPH_LEVEL[name]
    assert len(graphs) == len(graphs.y) == total
    assert graphs.y.unique().tolist() == list(range(classes))
    assert round(graphs.num_nodes / total, 2) == nodes
    assert round(graphs.num_edges / total, 2) == edges
    assert graphs.num_features == width
    assert (graphs.x is None) == (width == 0)


@pytest.mark.parametrize("name", NODE_LEVEL)
def test_node_level_is_as_in_the_paper(raw, name):
    graphs = load(name, raw(name), "raw")
    nodes, stored, width, classes = NODE_LEVEL[name]
    assert len(graphs) == 1
    assert graphs.num_nodes == len(graphs.y) == nodes
    assert len(graphs.col) == stored
    assert graphs.num_features == width
    assert graphs.y.unique().tolist() == list(range(classes))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NCI1", "BZR", "PROTEINS", "IMDB-BINARY", "COLORS-3"])
def test_tu_is_what_pytorch_geometric_reads(raw, name):
    pytest.importorskip("torch_geometric", reason="the oracle is PyTorch Geometric")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.io import read_tu_data

        root = raw(name)
        data, slices, _ = read_tu_data(str(root / "TUDataset" / name / "raw"), name)
    graphs = load(name, root, "raw")
    first = graphs.node_ptr[:-1].repeat_interleave(slices["edge_index"].diff())
    assert np.array_equal(entries(graphs), in_order(data.edge_index + first))
    assert torch.equal(graphs.y, data.y)
    assert (graphs.x is None) == (data.x is None)
    if data.x is not None:
        assert torch.equal(graphs.x, data.x)
        assert torch.equal(graphs.node_ptr, slices["x"])


def test_colors_without_the_column_that_tells_the_label(raw):
    root = raw("COLORS-3")
    whole, clean = load("COLORS-3", root, "raw"), load("colors-3-CLEAN", root, "raw")
    assert torch.equal(clean.x, whole.x[:, 1:])
    summed = torch.zeros(len(whole)).index_add_(
        0, torch.arange(len(whole)).repeat_interleave(whole.sizes), whole.x[:, 0]
    )
    assert torch.equal(summed.long(), whole.y)  # the reason for there being a clean one
    assert not (root / "artlas" / "COLORS-3-clean.npz").exists()


def test_features_of_the_paper_and_of_the_released_code(raw):
    root = raw("BZR")
    assert load("BZR", root).x.shape[1] == 56
    root = raw("IMDB-BINARY")
    paper, released = load("IMDB-BINARY", root), load("IMDB-BINARY", root, "released")
    assert paper.x.shape == (19_773, 56)
    assert paper.x.sum() == 19_773
    assert released.x.shape == (19_773, 1)
    assert load("IMDB-BINARY", root, "raw").x is None
    root = raw("Cora")
    native, projected = load("Cora", root, "raw").x, load("Cora", root).x
    gauss = torch.randn(1433, 256, generator=torch.Generator().manual_seed(42)) / 16
    torch.testing.assert_close(projected, native @ gauss, rtol=1e-4, atol=1e-4)
    assert torch.equal(load("Cora", root, "released").x, projected)
    assert set(native.unique().tolist()) == {0, 1}  # not divided by the sums of rows


def test_arxiv_without_features_says_so(raw):
    root = raw("ogbn-arxiv")
    assert load("ogbn-arxiv", root).x is None
    done = prepare("ogbn-arxiv", root)
    assert "the 128 features of ogbn_arxiv/raw/node-feat.csv.gz are missing" in done.check
    assert "1,166,243 directed citations" in done.check
