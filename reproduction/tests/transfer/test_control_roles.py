"""Roles that nobody learnt: balanced, and without effect where they say nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import awkward, from_dense

from artlas.method import z_plus
from artlas.method.batching import GraphBatch
from artlas_paper.transfer import control_roles


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    made = from_dense(awkward(rng))
    return made.with_features(rng.normal(size=(made.num_nodes, 2)))


@pytest.mark.parametrize(("size", "count"), [(1, 4), (3, 4), (4, 4), (10, 4), (37, 32)])
def test_equal_mass(size, count):
    shares = control_roles.equal_mass(size, count)
    np.testing.assert_allclose(shares.sum(1), 1)
    np.testing.assert_allclose(shares.sum(0), size / count)
    assert (shares >= 0).all()


def test_random_roles_are_balanced_and_repeatable(graphs):
    first = control_roles.random_balanced(graphs, 4)
    assert torch.equal(first, control_roles.random_balanced(graphs, 4))
    assert not torch.equal(first, control_roles.random_balanced(graphs, 4, seed=1))
    for part, size in zip(first.split(graphs.sizes.tolist()), graphs.sizes.tolist(), strict=True):
        torch.testing.assert_close(part.sum(0), torch.full((4,), size / 4))
    largest = first.split(graphs.sizes.tolist())[-1]
    assert not torch.equal(largest, torch.from_numpy(control_roles.equal_mass(33, 4)).float())


def test_independent_roles_are_no_roles(graphs):
    pool = control_roles.pool_by(control_roles.independent(graphs, 3))
    batch = GraphBatch(graphs)
    by_role = z_plus.vector(batch, pool(graphs, z_plus.node_values(batch)))
    by_role = by_role.view(len(graphs), 4, 3, 2)
    none = z_plus.without_roles(batch).view(len(graphs), 4, 1, 2)
    torch.testing.assert_close(by_role, none.expand_as(by_role), atol=1e-4, rtol=1e-4)
