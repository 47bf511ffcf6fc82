"""Read the memory of this process, and restart its peak."""

from __future__ import annotations

import gc
from pathlib import Path

from artlas.training import glibc_malloc


def memory_bytes(field: str) -> int:
    """Return a memory field of /proc/self/status in bytes, as VmRSS (in use) or VmHWM (peak)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def reset_peak() -> int:
    """Free unused memory, restart the peak, and return the bytes that are still in use."""
    gc.collect()
    glibc_malloc.trim()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # the peak cannot be restarted: later peaks are measured from the present one
        return memory_bytes("VmHWM")
    return memory_bytes("VmRSS")
