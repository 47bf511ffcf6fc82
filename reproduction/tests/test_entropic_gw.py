"""The entropic solver: feasible, a fixed point, the same from every start, POT's."""

from __future__ import annotations

import numpy as np
import pytest
from cases import from_dense, random_dense

import artlas
from artlas.graphs.measure import degree_measure
from artlas.gw import solver
from artlas.method import refinement
from artlas_paper import entropic_gw

ot = pytest.importorskip("ot")


@pytest.fixture(scope="module")
def model():
    return artlas.ART(artlas.ArtConfig(bases=3, roles=5, hidden=8))


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    return from_dense([random_dense(n, 0.4, rng) for n in (9, 14, 5)])


@pytest.mark.slow
def test_it_is_pots_projected_gradient(model, graphs):
    relations = model.atlas.relations().detach().double().numpy()
    start = solver.product_start(relations, model.config.measure_epsilon)
    energies, couplings = entropic_gw.solve(model, graphs, start)
    for g, graph in enumerate(graphs):
        mu = degree_measure(graph, model.config.measure_epsilon).double().numpy()
        mu /= mu.sum()
        for k, relation in enumerate(relations):
            theirs = ot.gromov.entropic_gromov_wasserstein(
                graph.to_scipy(0).toarray().astype(float),
                relation,
                mu,
                np.full(5, 0.2),
                "square_loss",
                epsilon=entropic_gw.EPSILON,
                symmetric=True,
                max_iter=500,
                tol=1e-12,
                numItermax=2000,
                stopThr=1e-14,
            )
            np.testing.assert_allclose(couplings[g][k], theirs, atol=1e-6)
            np.testing.assert_allclose(couplings[g][k].sum(1), mu, atol=1e-8)
            np.testing.assert_allclose(couplings[g][k].sum(0), 0.2, atol=1e-8)
            a = graph.to_scipy(0).toarray()
            t, cost = theirs, 0.0
            for i in range(len(a)):
                for j in range(len(a)):
                    gap = (a[i, j] - relation) ** 2
                    cost += t[i] @ gap @ t[j]
            assert energies[g, k] == pytest.approx(cost, abs=1e-6)


@pytest.mark.slow
def test_a_strong_one_has_one_fixed_point_and_a_weak_one_lower_energies(model, graphs):
    starts = [start for start, _ in refinement.reference_starts(model).values()]
    strong = [entropic_gw.solve(model, graphs, start, epsilon=0.5)[0] for start in starts]
    for other in strong[1:]:
        np.testing.assert_allclose(other, strong[0], atol=1e-6)
    weak, _ = entropic_gw.reference(model, graphs, steps=20, epsilon=0.1)
    assert (weak <= strong[0] + 1e-9).all()


def test_nonpositive_strengths_are_refused(model, graphs):
    with pytest.raises(ValueError, match="epsilon must be positive"):
        entropic_gw.reference(model, graphs, epsilon=0.0)
