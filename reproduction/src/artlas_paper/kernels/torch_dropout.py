"""Dropout whose mask is hashed from the seed and the index."""

from __future__ import annotations

import torch
from torch import Tensor


def dropout(x: Tensor, share: float, seed: int) -> Tensor:
    low = 0xFFFFFFFF
    entry = torch.arange(x.numel(), device=x.device) & low
    chance = _mixed((_mixed(entry ^ (seed & low)) + (seed >> 32)) & low).view(x.shape)
    return x * (chance >= round(share * 2**32)).to(x.dtype) * (1 / (1 - share))


def _mixed(h: Tensor) -> Tensor:
    """A hash of numbers of 32 bits, each in an int64."""
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return h ^ (h >> 16)
