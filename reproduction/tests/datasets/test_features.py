"""Features as the paper and the released code prepare them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from artlas import Graphs
from artlas_paper.datasets import features
from artlas_paper.datasets.registry import DatasetError

STAR = (4, np.array([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]]))


def star(x=None):
    return Graphs.from_edges([STAR, (1, [])], x=x)


def test_padding_keeps_the_features_and_adds_zeros():
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    padded = features.paper_features(star(x)).x
    assert padded.shape == (5, 56)
    assert padded.dtype == torch.float32
    assert np.array_equal(padded[:, :3], x)
    assert not padded[:, 3:].any()


def test_a_constant_stands_in_for_absent_features():
    padded = features.paper_features(star()).x
    assert padded.shape == (5, 56)
    assert (padded[:, 0] == 1).all()
    assert not padded[:, 1:].any()


def test_width_56_fits_and_57_does_not():
    x = np.random.default_rng(0).normal(size=(5, 57)).astype(np.float32)
    assert np.array_equal(features.paper_features(star(x[:, :56])).x, x[:, :56])
    with pytest.raises(DatasetError, match="57 for 56"):
        features.paper_features(star(x))


def test_the_graphs_themselves_do_not_change():
    given = star(np.ones((5, 2)))
    padded = features.paper_features(given)
    assert given.x.shape == (5, 2)
    assert torch.equal(padded.col, given.col)


def test_released_features_are_native_or_relative_degree():
    x = np.random.default_rng(0).normal(size=(5, 57)).astype(np.float32)
    assert np.array_equal(features.released_features(star(x)).x, x)
    degree = features.released_features(star()).x
    assert np.allclose(degree[:, 0], [1, 1 / 3, 1 / 3, 1 / 3, 0])


@pytest.mark.parametrize("width", [1, 256, 300])
def test_projection_is_one_gaussian_matrix_whatever_the_width(width):
    x = torch.randn(50, width, generator=torch.Generator().manual_seed(1))
    gauss = torch.randn(width, 256, generator=torch.Generator().manual_seed(42)) / 16
    torch.testing.assert_close(features.project(x), x @ gauss, rtol=1e-5, atol=1e-5)


def test_projection_in_blocks_is_the_projection_of_the_whole(monkeypatch):
    x = torch.randn(50, 7, generator=torch.Generator().manual_seed(1))
    whole = features.project(x)
    monkeypatch.setattr(features, "BLOCK", 8)
    torch.testing.assert_close(features.project(x), whole, rtol=1e-6, atol=1e-6)


def test_projection_keeps_lengths_on_average():
    x = torch.randn(20, 1000, generator=torch.Generator().manual_seed(1))
    ratio = (features.project(x).norm(dim=1) / x.norm(dim=1)).mean()
    assert abs(float(ratio) - 1) < 0.05
    assert not torch.equal(features.project(x, seed=1), features.project(x))
