"""Ten graphs whose coordinates and transported features no release may change.

``python tests/test_golden.py`` writes the file anew: only when shipped weights are replaced.
"""

from __future__ import annotations

import pathlib

import networkx as nx
import numpy as np
import pytest

import artlas
from artlas import kernels
from artlas.method import checkpoint

FILE = pathlib.Path(__file__).parent / "golden.npz"
BOTH = ["native", "twin"] if kernels.available() else ["twin"]


def graphs() -> artlas.Graphs:
    """Ten graphs that are the same everywhere, with two features a node."""
    made = [
        nx.path_graph(1),
        nx.path_graph(2),
        nx.path_graph(7),
        nx.cycle_graph(12),
        nx.star_graph(9),
        nx.complete_graph(8),
        nx.petersen_graph(),
        nx.grid_2d_graph(4, 6),
        nx.Graph(nx.karate_club_graph().edges),
        nx.barbell_graph(6, 4),
    ]
    plain = artlas.Graphs.from_networkx([nx.convert_node_labels_to_integers(g) for g in made])
    turns = np.arange(plain.num_nodes)
    return plain.with_features(np.stack([np.cos(turns), np.sin(3 * turns)], 1).astype(np.float32))


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("name", checkpoint.names())
def test_vectors_are_those_of_the_first_release(name, which):
    known, model = np.load(FILE), artlas.load(name)
    with kernels.use(which):
        q, H = (model.embed(graphs(), part).numpy() for part in ("coordinates", "features"))
    np.testing.assert_allclose(q, known[f"{name}-q"], atol=1e-5, rtol=0)
    scale = np.abs(known[f"{name}-H"]).max()
    np.testing.assert_allclose(H, known[f"{name}-H"], atol=1e-5 * max(scale, 1), rtol=0)


if __name__ == "__main__":
    answers = {}
    for name in checkpoint.names():
        model = artlas.load(name)
        answers[f"{name}-q"] = model.embed(graphs(), "coordinates").numpy()
        answers[f"{name}-H"] = model.embed(graphs(), "features").numpy()
    np.savez_compressed(FILE, **answers)
