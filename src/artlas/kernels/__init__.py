"""Everything between logits and energies: compiled for the CPU, and a PyTorch twin for any device.

Callers use the functions here and never learn which of the two ran. Compiled code is used for
float32 tensors on the CPU; anything else, and an install without a compiler, runs on the twin.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Unpack

import torch
from torch import Tensor

from artlas.kernels import torch_twin
from artlas.kernels.options import Mixing, Sinkhorn
from artlas.kernels.structure import Structure

_native: ModuleType | None = None
_loader: ModuleType | None = None
if (
    find_spec("artlas.kernels._art") is not None
):  # a module that is there but broken is no twin's job
    try:
        from artlas.kernels import ingest as _loader
        from artlas.kernels import native as _native
    except ImportError as error:
        raise ImportError(
            f"artlas' compiled kernels are installed but do not load ({error}). "
            "Reinstall artlas in this environment."
        ) from error

_choice = "native"
_told = False


def available() -> bool:
    """Whether the compiled kernels are part of this install."""
    return _native is not None


@contextmanager
def use(which: str) -> Iterator[None]:
    """Run on ``native`` or ``twin`` kernels inside a ``with`` block."""
    global _choice
    if which not in ("native", "twin"):
        raise ValueError(f"Kernels are 'native' or 'twin', got {which!r}.")
    if which == "native" and not available():
        raise RuntimeError(
            "This install has no compiled kernels. Reinstall artlas where a C++ compiler "
            "(g++ or clang++) is found, or use 'twin'."
        )
    before, _choice = _choice, which
    try:
        yield
    finally:
        _choice = before


def native_for(tensor: Tensor) -> ModuleType | None:
    """The compiled kernels, where they serve this tensor's device and dtype."""
    global _told
    if _choice != "native" or tensor.device.type != "cpu" or tensor.dtype != torch.float32:
        return None
    if _native is None and not _told:
        _told = True
        warnings.warn(
            "artlas was installed without a C++ compiler and runs on its PyTorch twin: the same "
            "results, slower. Reinstall where g++ or clang++ is found to get the compiled kernels.",
            RuntimeWarning,
            stacklevel=2,
        )
    return _native


def native_data() -> ModuleType | None:
    """The compiled readers and ego-graphs, unless this install or the caller does without."""
    return _loader if _choice == "native" else None


def native_gw() -> ModuleType:
    """The compiled solver of Gromov-Wasserstein problems, which has no twin."""
    if _native is None:
        raise RuntimeError(
            "The iterative solver is compiled code, and this install has none. Reinstall artlas "
            "where a C++ compiler (g++ or clang++) is found."
        )
    return _native


def done() -> int | None:
    """Nodes times bases aligned so far, for a progress bar; None where nothing counts them."""
    return None if _native is None or _choice != "native" else _native.done()


def state_of(tensors: Iterable[Tensor]) -> tuple[tuple[int, int], ...]:
    """What changes when any of the tensors is replaced, moved or written to."""
    return tuple((t.data_ptr(), t._version) for t in tensors)


def _module(tensor: Tensor) -> Any:
    return native_for(tensor) or torch_twin


def energies(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    **options: Unpack[Sinkhorn],
) -> tuple[Tensor, Tensor]:
    """Energies and marginal residuals, [G, K] each; differentiable in the first three.

    nodes [N, D] and roles [K, M, D] are projected; their products times ``scale`` are the logits.
    relations [K, M, M] must be symmetric.
    """
    return _module(nodes).energies(nodes, roles, relations, structure, **options)


def couplings(
    nodes: Tensor, roles: Tensor, structure: Structure, **options: Unpack[Sinkhorn]
) -> Tensor:
    """The rounded couplings of the one graph in ``structure``, [K, N, M]."""
    native = native_for(nodes)
    if native is not None:
        return native.couplings(nodes, roles, structure, **options)
    (found,) = torch_twin.couplings(nodes, roles, structure, **options)
    return found


def mixtures(
    nodes: Tensor, roles: Tensor, relations: Tensor, structure: Structure, **options: Unpack[Mixing]
) -> tuple[Tensor, Tensor, Tensor]:
    """Energies, residuals and the mixed coupling T_mix [N, M]."""
    return _module(nodes).mixtures(nodes, roles, relations, structure, **options)


def transport_features(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    x: Tensor,
    measure: Tensor | None = None,
    **options: Unpack[Mixing],
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Energies, residuals and :math:`H = N T_{mix}^\top X`, [G, M, d], for x [N, d].

    Rows of x are divided by ``measure`` [N] of float64 first, where it is given.
    """
    native = native_for(nodes)
    if native is not None:
        return native.transport_features(nodes, roles, relations, structure, x, measure, **options)
    if measure is not None:
        x = (x / measure[:, None]).to(nodes)
    found, residuals, mixed = torch_twin.mixtures(nodes, roles, relations, structure, **options)
    parts = zip(mixed.split(structure.sizes), x.split(structure.sizes), strict=True)
    return found, residuals, torch.stack([len(t) * (t.T @ rows) for t, rows in parts])


def blocks(x: Tensor, degree: Tensor, structure: Structure) -> Tensor:
    """[X | AX | X o AX | deg X o X - X o AX] of x [N, d] and degree [N], [N, 4 d]."""
    native = native_for(x)
    if native is not None:
        return native.blocks(x, degree, structure)
    summed = neighbour_sum(x.contiguous(), structure)
    across = x * summed
    return torch.cat([x, summed, across, degree[:, None] * x * x - across], 1)


def neighbour_sum(h: Tensor, structure: Structure) -> Tensor:
    """A h, the sum of h [N, D] over neighbours; differentiable."""
    return _module(h).neighbour_sum(h, structure)
