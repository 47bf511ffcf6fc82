"""Measure the cost of embedding a million graphs, in one process and on a local Ray cluster.

`python -m benchmarks.cluster PATH [--copies N] [--workers 1,2]` runs the command `artlas embed` on
one copy of the graphs and on N copies, with one thread per process. The N - 1 additional copies
give the cost of the graphs; the rest of the first run is the cost of starting. CPU time is that of
all processes of a command.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

import artlas
from benchmarks import parquet_files

TICK = 0.2
COMMAND = (sys.executable, "-c", "from artlas.cli import main; main()", "embed")


@dataclass(frozen=True)
class Cost:
    """Wall seconds, CPU seconds of all processes, and those of the command's own process."""

    wall: float
    cpu: float
    own: float


def measure(folder: Path, out: Path, workers: int) -> Cost:
    """Run the command on a folder; 0 workers means without Ray."""
    words = [*COMMAND, str(folder), "--out", str(out), "--quiet"]
    if workers:
        words += ["--engine", "ray", "--workers", str(workers)]
    start = time.perf_counter()
    process = psutil.Popen(words, env={**os.environ, "OMP_NUM_THREADS": "1"})
    spent: dict[tuple[int, float], float] = {}
    while process.poll() is None:
        _sample(process, spent)
        time.sleep(TICK)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, words)
    own = sum(seconds for (pid, _), seconds in spent.items() if pid == process.pid)
    return Cost(time.perf_counter() - start, sum(spent.values()), own)


def _sample(process: psutil.Process, spent: dict[tuple[int, float], float]) -> None:
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            with member.oneshot():
                times = member.cpu_times()
                spent[member.pid, member.create_time()] = times.user + times.system
        except psutil.NoSuchProcess:
            continue


def main() -> None:
    """Print one line per engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", type=Path, help="any file or folder that artlas.read takes")
    parser.add_argument("--copies", type=int, default=12)
    parser.add_argument("--workers", default="1,2")
    arguments = parser.parse_args()
    graphs = artlas.read(arguments.graphs)
    with tempfile.TemporaryDirectory(prefix="artlas-") as place:
        one, many = Path(place) / "one", Path(place) / "many"
        one.mkdir()
        many.mkdir()
        parquet_files.write(graphs, one / "000.parquet")
        for i in range(arguments.copies):
            shutil.copy(one / "000.parquet", many / f"{i:03d}.parquet")
        more, tables = len(graphs) * (arguments.copies - 1), {}
        for workers in (0, *map(int, arguments.workers.split(","))):
            small = measure(one, Path(place) / "small.parquet", workers)
            large = measure(many, Path(place) / "large.parquet", workers)
            wall, cpu = large.wall - small.wall, large.cpu - small.cpu
            own = (large.own - small.own) / cpu
            tables[workers] = (Path(place) / "large.parquet").read_bytes()
            share = len(graphs) / more
            print(
                f"{f'ray, {workers} workers' if workers else 'local'}: {more / wall:,.0f} graphs a "
                f"second, {cpu / more * 1e6 / 3600:.2f} CPU-hours a million, {own:.0%} of "
                f"it by the command itself; start "
                f"{small.wall - wall * share:.1f} s, {small.cpu - cpu * share:.1f} CPU-seconds; "
                f"{large} for {len(graphs) * arguments.copies:,} graphs",
                flush=True,
            )
        if len(set(tables.values())) != 1:
            raise SystemExit("the tables differ")


if __name__ == "__main__":
    main()
