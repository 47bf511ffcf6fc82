"""Run a benchmark module in a fresh process, and read the JSON it prints last."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.report import ROOT


def run_module(
    module: str, *arguments: object, default_malloc: bool = False, quiet: bool = True
) -> Any:
    """Run ``python -m MODULE ARGUMENTS...`` and parse the last line of its output.

    default_malloc: without the MALLOC_ variables that ``benchmarks.run`` sets; quiet: show what
    the process writes to stderr only if it fails.
    """
    words = [module, *map(str, arguments)]
    env = {k: v for k, v in os.environ.items() if not (default_malloc and k.startswith("MALLOC_"))}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{(done.stderr or '').strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
