"""Couplings have the right marginals for any logits, and converge to the Sinkhorn limit."""

import numpy as np
import pytest
import torch
from cases import awkward, dense_graphs, from_dense, oracle_graphs, sharpened
from hypothesis import given, settings
from hypothesis import strategies as st

from artlas import ArtConfig, kernels
from artlas.graphs.measure import prepare_structure


def marginal_error(T, mu):
    rows = (T.double().sum(2) - mu).abs().max()
    columns = (T.double().sum(1) - 1 / T.shape[2]).abs().max()
    return max(rows, columns)


def solve(graphs, logits, steps=20):
    """Couplings [1, n, M] of one graph for given logits [n, M]."""
    M = logits.shape[1]
    structure = prepare_structure(graphs, 1e-8, dtype=logits.dtype)
    eye = torch.eye(M, dtype=logits.dtype)[None]
    options = {"scale": 1.0, "clamp": None, "steps": steps}
    return kernels.on(logits).couplings(logits, eye, structure, **options)[0]


@pytest.mark.parametrize("which", ["native", "twin"])
@pytest.mark.parametrize(
    "kind", ["plus and minus a thousand", "constant", "wide", "one entry", "column of -1e3"]
)
def test_marginals_hold_for_any_logits(which, kind):
    if which == "native" and not kernels.available():
        pytest.skip("no compiled kernels in this install")
    gen = torch.Generator().manual_seed(0)
    for matrix in awkward(np.random.default_rng(0)):
        graphs = from_dense([matrix])
        n = len(matrix)
        logits = {
            "plus and minus a thousand": 1e3 * torch.sign(torch.randn(n, 32, generator=gen)),
            "constant": torch.full((n, 32), 7.0),
            "wide": 100 * torch.randn(n, 32, generator=gen),
            "one entry": torch.zeros(n, 32).index_fill(0, torch.tensor([0]), 500.0),
            "column of -1e3": torch.zeros(n, 32).index_fill(1, torch.tensor([3]), -1e3),
        }[kind]
        ((_, mu),) = oracle_graphs(graphs)
        with kernels.use(which):
            T = solve(graphs, logits)
        assert torch.isfinite(T).all()
        assert T.min() >= 0
        assert marginal_error(T, mu) < 1e-6
        if kind == "constant":
            assert (T[0] - mu[:, None] / 32).abs().max() < 1e-7


@settings(max_examples=100, deadline=None)
@given(dense_graphs(), st.floats(0.01, 200))
def test_marginals_of_the_model(matrix, factor):
    graphs = from_dense([matrix])
    a = sharpened(ArtConfig(bases=3), factor).align(graphs)
    ((_, mu),) = oracle_graphs(graphs)
    assert a.residuals.max() < 1e-6
    error = marginal_error(a.couplings(0), mu)
    assert error < 1e-6
    assert abs(error - a.residuals.max()) < 2e-7  # the residual reported is the one there is


def test_many_iterations_reach_the_limit_that_pot_finds():
    ot = pytest.importorskip("ot", reason="POT is the oracle here")
    gen = torch.Generator().manual_seed(1)
    for matrix in awkward(np.random.default_rng(1)):
        graphs = from_dense([matrix])
        ((_, mu),) = oracle_graphs(graphs)
        logits = 2 * torch.randn(len(mu), 16, generator=gen, dtype=torch.float64)
        limit = ot.bregman.sinkhorn_log(
            mu.numpy(),
            np.full(16, 1 / 16),
            -logits.numpy(),
            reg=1.0,
            stopThr=1e-14,
            numItermax=50_000,
        )
        assert np.abs(solve(graphs, logits, 3000)[0].numpy() - limit).max() < 1e-10
        assert np.abs(solve(graphs, logits.float(), 3000)[0].numpy() - limit).max() < 1e-6
