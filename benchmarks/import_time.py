"""Time `import artlas` after torch is imported."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.report import ROOT, Measurement

IMPORT_BAR = 2.0
SCRIPT = """
import time, torch
start = time.perf_counter()
import artlas
print(time.perf_counter() - start)
"""


def measure(runs: int) -> Measurement:
    """Take the best of several fresh processes."""
    seconds = [_import_seconds() for _ in range(runs)]
    return Measurement(
        "import artlas beyond import torch",
        min(seconds),
        min(seconds),
        max(seconds),
        bar=IMPORT_BAR,
        at_most=True,
        unit=" s",
        raw={"seconds": seconds},
    )


def _import_seconds() -> float:
    """Time one import in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return float(done.stdout)
