"""Couplings, energies and input parsing: compiled for the CPU, with a PyTorch twin for any device.

Compiled code runs for float32 tensors on the CPU. Anything else, and an install without a compiler,
runs on the twin. Callers use the functions here and never learn which of the two ran.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Unpack

import torch
from torch import Tensor

from artlas.kernels import native as native
from artlas.kernels import torch_twin as torch_twin
from artlas.kernels.structure import Mixing, Sinkhorn, Structure

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
    """Return the compiled kernels if they take this tensor's device and dtype."""
    global _warned
    if _choice != "native" or tensor.device.type != "cpu" or tensor.dtype != torch.float32:
        return None
    if available():
        return native
    if not _warned:
        _warned = True
        warnings.warn(
            "artlas was installed without a C++ compiler and runs on its PyTorch twin: the same "
            "results, slower. Reinstall where g++ or clang++ is found to get the compiled kernels.",
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
        raise RuntimeError(
            "The iterative solver is compiled code, and this install has none. Reinstall artlas "
            "where a C++ compiler (g++ or clang++) is found."
        )
    return native.core


def done() -> int | None:
    """Return the nodes times bases aligned so far, for a progress bar; None if nothing counts."""
    return native.core.aligned() if _choice == "native" and available() else None


def state_of(tensors: Iterable[Tensor]) -> tuple[tuple[int, int], ...]:
    """Return a key that changes when any of the tensors is replaced, moved or written to."""
    return tuple((t.data_ptr(), t._version) for t in tensors)


def energies(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    **options: Unpack[Sinkhorn],
) -> tuple[Tensor, Tensor]:
    r"""Compute energies and marginal residuals, [G, K] each; differentiable in the first three.

    .. math:: e_{gk} = \chi_A + \chi_B - 2 \langle A T', T' B_k \rangle

    nodes [N, D] and roles [K, M, D] are projected; their products times ``scale`` are the logits.
    relations [K, M, M] must be symmetric.
    """
    return _kernels_for(nodes).energies(nodes, roles, relations, structure, **options)


def couplings(
    nodes: Tensor, roles: Tensor, structure: Structure, **options: Unpack[Sinkhorn]
) -> Tensor:
    """Compute the rounded couplings of the one graph in ``structure``, [K, N, M]."""
    result = _kernels_for(nodes).couplings(nodes, roles, structure, **options)
    return result if isinstance(result, Tensor) else result[0]


def mixtures(
    nodes: Tensor, roles: Tensor, relations: Tensor, structure: Structure, **options: Unpack[Mixing]
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Compute energies, residuals and the mixed coupling [N, M], without gradients.

    .. math:: T_{mix} = \sum_k w_k T'_k, \quad w = \mathrm{softmax}_k(-e_k / \text{temperature})

    With ``top_k`` the largest weights are kept and renormalised.
    """
    return _kernels_for(nodes).mixtures(nodes, roles, relations, structure, **options)


def transport_features(
    nodes: Tensor,
    roles: Tensor,
    relations: Tensor,
    structure: Structure,
    x: Tensor,
    measure: Tensor | None = None,
    **options: Unpack[Mixing],
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Compute energies, residuals and :math:`H = N T_{mix}^\top X`, [G, M, d], for x [N, d].

    Rows of x are divided by ``measure`` [N] of float64 first, where it is given.
    """
    used = _kernels_for(nodes)
    return used.transport_features(nodes, roles, relations, structure, x, measure, **options)


def blocks(x: Tensor, degree: Tensor, structure: Structure) -> Tensor:
    """Compute [X | AX | X o AX | deg X o X - X o AX] of x [N, d] and degree [N], [N, 4 d]."""
    return _kernels_for(x).blocks(x, degree, structure)


def neighbour_sum(h: Tensor, structure: Structure) -> Tensor:
    """Compute A h, the sum of h [N, D] over neighbours; differentiable."""
    return _kernels_for(h).neighbour_sum(h, structure)


def _kernels_for(tensor: Tensor) -> Any:
    return native_for(tensor) or torch_twin
