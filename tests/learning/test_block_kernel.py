"""The block kernel: its definition, and that only training rows shape it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from learning.block_data import BLOCKS, vectors

from artlas.blocks import Layout
from artlas.learning import block_kernel
from artlas.learning.block_kernel import BlockKernel

LAYOUT = Layout.of_widths(BLOCKS)


def plain(train, rows, widths, weights):
    """Compute the kernel from its definition, in float64."""
    train, rows = train.astype(np.float64), rows.astype(np.float64)
    total, start = np.zeros((len(rows), len(train))), 0
    for width, weight in zip(widths, weights, strict=True):
        columns = slice(start, start + width)
        start += width
        mean, deviation = train[:, columns].mean(0), train[:, columns].std(0)
        a, b = (train[:, columns] - mean) / deviation, (rows[:, columns] - mean) / deviation
        pairs = ((a[:, None] - a) ** 2).sum(2)[np.triu_indices(len(a), 1)]
        median = np.sort(pairs)[(len(pairs) - 1) // 2]
        total += weight * np.exp(-((b[:, None] - a) ** 2).sum(2) / median)
    return total


@pytest.mark.parametrize(("weights", "shares"), [(None, (0.5, 0.5)), ({"noise": 3}, (0.25, 0.75))])
def test_it_is_the_kernel_of_the_definition(weights, shares):
    X, _ = vectors(60)
    kernel = BlockKernel.fit(torch.from_numpy(X[:40]), LAYOUT, weights)
    wanted = plain(X[:40], X, (4, 7), shares)
    np.testing.assert_allclose(kernel.cross(torch.from_numpy(X)), wanted, atol=2e-6)
    np.testing.assert_allclose(kernel.gram(), wanted[:40], atol=2e-6)


def test_the_gram_is_symmetric_with_a_diagonal_of_one(monkeypatch):
    monkeypatch.setattr(block_kernel, "_CHUNK", 16)
    X, _ = vectors(50)
    kernel = BlockKernel.fit(torch.from_numpy(X), LAYOUT)
    gram = kernel.gram()
    assert torch.equal(gram, gram.T)
    assert (gram.diagonal() == 1).all()
    np.testing.assert_allclose(gram, plain(X, X, (4, 7), (0.5, 0.5)), atol=2e-6)


def test_blocks_terms_sum_to_the_kernel():
    X, _ = vectors(30)
    kernel = BlockKernel.fit(torch.from_numpy(X), LAYOUT)
    terms = dict(kernel.by_block(kernel.scaled(torch.from_numpy(X))))
    assert list(terms) == ["shape", "noise"]
    np.testing.assert_allclose(sum(terms.values()), kernel.cross(torch.from_numpy(X)), atol=1e-6)


def test_constant_columns_and_blocks_are_dropped():
    X, _ = vectors(30)
    more = np.insert(X, [4, 4, 11], [[3.0, 0.1, 7.0]] * 30, axis=1).astype(np.float32)
    layout = Layout.of_widths({"shape": 4, "flat": 2, "none": 0, "noise": 8})
    kernel = BlockKernel.fit(torch.from_numpy(more), layout)
    without = BlockKernel.fit(torch.from_numpy(X), LAYOUT)
    assert kernel.names == ("shape", "noise")
    assert kernel.columns.tolist() == [0, 1, 2, 3, *range(6, 13)]
    assert torch.equal(kernel.gram(), without.gram())
    other = torch.from_numpy(more + np.float32(1) * (np.arange(14) == 4))  # a constant that moved
    assert torch.equal(kernel.cross(other), kernel.cross(torch.from_numpy(more)))


def test_a_block_of_weight_zero_is_left_out():
    X, _ = vectors(30)
    kernel = BlockKernel.fit(torch.from_numpy(X), LAYOUT, {"noise": 0})
    alone = BlockKernel.fit(torch.from_numpy(X[:, :4].copy()), Layout.of_widths({"shape": 4}))
    assert kernel.names == ("shape",)
    assert torch.equal(kernel.gram(), alone.gram())


def test_rows_that_are_all_equal_have_no_kernel():
    kernel = BlockKernel.fit(torch.ones(5, 11), LAYOUT)
    assert kernel.names == ()
    assert (kernel.gram() == 0).all()
    assert (kernel.cross(torch.randn(3, 11)) == 0).all()


def test_a_block_with_most_rows_equal_keeps_a_bandwidth():
    """The median of its squared distances is zero, their mean twice the number of columns."""
    rows = torch.zeros(50, 11)
    rows[:5] = torch.randn(5, 11, generator=torch.Generator().manual_seed(0))
    kernel = BlockKernel.fit(rows, LAYOUT)
    spread = rows.double().std(0, correction=0)
    wanted = 1 / (spread * torch.tensor([8.0] * 4 + [14.0] * 7).double().sqrt())
    np.testing.assert_allclose(kernel.scale, wanted)
    assert kernel.gram().isfinite().all()


def test_float64_columns_keep_differences_that_float32_lacks():
    rows = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)).double()
    layout = Layout.of_widths({"all": 3})
    kernel, moved = BlockKernel.fit(rows, layout), BlockKernel.fit(rows + 1e9, layout)
    np.testing.assert_allclose(moved.gram(), kernel.gram(), atol=1e-5)


@pytest.mark.parametrize("far", [1e10, 1e38])
def test_rows_far_away_have_kernel_zero(far):
    X, _ = vectors(40)
    kernel = BlockKernel.fit(torch.from_numpy(X), LAYOUT)
    rows = torch.full((2, 11), far)
    rows[1] *= -1
    assert (kernel.cross(rows) == 0).all()


def test_a_row_is_compared_alone_as_in_any_batch():
    X, _ = vectors(700)
    rows = torch.from_numpy(X)
    kernel = BlockKernel.fit(rows[:100], LAYOUT)
    whole = kernel.cross(rows)
    alone = torch.cat([kernel.cross(rows[i : i + 1]) for i in range(0, 700, 50)])
    np.testing.assert_allclose(alone, whole[::50], atol=1e-6)


def test_many_rows_take_the_bandwidth_of_the_same_sample(monkeypatch):
    monkeypatch.setattr(block_kernel, "SAMPLE", 25)
    X, _ = vectors(100)
    rows = torch.from_numpy(X)
    kernel = BlockKernel.fit(rows, LAYOUT)
    assert torch.equal(kernel.scale, BlockKernel.fit(rows, LAYOUT).scale)
    values = (X.astype(np.float64) - X.mean(0, dtype=np.float64)) / X.std(0, dtype=np.float64)
    sample = values[block_kernel.spread_out(100, 25), :4]
    pairs = ((sample[:, None] - sample) ** 2).sum(2)[np.triu_indices(25, 1)]
    wanted = 1 / (X.std(0, dtype=np.float64)[:4] * np.sqrt(np.median(pairs)))
    np.testing.assert_allclose(kernel.scale[:4], wanted, rtol=5e-3)


def test_a_sample_is_spread_over_all_rows():
    chosen = block_kernel.spread_out(10_000, 1000)
    assert len(chosen.unique()) == 1000
    assert (chosen.diff() > 0).all()
    assert torch.histc(chosen.float(), 4, 0, 10_000).min() > 200
    assert block_kernel.spread_out(7, 1000).tolist() == list(range(7))
