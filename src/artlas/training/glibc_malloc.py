"""The memory of large tensors, kept by the process while it makes many of the same size."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # glibc's options of mallopt
_KEEPING = {_MMAP_MAX: 0, _TRIM_THRESHOLD: -1}  # nothing is mapped by itself, nothing given back
# the most that glibc comes to by itself, and its number of blocks
_USUAL = {_MMAP_MAX: 65_536, _MMAP_THRESHOLD: 2**25, _TRIM_THRESHOLD: 2**26}


@contextmanager
def kept() -> Iterator[None]:
    """Blocks of any size are used again after they are freed, and given back at the end.

    glibc otherwise maps every block of over 32 MiB anew, and a step on large batches spends more
    time on fresh pages than on arithmetic. Where there is another allocator, or the environment
    has settings for this one (MALLOC_...), nothing changes.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        yield
        return
    _set(_KEEPING)
    try:
        yield
    finally:
        _set(_USUAL)
        trim()


def trim() -> None:
    """Give free memory back to the system."""
    _call("malloc_trim", 0)


def _set(options: dict[int, int]) -> None:
    for option, value in options.items():
        _call("mallopt", option, value)


def _call(name: str, *values: int) -> None:
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, TypeError):  # no glibc
        return
    function(*values)
