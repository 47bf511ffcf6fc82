"""Couplings, energies and input parsing: compiled for the CPU, with a PyTorch twin for any device.

Compiled code runs for float32 tensors on the CPU. Anything else, and an install without a compiler,
runs on the twin. ``kernels.on(tensor)`` chooses; both have the functions that ``native`` documents.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from artlas.kernels import native as native
from artlas.kernels import torch_twin as torch_twin

_REINSTALL = "Reinstall artlas where a C++ compiler (g++ or clang++) is found"
_choice = "native"
_warned = False


def available() -> bool:
    """Tell whether this install has the compiled kernels."""
    return native.core is not None


@contextmanager
def use(which: str) -> Iterator[None]:
    """Run on ``native`` or ``twin`` kernels inside a ``with`` block."""
    global _choice
    if which not in ("native", "twin"):
        raise ValueError(f"Kernels are 'native' or 'twin', got {which!r}.")
    if which == "native" and not available():
        raise RuntimeError(f"This install has no compiled kernels. {_REINSTALL}, or use 'twin'.")
    before, _choice = _choice, which
    try:
        yield
    finally:
        _choice = before


def native_for(tensor: Tensor) -> ModuleType | None:
    """Return the compiled kernels if they take this tensor's device and dtype."""
    global _warned
    if _choice != "native" or tensor.device.type != "cpu" or tensor.dtype != torch.float32:
        return None
    if native.core is not None:
        return native
    if not _warned:
        _warned = True
        warnings.warn(
            "artlas was installed without a C++ compiler and runs on its PyTorch twin: the same "
            f"results, slower. {_REINSTALL} to get the compiled kernels.",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def native_data() -> ModuleType | None:
    """Return the compiled readers and ego-graphs, unless this install or the caller has none."""
    return native if _choice == "native" and native.ingest is not None else None


def native_gw() -> Any:
    """Return the compiled module, for its Gromov-Wasserstein solver, which has no twin."""
    if not available():
        raise RuntimeError(f"The iterative solver is compiled, but not installed. {_REINSTALL}.")
    return native.core


def done() -> int | None:
    """Return the nodes times bases aligned so far, for a progress bar; None if nothing counts."""
    return None if native.core is None or _choice != "native" else native.core.aligned()


def state_of(tensors: Iterable[Tensor]) -> tuple[tuple[int, int], ...]:
    """Return a key that changes when any of the tensors is replaced, moved or written to."""
    return tuple((t.data_ptr(), t._version) for t in tensors)


def on(tensor: Tensor) -> Any:
    """Return the kernels for a tensor's device and dtype: the compiled ones or their twin."""
    return native_for(tensor) or torch_twin
