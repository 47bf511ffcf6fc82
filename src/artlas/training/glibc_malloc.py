"""Keep glibc from returning large blocks to the system during training."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # options of glibc's mallopt
_REUSE = {_MMAP_MAX: 0, _TRIM_THRESHOLD: -1}  # map no block separately, return none
# glibc's own upper limits of the thresholds, and its default number of mapped blocks
_DEFAULTS = {_MMAP_MAX: 65_536, _MMAP_THRESHOLD: 2**25, _TRIM_THRESHOLD: 2**26}


@contextmanager
def reuse_large_blocks() -> Iterator[None]:
    """Reuse freed blocks of any size, and return them to the system at the end.

    glibc otherwise maps every block of more than 32 MiB anew, and a step on large batches spends
    more time on fresh pages than on arithmetic. Nothing changes with another allocator, or if the
    environment configures this one (MALLOC_...).
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        yield
        return
    try:
        for option, value in _REUSE.items():
            _call("mallopt", option, value)
        yield
    finally:
        for option, value in _DEFAULTS.items():
            _call("mallopt", option, value)
        trim()


def trim() -> None:
    """Return free memory to the system."""
    _call("malloc_trim", 0)


def _call(name: str, *values: int) -> None:
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, TypeError):  # no glibc
        return
    function(*values)
