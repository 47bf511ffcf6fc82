"""What measurements of time and memory share: generated graphs, and the memory of a process."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.training import glibc_malloc


def random_edges(rng: np.random.Generator, nodes: int, degree: float) -> NDArray[Any]:
    """About nodes * degree / 2 distinct pairs, both directions, [2, E]."""
    wanted = min(round(nodes * degree / 2), nodes * (nodes - 1) // 2)
    codes = np.empty(0, dtype=np.int64)
    while len(codes) < wanted:
        drawn = rng.integers(0, nodes, size=(2, wanted - len(codes) + 16))
        drawn = np.sort(drawn[:, drawn[0] != drawn[1]], axis=0)
        codes = np.unique(np.concatenate([codes, drawn[0] * nodes + drawn[1]]))
    codes = rng.permutation(codes)[:wanted]
    low, high = np.divmod(codes, nodes)
    return np.stack([np.concatenate([low, high]), np.concatenate([high, low])])


def status(field: str) -> int:
    """A memory field of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def reset_peak() -> int:
    """Give free memory back, restart the high-water mark, and say what is in use now."""
    gc.collect()
    glibc_malloc.trim()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return status("VmHWM")
    return status("VmRSS")
