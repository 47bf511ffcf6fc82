"""Read thousands of broken files: each must be read, or refused by an error of ours, at once.

``PYTHONPATH=src:tests python -m fuzzing.fuzz --count 10000 --seed 0`` runs it by hand, test_fuzz.py
runs it in the tests. A case is determined by the seed and its number, so a finding can be
reproduced.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from fuzzing.mutations import Files, case, seeds

TESTS = pathlib.Path(__file__).parent.parent
SECONDS, MEGABYTES, STALLED = 2.0, 500, 20.0


@dataclass(frozen=True)
class Finding:
    """A case that was neither read nor refused as it should."""

    number: int
    target: str
    what: str
    files: dict[str, str]  # base64 of the packed content


def judge(path: pathlib.Path, read: Callable[..., Any], floor: float = 0.0) -> tuple[str, str]:
    """Read one file and return ('graphs', 'refused' or 'wrong', what is wrong).

    Its memory is the peak of the process above ``floor``, if this file is what raised the peak.
    """
    from artlas import GraphError

    memory, start, outcome, what = _peak(), _processor_seconds(), "refused", ""
    try:
        graphs = read(path, verbose=False)
        outcome, what = "graphs", _fault(graphs)
    except GraphError as error:
        what = "" if str(error) else "an error without a word"
    except Exception:
        what = traceback.format_exc(limit=-4)
    seconds, peak = _processor_seconds() - start, _peak()
    if seconds > SECONDS:
        what += f" took {seconds:.1f} s"
    if peak > memory and peak - (floor or memory) > MEGABYTES:
        what += f" took {peak - (floor or memory):.0f} MB"
    return ("wrong", what) if what else (outcome, "")


def _processor_seconds() -> float:
    """Return the time of this process and its children, whatever else the machine does."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _peak() -> float:
    """Return the peak memory of this process in megabytes."""
    try:
        # Not ru_maxrss, which a process takes over from the one that started it.
        found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())
        return int(found[1]) / 1024 if found else 0.0
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _fault(graphs: Any) -> str:
    """Return what is wrong with graphs that were read, or an empty string."""
    import numpy as np
    from scipy.sparse import csr_array

    rows, col = graphs.row_ptr.numpy(), graphs.col.numpy()
    n, whole = graphs.num_nodes, graphs.node_ptr.numpy()
    if n < 1 or rows[0] != 0 or rows[-1] != len(col) or (np.diff(rows) < 0).any():
        return "the rows are wrong"
    if whole[0] != 0 or whole[-1] != n or (np.diff(whole) < 1).any():
        return "the graphs are wrong"
    if len(col) and not 0 <= col.min() <= col.max() < n:
        return "a neighbour is out of range"
    a = csr_array((np.ones(len(col)), col, rows), shape=(n, n))
    if a.diagonal().any() or (a != a.T).nnz or (len(col) and a.max() != 1):
        return "the adjacency is not canonical"
    if graphs.x is not None and (len(graphs.x) != n or not np.isfinite(graphs.x.numpy()).all()):
        return "the features are wrong"
    if graphs.ids is not None and len(graphs.ids) != n:
        return "the ids are wrong"
    return ""


def work(seed: int, first: int, count: int, step: int, progress: str) -> None:
    """Run every step-th case from the first; print outcomes as lines of JSON."""
    from artlas.io.reading import read

    warnings.simplefilter("ignore")
    known, outcomes = seeds(), dict[str, dict[str, int]]()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        root = pathlib.Path(folder)
        for target, files in known:  # imports take memory, too
            judge(write(root, target, files), read)
        floor, at = _peak(), os.open(progress, os.O_WRONLY)
        for number in range(first, count, step):
            os.pwrite(at, b"%10d" % number, 0)
            target, files = case(seed, number, known)
            outcome, what = judge(write(root, target, files), read, floor)
            kind = outcomes.setdefault(known[number % len(known)][0], {})
            kind[outcome] = kind.get(outcome, 0) + 1
            if outcome == "wrong":
                print(json.dumps(asdict(_finding(number, target, what, files))), flush=True)
    print(json.dumps({"outcomes": outcomes}), flush=True)


