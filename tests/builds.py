"""Every build of the kernels that can run here, in turn."""

import contextlib

import pytest

from artlas import kernels
from artlas.kernels import native

SETS = ["base", "avx2", "avx512"]
HERE = SETS[: 1 + SETS.index(kernels.native_gw().isa())] if kernels.available() else []


@contextlib.contextmanager
def switched(name):
    if name == "twin":
        with kernels.use("twin"):
            yield name
        return
    before = native.core.isa()
    native.core.set_isa(name)
    try:
        yield name
    finally:
        native.core.set_isa(before)


@pytest.fixture(params=HERE)
def isa(request):
    """Compiled for one instruction set."""
    with switched(request.param) as name:
        yield name


@pytest.fixture(params=["twin", *HERE])
def kernel(request):
    """The same, and the twin, which is there without a compiler too."""
    with switched(request.param) as name:
        yield name
