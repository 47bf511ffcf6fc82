"""Edges to rows: the compiled way against SciPy's, whatever the order, direction and threads."""

import numpy as np
import pytest
import torch

from artlas import kernels
from artlas.entrance import _rows_slowly

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiled kernels here")


def compiled(ends, nodes):
    return kernels.native_data().rows(np.ascontiguousarray(ends, dtype=np.int32), nodes)


def assert_equal(found, wanted):
    np.testing.assert_array_equal(found.row_ptr, wanted.row_ptr)
    np.testing.assert_array_equal(found.col, wanted.col)
    for name in ("loops", "duplicates", "one_way"):
        assert getattr(found, name) == getattr(wanted, name), name


@pytest.mark.parametrize("nodes", [1, 2, 7, 65_535, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("density", [0.0, 0.5, 6.0])
def test_rows_equal_those_of_scipy(nodes, density):
    rng = np.random.default_rng(nodes)
    ends = rng.integers(0, nodes, (2, int(density * nodes)), dtype=np.int32)
    both = np.concatenate([ends, ends[::-1, : ends.shape[1] // 2]], axis=1)
    assert_equal(compiled(both, nodes), _rows_slowly(both, nodes))


def test_a_hub_and_many_copies_of_one_edge():
    spokes = np.stack([np.zeros(70_000, dtype=np.int32), np.arange(70_000, dtype=np.int32)])
    copies = np.full((2, 50_000), 3, dtype=np.int32)
    copies[1] = 69_999
    ends = np.concatenate([copies, spokes, copies[::-1], copies], axis=1)
    found = compiled(ends, 70_000)
    assert_equal(found, _rows_slowly(ends, 70_000))
    assert found.loops == 1
    assert found.duplicates == 49_999 + 50_000 + 49_999
    assert found.one_way == 69_999


def test_rows_do_not_depend_on_the_threads():
    rng = np.random.default_rng(5)
    ends = rng.integers(0, 150_000, (2, 1_200_000), dtype=np.int32)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(compiled(ends, 150_000))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert_equal(other, found[0])
