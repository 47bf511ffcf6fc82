"""Sparse products against dense ones, with the gradients of both factors."""

from __future__ import annotations

import pytest
import torch

from artlas_paper.methods.sparse_matmul import SparsePattern, sampled_products, sum_segments


@pytest.fixture
def matrix():
    torch.manual_seed(0)
    there = torch.rand(7, 5) < 0.4
    there[2], there[:, 3] = False, False  # an empty row and an empty column
    row, col = there.nonzero(as_tuple=True)
    ends = torch.bincount(row, minlength=7).cumsum(0)
    return SparsePattern(torch.cat([ends.new_zeros(1), ends]), col, 5), row, col


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_and_gradients_are_dense_ones(matrix, transposed, dtype):
    pattern, row, col = matrix
    weights = torch.randn(len(col), dtype=dtype, requires_grad=True)
    values = torch.randn(7 if transposed else 5, 3, dtype=dtype, requires_grad=True)
    dense = torch.zeros(7, 5, dtype=dtype).index_put((row, col), weights)
    found = (pattern.transposed_matmul if transposed else pattern.matmul)(weights, values)
    wanted = (dense.T if transposed else dense) @ values
    torch.testing.assert_close(found, wanted)
    grad = torch.randn_like(found)
    torch.testing.assert_close(
        torch.autograd.grad(found, (weights, values), grad),
        torch.autograd.grad(wanted, (weights, values), grad),
    )


def test_products_of_rows_at_entries(matrix):
    pattern, row, col = matrix
    q, u = torch.randn(7, 3), torch.randn(5, 3)
    found = sampled_products(q, u, pattern.row_ptr, pattern.col)
    torch.testing.assert_close(found, (q @ u.T)[row, col])


def test_no_entries_at_all():
    none = torch.zeros(0, dtype=torch.int64)
    made = sum_segments(torch.randn(3, 2), torch.zeros(5, dtype=torch.int64), none, torch.zeros(0))
    assert torch.equal(made, torch.zeros(4, 2))