def write(root: pathlib.Path, target: str, files: Files) -> pathlib.Path:
    place = root / "case"
    shutil.rmtree(place, ignore_errors=True)
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return place / target


def _finding(number: int, target: str, what: str, files: Files) -> Finding:
    packed = {n: base64.b64encode(zlib.compress(d)).decode() for n, d in files.items()}
    return Finding(number, target, what, packed)


def unpack(finding: Finding) -> Files:
    """Return the files of a finding."""
    return {n: zlib.decompress(base64.b64decode(d)) for n, d in finding.files.items()}


def run(
    count: int, seed: int = 0, workers: int = 2
) -> tuple[list[Finding], dict[str, dict[str, int]]]:
    """Return all findings, and how often each seed was read or refused."""
    findings: list[Finding] = []
    outcomes: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        runs = [_follow(pathlib.Path(folder), seed, i, count, workers) for i in range(workers)]
        while runs:
            for follow in list(runs):
                for line in _next(follow, runs):
                    made = json.loads(line)
                    for kind, counts in made.get("outcomes", {}).items():
                        ours = outcomes.setdefault(kind, {})
                        for outcome, times in counts.items():
                            ours[outcome] = ours.get(outcome, 0) + times
                    if "what" in made:
                        findings.append(Finding(**made))
            time.sleep(0.05)
    return findings, outcomes


def _next(follow: Iterator[str], runs: list[Iterator[str]]) -> list[str]:
    try:
        return next(follow).splitlines()
    except StopIteration:
        runs.remove(follow)
        return []


def _follow(folder: pathlib.Path, seed: int, first: int, count: int, step: int) -> Iterator[str]:
    """Yield the output of a worker; if it dies or stalls, report the case and start the next."""
    progress, said = folder / f"at{first}", folder / f"said{first}"
    while first < count:
        progress.write_bytes(b"%10d" % first)
        numbers = [str(value) for value in (seed, first, count, step)]
        command = [sys.executable, "-m", "fuzzing.fuzz", "--worker", *numbers, str(progress)]
        paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        with open(said, "wb") as out, open(f"{said}-err", "wb") as err:
            worker = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        seen, since, stalled = b"", time.monotonic(), False
        while worker.poll() is None and not stalled:
            yield ""
            if (now := progress.read_bytes()) != seen:
                seen, since = now, time.monotonic()
            stalled = time.monotonic() - since > STALLED
        worker.kill()
        worker.wait()
        yield said.read_text()
        if worker.returncode == 0 and not stalled:
            return
        number = int(progress.read_bytes())
        target, files = case(seed, number, seeds())
        noise = pathlib.Path(f"{said}-err").read_text(errors="replace")[-2000:]
        what = "stalled" if stalled else f"died with {worker.returncode}\n{noise}"
        yield json.dumps(asdict(_finding(number, target, what, files)))
        first = number + step


def report(findings: list[Finding], folder: pathlib.Path) -> str:
    """Describe the findings, and write their files to a folder."""
    lines = []
    for finding in findings:
        for name, data in unpack(finding).items():
            place = folder / str(finding.number) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            lines.append(f"{place}: {data[:300]!r}")
        lines.append(f"case {finding.number}, {finding.target}: {finding.what}\n")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dump", type=pathlib.Path, default=pathlib.Path("fuzz-findings"))
    chosen, start = parser.parse_args(), time.monotonic()
    findings, outcomes = run(chosen.count, chosen.seed)
    print(report(findings, chosen.dump))
    for kind, counts in sorted(outcomes.items()):
        print(f"{kind}: {counts}")
    print(f"{len(findings)} findings in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(*map(int, sys.argv[2:6]), sys.argv[6])
    else:
        main()
