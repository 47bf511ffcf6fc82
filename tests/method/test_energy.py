"""Closed forms of the energy against the four-index sum, in float64."""

import math
import warnings

import numpy as np
import oracle
import pytest
import torch
from cases import awkward, from_dense, oracle_graphs
from hypothesis import given
from hypothesis import strategies as st

from artlas import coverage
from artlas.graphs.measure import degree_measure, prepare_structure
from artlas.method.energy import independent_energy


def cases(seed=0, M=5):
    """(A, B, T) with feasible couplings of several sharpnesses."""
    gen = torch.Generator().manual_seed(seed)
    for A, mu in oracle_graphs(from_dense(awkward(np.random.default_rng(seed))[:7])):
        B = torch.rand(M, M, generator=gen, dtype=torch.float64)
        B = (B + B.T) / 2
        for spread in (0.1, 3.0):
            logits = spread * torch.randn(len(mu), M, generator=gen, dtype=torch.float64)
            yield A, B, oracle.round_to_polytope(oracle.coupling(logits, mu, 200), mu), mu


def test_closed_form_equals_the_four_index_sum():
    for A, B, T, _ in cases():
        exact = oracle.energy_four_index(A, B, T)
        assert abs(oracle.relational_energy(A, B, T) - exact) < 1e-12
        with warnings.catch_warnings():  # "Sparse CSR tensor support is in beta state"
            warnings.simplefilter("ignore", UserWarning)
            sparse = A.to_sparse_csr()
        assert abs(oracle.relational_energy(sparse, B, T) - exact) < 1e-12


def test_closed_form_holds_for_couplings_that_are_not_feasible():
    for A, B, T, _ in cases(1):
        uneven = T * torch.rand(T.shape, generator=torch.Generator().manual_seed(2))
        exact = oracle.energy_four_index(A, B, uneven)
        assert abs(oracle.relational_energy(A, B, uneven) - exact) < 1e-12


def test_fixed_coupling_decomposition():
    for A, B, T, _ in cases(2):
        parts = oracle.decompose_energy(A, B, T)
        assert abs(parts.distance + parts.variance - oracle.energy_four_index(A, B, T)) < 1e-12
        assert parts.variance > -1e-14
        # A base that equals the carried relation leaves the variance alone.
        nu = T.sum(0)
        carried = T.T @ A @ T / (nu[:, None] * nu)
        assert abs(oracle.relational_energy(A, carried, T) - parts.variance) < 1e-12


def test_sparse_identities():
    graphs = from_dense(awkward(np.random.default_rng(3)))
    structure = prepare_structure(graphs, 1e-8, dtype=torch.float64)
    for g, (A, mu) in enumerate(oracle_graphs(graphs)):
        assert abs(structure.self_energy[g] - mu @ (A**2) @ mu) < 1e-14
        first, last = graphs.node_ptr[g], graphs.node_ptr[g + 1]
        T = torch.rand(len(mu), 4, dtype=torch.float64)
        padded = torch.zeros(graphs.num_nodes, 4, dtype=torch.float64)
        padded[first:last] = T
        assert (structure.adjacency.multiply(padded)[first:last] - A @ T).abs().max() < 1e-14


def test_independent_energy_is_that_of_the_product_coupling():
    graphs = from_dense(awkward(np.random.default_rng(4)))
    structure = prepare_structure(graphs, 1e-8, dtype=torch.float64)
    B = torch.rand(3, 6, 6, dtype=torch.float64)
    B = (B + B.transpose(1, 2)) / 2
    found = independent_energy(structure, B)
    for g, (A, mu) in enumerate(oracle_graphs(graphs)):
        T = torch.outer(mu, torch.full((6,), 1 / 6, dtype=torch.float64))
        for k in range(3):
            assert abs(found[g, k] - oracle.relational_energy(A, B[k], T)) < 1e-12


def test_degree_measure():
    graphs = from_dense(awkward(np.random.default_rng(5)))
    measures = degree_measure(graphs, 1e-8).split(graphs.sizes.tolist())
    assert measures[0].tolist() == [1.0]
    assert torch.allclose(measures[1], torch.full((6,), 1 / 6, dtype=torch.float64), atol=1e-15)
    for (A, _), mu in zip(oracle_graphs(graphs), measures, strict=True):
        degree = A.sum(1) + 1e-8
        assert (mu - degree / degree.sum()).abs().max() < 1e-15
        assert mu.min() > 0


energy_rows = st.lists(st.floats(0, 2), min_size=1, max_size=20)


@given(energy_rows, st.sampled_from([1e-3, 0.1, 5.0]))
def test_coverage_lies_between_its_bounds(row, temperature):
    e = torch.tensor([row], dtype=torch.float64)
    value = coverage(e, temperature).item()
    assert min(row) - 1e-12 <= value <= min(row) + temperature * math.log(len(row)) + 1e-12


@given(energy_rows, st.integers(0, 2**31))
def test_coverage_is_the_minimum_of_its_variational_form(row, seed):
    tau, e = 0.1, torch.tensor(row, dtype=torch.float64)
    K = len(row)

    def objective(rho):
        return (rho * e).sum() + tau * torch.special.xlogy(rho, K * rho).sum()

    best = torch.softmax(-e / tau, 0)
    value = coverage(e[None], tau)[0]
    assert abs(objective(best) - value) < 1e-12
    other = torch.rand(K, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert objective(other / other.sum()) >= value - 1e-12


def test_coverage_refuses_a_temperature_that_is_not_positive():
    with pytest.raises(ValueError, match="must be positive, got 0"):
        coverage(torch.rand(2, 3), 0)
