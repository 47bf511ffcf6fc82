"""Lower bounds of energies against the third lower bound by POT, and against exact optima."""

import networkx as nx
import numpy as np
import pytest
from cases import awkward, from_dense, oracle_graphs
from exact_gw import least_energy_bound, minimal_energy

import artlas
from artlas.gw import bounds
from artlas.method.config import UNIFORM


def bases(count, roles, rng, low=0.0):
    drawn = rng.uniform(low, 1, (count, roles, roles))
    return (drawn + drawn.transpose(0, 2, 1)) / 2


@pytest.mark.parametrize("epsilon", [1e-8, UNIFORM])
def test_bounds_equal_those_that_pot_computes(epsilon):
    pytest.importorskip("ot", reason="POT is the oracle here")
    rng = np.random.default_rng(0)
    graphs, relations = from_dense(awkward(rng)), bases(3, 7, rng, -1)
    found = bounds.energy_bounds(graphs, relations, epsilon)
    structures = [(A.numpy(), mu.numpy()) for A, mu in oracle_graphs(graphs, epsilon)]
    nu = np.full(7, 1 / 7)
    for g, first in enumerate(structures):
        for k, B in enumerate(relations):
            assert found[g, k] == pytest.approx(least_energy_bound(first, (B, nu)), abs=1e-7)
    pairs = [(i, j) for i in range(len(graphs)) for j in range(i)]
    between = bounds.discrepancy_bounds(graphs, pairs, epsilon)
    for (i, j), d in zip(pairs, between, strict=True):
        wanted = least_energy_bound(structures[i], structures[j])
        assert d**2 == pytest.approx(wanted, abs=1e-9)


@pytest.mark.slow
def test_bounds_are_below_the_exact_optimum_and_often_near_it():
    rng, near = np.random.default_rng(1), []
    for _ in range(20):
        sizes = 4, int(rng.integers(1, 4))
        pair = artlas.Graphs.from_networkx(
            [nx.gnp_random_graph(n, 0.6, seed=int(rng.integers(1e6))) for n in sizes]
        )
        relation = bases(1, 3, rng)
        one, other = ((A.numpy(), mu.numpy()) for A, mu in oracle_graphs(pair))
        exact = minimal_energy(one, (relation[0], np.full(3, 1 / 3)))
        found = bounds.energy_bounds(pair, relation)[0, 0]
        assert found <= exact + 1e-9
        near.append(found / exact)
        between = bounds.discrepancy_bounds(pair, [(0, 1)])[0]
        assert between**2 <= minimal_energy(one, other) + 1e-9
    assert np.mean(near) > 0.6


def test_inexact_potentials_still_give_a_lower_bound(monkeypatch):
    """Where the linear program is not solved, the bound is lower, not wrong."""
    rng = np.random.default_rng(2)
    graphs, relations = from_dense(awkward(rng)), bases(2, 5, rng)
    solved = bounds.energy_bounds(graphs, relations)

    class Failed:
        status = 4

    monkeypatch.setattr("scipy.optimize.linprog", lambda *args, **options: Failed)
    unsolved = bounds.energy_bounds(graphs, relations)
    assert (unsolved <= solved + 1e-9).all()
    assert (unsolved < solved - 1e-3).any()
