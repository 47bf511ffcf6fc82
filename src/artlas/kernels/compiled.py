"""The compiled extension modules, or None where artlas was installed without a compiler."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

core: Any = None  # couplings, energies, encoder, iterative solver
ingest: Any = None  # number tables, canonical rows, ego-graphs

if find_spec("artlas.kernels._core") is not None:
    try:
        core = import_module("artlas.kernels._core")
        ingest = import_module("artlas.kernels._ingest")
    except ImportError as error:  # present but broken: never fall back in silence
        raise ImportError(
            f"artlas' compiled kernels are installed but do not load ({error}). "
            "Reinstall artlas in this environment."
        ) from error
