"""Offsets into ragged arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pointer(lengths: Any) -> Any:
    """Return the offsets [L + 1] of L runs from their lengths."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def ranges(starts: Any, pointer: Any) -> Any:
    """Concatenate the ranges start, start + 1, ... of lengths diff(pointer)."""
    return np.arange(pointer[-1]) + np.repeat(starts - pointer[:-1], np.diff(pointer))


def spans(ptr: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of parts with at most ``most`` items in all, or of one larger part."""
    start = 0
    while start < len(ptr) - 1:
        stop = int(np.searchsorted(ptr, ptr[start] + most, side="right")) - 1
        yield start, (start := max(stop, start + 1))
