"""Reddit's raw layout, on a small stand-in: load, count, choose centres, cut ego-graphs."""

from __future__ import annotations

import numpy as np
import pytest

from artlas.errors import ReadError
from artlas.nodes.ego import ego_graphs
from artlas_paper.datasets import reddit
from artlas_paper.datasets.centres import choose_centres
from benchmarks.synthetic_reddit import write_reddit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("Reddit") / "raw"
    write_reddit(folder, nodes=3000, entries=60_000, classes=7, width=20)
    return folder


def test_end_to_end(folder):
    found = reddit.read(folder)
    graph = found.graphs
    assert (graph.num_nodes, len(graph.col), graph.num_features) == (3000, 60_000, 20)
    assert not +found.changes  # symmetric and clean as it is
    with np.load(folder / "reddit_data.npz") as data, np.load(folder / "reddit_graph.npz") as net:
        np.testing.assert_array_equal(graph.x, data["feature"].astype(np.float32))
        np.testing.assert_array_equal(graph.y, data["label"])
        order = np.lexsort([net["col"], net["row"]])
        np.testing.assert_array_equal(graph.col, net["col"][order])
        np.testing.assert_array_equal(graph.row_ptr.diff(), np.bincount(net["row"]))
    centres = choose_centres(graph.y, 20)
    egos = ego_graphs(graph, centres)
    assert len(egos) == 7 * 20
    assert np.bincount(egos.y).tolist() == [20] * 7
    batch = egos[:64]
    assert len(batch) == 64
    assert batch.x.shape == (batch.num_nodes, 20)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("data", {"label": np.zeros(5, np.int64)}, "features and labels do not fit"),
        ("data", {"label": np.zeros(3000)}, "labels are not integers"),
        ("data", {"label": None}, "feature and label must be there"),
        ("graph", {"row": None}, "not a SciPy matrix in COO form"),
        ("graph", {"shape": np.array([5, 5])}, "does not fit the nodes"),
        ("graph", {"col": np.full(60_000, 3000)}, "out of range"),
        ("graph", {"col": np.full(60_000, 0.5)}, "out of range"),
    ],
)
def test_defects(folder, tmp_path, file, change, message):
    for name in ("data", "graph"):
        with np.load(folder / f"reddit_{name}.npz") as stored:
            arrays = dict(stored) | (change if name == file else {})
        kept = {key: value for key, value in arrays.items() if value is not None}
        np.savez(tmp_path / f"reddit_{name}.npz", **kept)
    with pytest.raises(ReadError, match=message):
        reddit.read(tmp_path)
