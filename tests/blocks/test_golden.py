"""Ten graphs whose vectors of blocks no release may change unnoticed.

``python tests/blocks/test_golden.py`` writes the file anew: only when the vector is meant to
change, which makes all vectors that users have stored useless beside new ones. Raise
``artlas.blocks.VERSION`` then.
"""

from __future__ import annotations

import pathlib

import networkx as nx
import numpy as np
import pytest

import artlas
from artlas import kernels
from artlas.blocks import VERSION, embed, layout

FILE = pathlib.Path(__file__).parent / "golden.npz"
BOTH = ["native", "twin"] if kernels.available() else ["twin"]
KINDS = ("none", "coded", "real")


def graphs(kind: str) -> artlas.Graphs:
    """Ten graphs that are the same everywhere, with features of a kind."""
    made = [
        nx.path_graph(1),
        nx.path_graph(2),
        nx.empty_graph(3),
        nx.cycle_graph(20),
        nx.star_graph(9),
        nx.complete_graph(8),
        nx.petersen_graph(),
        nx.grid_2d_graph(4, 6),
        nx.Graph(nx.karate_club_graph().edges),
        nx.barbell_graph(6, 4),
    ]
    plain = artlas.Graphs.from_networkx([nx.convert_node_labels_to_integers(g) for g in made])
    i = np.arange(plain.num_nodes)
    x = {
        "none": None,
        "coded": np.stack([i % 5, i * 7 % 11, i % 2], 1),
        "real": np.stack([(i * 37 % 64 - 31) / 16, (i * 11 % 32) * 1000.0], 1),
    }[kind]
    return plain.with_features(x)


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("preset", ["full", "compact"])
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_those_of_the_first_release(kind, preset, which):
    """To rounding, as the last bit of a logarithm is the C library's."""
    made = graphs(kind)
    with np.load(FILE) as file:
        known = file[f"{kind}-{preset}"]
    with kernels.use(which):
        found = embed(made, preset).numpy()
    assert found.shape == known.shape
    for name, columns in layout(preset):
        loose = 2e-5 if name == "waves" else 1e-6
        projected = 10 if preset == "compact" else 1
        np.testing.assert_allclose(
            found[:, columns], known[:, columns], atol=loose * projected, rtol=1e-6, err_msg=name
        )


def test_the_file_is_of_this_version_of_the_vector():
    with np.load(FILE) as file:
        assert file["version"] == VERSION


if __name__ == "__main__":
    answers = {"version": np.array(VERSION)}
    for kind in KINDS:
        for preset in ("full", "compact"):
            answers[f"{kind}-{preset}"] = embed(graphs(kind), preset).numpy()
    np.savez_compressed(FILE, **answers)
