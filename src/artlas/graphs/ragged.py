"""Offsets into ragged arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def pointer(lengths: Any) -> Any:
    """Return the offsets [L + 1] of L runs from their lengths."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def ranges(starts: Any, pointer: Any) -> Any:
    """Concatenate the ranges start, start + 1, ... of lengths diff(pointer)."""
    return np.arange(pointer[-1]) + np.repeat(starts - pointer[:-1], np.diff(pointer))
