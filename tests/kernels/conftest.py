"""Every instruction set that the compiled kernels can use here, in turn."""

import pytest

try:
    from artlas.kernels import _art
except ImportError:
    _art = None

SETS = ["base", "avx2", "avx512"]


@pytest.fixture(params=SETS[: 1 + SETS.index(_art.isa() if _art else "base")])
def isa(request):
    if _art is None:
        pytest.skip("no compiled kernels in this install")
    before = _art.isa()
    _art.set_isa(request.param)
    yield request.param
    _art.set_isa(before)
