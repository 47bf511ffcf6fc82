"""waves against their dense formula."""

from __future__ import annotations

import numpy as np
import pytest
from blocks import block_oracle
from blocks.block_graphs import FEATURES, blocks_of, collection, described, each_kind, matrices
from cases import dense_graphs, from_dense, star
from hypothesis import given, settings
from hypothesis import strategies as st

from artlas import kernels
from artlas.blocks import embed, twin
from artlas.blocks.config import WAVES


def check(A, X, found, g=0, D=None):
    """Compare the waves of graph g of ``found`` with the oracle."""
    D = block_oracle.descriptors(A) if D is None else D
    mean, tolerance = block_oracle.waves(A, D, X)
    np.testing.assert_allclose(found["waves"][g], mean, rtol=0, atol=tolerance)


@each_kind()
def test_every_kind_of_graph_and_of_features(kind, which):
    graphs = collection(kind)
    with kernels.use(which):
        found = blocks_of(embed(graphs))
    for g, (A, D) in enumerate(zip(matrices(), described(), strict=True)):
        check(A, None if graphs.x is None else graphs[g].x.numpy(), found, g, D)


@settings(max_examples=25, deadline=None)
@given(dense_graphs(), st.sampled_from(list(FEATURES)), st.integers(0, 2**31))
def test_any_small_graph(A, kind, seed):
    graphs = collection(kind, [A], seed)
    check(A, None if graphs.x is None else graphs.x.numpy(), blocks_of(embed(graphs)))


def test_means_at_a_hub_keep_their_digits():
    """Every leaf sees the hub's mean over all leaves: float32 would round it 3,000 times."""
    A, x = star(3000), np.full((3001, 1), 1.1, dtype=np.float32)
    degree = A.sum(1)
    graphs = from_dense([A], x=x)
    found = blocks_of(embed(graphs))["waves"][0]
    D = np.zeros((2, 9))  # hub and leaf
    D[:, 0] = np.log1p(degree[[0, 1]])
    D[:, 1] = np.log1p([1, 3000])
    D[:, 2] = np.log1p([3000, 3000])
    D[:, 5] = np.log(2)
    D[:, 6] = [1, 1 / 3000]
    D[:, 8] = [1, 1 / 3000]
    V = np.column_stack([D, np.full((2, 1), np.log2(1 + np.float64(np.float32(1.1))))])
    H = np.column_stack([V, V[::-1], V])
    Omega = 2 * np.pi * np.concatenate([twin.frequencies(10, hop) for hop in range(3)])
    hub, leaf = np.cos(H @ Omega + 2 * np.pi * twin.phases())
    np.testing.assert_allclose(found, (hub + 3000 * leaf) / 3001, rtol=0, atol=5e-5)


@pytest.mark.parametrize("hop", range(3))
def test_frequencies_are_near_normal_and_scaled(hop):
    turns = twin.frequencies(1500, hop)
    assert turns.shape == (1500, WAVES)
    z = turns[9:] * 2 * np.pi / 2.0
    assert z.mean() == pytest.approx(0, abs=5e-3)
    assert z.std() == pytest.approx(1, abs=5e-3)
    assert (z**4).mean() == pytest.approx(3 - 1.2 / 4, abs=0.02)  # of a sum of four uniform ones
    correlation = z.T @ z / len(z) - np.eye(WAVES)
    assert np.abs(correlation).max() < 7 / len(z) ** 0.5
    spread = np.array([0.5, 0.5, 0.7, 0.7, 0.3, 0.4, 0.3, 0.15, 0.2])
    np.testing.assert_allclose(turns[:9].std(1) * 2 * np.pi * spread / 0.3, 1, atol=0.2)


def test_frequencies_of_hops_and_of_columns_differ_and_do_not_depend_on_the_width():
    all_hops = np.stack([twin.frequencies(12, hop) for hop in range(3)])
    assert len(np.unique(all_hops)) > 0.95 * all_hops.size
    np.testing.assert_array_equal(twin.frequencies(40, 1)[:12], all_hops[1])
    phases = twin.phases()
    assert len(np.unique(phases)) == WAVES
    assert phases.min() >= 0
    assert phases.max() < 1
    assert phases.mean() == pytest.approx(0.5, abs=0.06)


def test_waves_of_single_nodes_approximate_a_gaussian_kernel():
    """Random Fourier features: the mean of products is half the kernel of the differences."""
    x = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32) / 4
    graphs = from_dense([np.zeros((1, 1))] * 12, x=x)
    waves = blocks_of(embed(graphs))["waves"]
    values = np.sign(x) * np.log2(1 + np.abs(x)) / np.sqrt(3)
    squares = ((values[:, None] - values[None]) ** 2).sum(2)
    expected = np.exp(-(2.0**2) * squares / 2) / 2  # a node without neighbours has one hop
    np.testing.assert_allclose(waves @ waves.T / WAVES, expected, atol=0.2)
    assert np.corrcoef((waves @ waves.T).ravel(), expected.ravel())[0, 1] > 0.8
