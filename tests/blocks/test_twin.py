"""Compiled code and its NumPy twin write the same vectors, to rounding; colours by the bucket."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from blocks.block_graphs import (
    FEATURES,
    blocks_of,
    collection,
    dense,
    matrices,
    needs_native,
    sparse_graph,
)
from cases import dense_graphs, from_dense, random_dense
from hypothesis import given, settings
from hypothesis import strategies as st

from artlas import Graphs, kernels
from artlas.blocks import VectorConfig, embed

pytestmark = needs_native


def check(graphs, preset="full", waves=3e-5):
    with kernels.use("twin"):
        twin = blocks_of(embed(graphs, preset), preset)
    found = blocks_of(embed(graphs, preset), preset)
    for name, block in found.items():
        atol = waves if name == "waves" else 1e-6
        np.testing.assert_allclose(block, twin[name], rtol=1e-6, atol=atol, err_msg=name)
    return found


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in ("none", "wide") else [pytest.mark.slow])
        for kind in FEATURES
        if kind != "huge"
    ],
)
def test_every_kind_of_graph_and_of_features(kind):
    check(collection(kind))


def test_huge_features_of_one_sign():
    """Where no terms cancel, sums agree to rounding; angles of many turns keep fewer digits."""
    parts = matrices()
    x = np.random.default_rng(0).choice([1e20, 3.4e38], (sum(map(len, parts)), 2))
    check(from_dense(parts, x=x), waves=1e-3)


@settings(max_examples=25, deadline=None)
@given(
    dense_graphs(),
    st.sampled_from(["none", "coded", "mixed"]),
    st.integers(1, 5),
    st.sampled_from([1, 3, 512]),
    st.integers(0, 2**31),
)
def test_any_small_graph_and_any_settings(A, kind, rounds, buckets, seed):
    check(collection(kind, [A], seed), VectorConfig(rounds, buckets))


def test_molecules():
    pytest.importorskip("rdkit", reason="SMILES need RDKit")
    found = check(Graphs.from_smiles(["CCO", "c1ccccc1C(=O)[O-]", "[Na+].[Cl-]", "C", "C#N"]))
    assert np.count_nonzero(found["shapes_0"][1]) >= 3  # C, =O, O-: by coded fields


@pytest.mark.slow
@pytest.mark.parametrize("features", [0, 3])
def test_larger_graphs(features):
    rng = np.random.default_rng(0)
    parts = [
        dense(nx.barabasi_albert_graph(3000, 3, seed=1)),
        random_dense(1024, 0.3, rng),
        random_dense(1025, 0.3, rng),
        dense(nx.grid_2d_graph(50, 41)),
    ]
    x = rng.normal(size=(sum(map(len, parts)), features)) if features else None
    check(from_dense(parts, x=x))


@pytest.mark.slow
def test_a_graph_that_gets_all_threads():
    check(sparse_graph(1 << 16, 4))
