"""The Weisfeiler-Lehman kernel as vectors."""

from __future__ import annotations

import numpy as np
import pytest

import artlas
from artlas_paper.transfer.controls import wl_kernel


def test_wl_vectors_have_the_products_of_the_kernel():
    """Two copies of a path and a triangle: equal graphs coincide, and norms are one."""
    path, triangle = [[0, 1, 1, 2], [1, 0, 2, 1]], [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]
    graphs = artlas.Graphs.from_edges([(3, path), (3, triangle), (3, path)])
    vectors = wl_kernel(graphs)
    products = vectors @ vectors.T
    np.testing.assert_allclose(np.diag(products), 1, atol=1e-6)
    assert products[0, 2] == pytest.approx(1, abs=1e-6)
    assert products[0, 1] < 0.9
