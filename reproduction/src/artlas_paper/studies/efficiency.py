"""How much time and memory do ART and the methods it is compared with take?

Makes the paper's figure and table of efficiency: synthetic graphs of growing size, and batches of
two datasets. Each configuration runs in a process of its own (:mod:`.efficiency_worker`).

    artlas-paper study efficiency --root ROOT --out DIR [--cap SECONDS]
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from artlas_paper.studies.efficiency_report import figure, table
from artlas_paper.studies.efficiency_worker import METHODS, OTHERS, Configuration
from artlas_paper.studies.study import FEW, Job, ReportProgress, Setting, Study

CAP, QUICK_CAP = 600.0, 20.0  # seconds of one configuration, warm-up included
SIZES, SINGLE = (256, 512, 1024, 2048, 4096), (2**12, 2**14, 2**16, 2**18, 2**20)
LARGEST_TRAINING = 2**18  # nodes of a single graph: a step of the next takes a minute
BATCH, REAL_BATCH = 32, 64
WARM, TIMED, REAL_TIMED, REPEATS = 10, 30, 20, 5
QUICK_WARM, QUICK_TIMED, QUICK_REPEATS = 1, 2, 2
DATASETS = ("COLLAB", "Computers")
KEYS = ("target", "nodes", "graphs", "method", "task")
# nodes, graphs, method and task of quick runs
QUICK = (
    (32, FEW, "ART", "inference"),
    (32, FEW, "ART", "training"),
    (32, FEW, "SCGFM", "inference"),
    (128, FEW, "ART", "inference"),
    (256, 1, "ART", "inference"),
)
QUICK_REAL = (("ART", "inference"), ("GIN", "training"))
SLEEP = {"OMP_WAIT_POLICY": "PASSIVE"}  # spinning threads would measure other busy processes
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

PROTOCOL = """\
Random sparse graphs of average degree 8 in batches of 32, single ones of up to 2^20 nodes (2^18 in
training), batches of 64 graphs of COLLAB and of 64 ego-graphs of Computers (in place of Reddit,
which is not available here). Every method gets the same graphs, and nothing is kept from one
iteration to the next. Every configuration runs in a process of its own: five repeats of 10 warm-up
and 30 timed iterations, 20 on datasets (in quick runs two repeats of 1 and 2, with fewer and
smaller graphs). A time is the median over the repeats of the mean over their iterations. A
configuration that takes longer than the cap is ended. It is then represented by the iterations it
finished, by its warm-up if there are no others, by the graphs it finished if it completed no
iteration, and otherwise by a bound. Inference is from graphs in memory to vectors: ART's paper
representation with the shipped weights, SCGFM's [w, f(w), H]. Training is one step with Adam, and
freed memory is kept, as in pretraining. Memory is the growth of the peak of resident memory over
what the process used with data and model loaded. SCGFM is our implementation (none was published):
"SCGFM" aligns by POT's conditional gradient, "SCGFM, entropic" by POT's entropic solver (epsilon
0.01), and "SCGFM, our solver" by the compiled conditional gradient of artlas.gw, all with at most
50 steps. The other methods are ours too, on PyTorch Geometric's layers, untrained, pooled, with the
paper's widths and optimisers. There are as many threads as the machine has, unless OMP_NUM_THREADS
and OPENBLAS_NUM_THREADS set another number. The paper's values are of a GPU and ours of a CPU with
few threads: slopes and ratios can be compared, milliseconds cannot."""


def configurations(setting: Setting) -> Iterable[Configuration]:
    """List what to measure, ART first at every size."""
    root = None if setting.root is None else str(setting.root)
    make = partial(Configuration, root=root, warm=WARM, timed=TIMED, repeats=REPEATS)
    if setting.quick:
        make = partial(
            Configuration, root=root, warm=QUICK_WARM, timed=QUICK_TIMED, repeats=QUICK_REPEATS
        )
        for nodes, graphs, method, task in QUICK:
            yield make(method=method, task=task, graphs=graphs, target=None, nodes=nodes)
        for target, (method, task) in itertools.product(setting.targets, QUICK_REAL):
            yield make(method=method, task=task, graphs=FEW, target=target, nodes=None)
        return
    for nodes, (method, task) in itertools.product(SIZES, _tasks(METHODS)):
        yield make(method=method, task=task, graphs=BATCH, target=None, nodes=nodes)
    for nodes in SINGLE:
        yield make(method="ART", task="inference", graphs=1, target=None, nodes=nodes)
        if nodes <= LARGEST_TRAINING:
            yield make(method="ART", task="training", graphs=1, target=None, nodes=nodes)
    for target, (method, task) in itertools.product(setting.targets, _tasks((*METHODS, *OTHERS))):
        real = make(method=method, task=task, graphs=REAL_BATCH, target=target, nodes=None)
        yield dataclasses.replace(real, timed=REAL_TIMED)


def _tasks(methods: Sequence[str]) -> list[tuple[str, str]]:
    """Pair methods with tasks; the variants of SCGFM's solver are left out of training."""
    solvers = METHODS[2:]
    tasks = itertools.product(methods, ("inference", "training"))
    return [
        (method, task) for method, task in tasks if task == "inference" or method not in solvers
    ]


def jobs(setting: Setting, cap: float | None = None) -> Iterable[Job]:
    """List a job for every configuration."""
    cap = (QUICK_CAP if setting.quick else CAP) if cap is None else cap
    for configuration in configurations(setting):
        identity = {key: getattr(configuration, key) for key in KEYS}
        yield Job(identity, partial(measure, configuration, cap))


def measure(configuration: Configuration, cap: float, report: ReportProgress) -> Mapping[str, Any]:
    """Run one configuration in a process of its own; end it ``cap`` seconds after it is ready."""
    load = round(os.getloadavg()[0], 2)
    words = [sys.executable, "-m", "artlas_paper.studies.efficiency_worker"]
    words.append(json.dumps(dataclasses.asdict(configuration)))
    threads = str(len(os.sched_getaffinity(0)))
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**SLEEP, **dict.fromkeys(THREADS, threads), **os.environ},
        ) as process,
    ):
        assert process.stdout is not None
        over_cap = threading.Event()

        def end() -> None:
            over_cap.set()
            process.kill()

        timer, lines = threading.Timer(cap, end), list[Mapping[str, Any]]()
        iterations = configuration.repeats * (configuration.warm + configuration.timed)
        try:
            for line in process.stdout:
                lines.append(json.loads(line))
                if len(lines) == 1:
                    timer.start()
                report(len(_whole_iterations(lines)), iterations)
        finally:
            timer.cancel()
            if sys.exc_info()[0] is not None:
                process.kill()
        process.wait()
        errors.seek(0)
        message = errors.read().strip()
    if process.returncode and not over_cap.is_set():
        raise ValueError(f"the process ended with {process.returncode}: {message[-1500:]}")
    finished = len(_whole_iterations(lines)) == iterations
    return {
        "state": "finished" if finished else "over the cap",
        "cap": cap,
        "load": load,
        **summary(lines[0], lines[1:], configuration.graphs),
    }


def _whole_iterations(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [line for line in lines if "repeat" in line]


def summary(
    ready: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], graphs: int
) -> dict[str, Any]:
    """Summarise the lines of a worker: ``iteration`` is the median over repeats of mean seconds.

    Without a timed iteration it is the mean of the warm-up; without that, an extrapolation from the
    ``parts`` graphs that were finished; and None if there are none.
    """
    means, parts, whole = [], 0, _whole_iterations(lines)
    for repeat in sorted({line["repeat"] for line in whole}):
        own = [ln["seconds"] for ln in whole if ln["repeat"] == repeat and not ln["warm"]]
        means += [statistics.fmean(own)] if own else []
    if whole and not means:
        means = [statistics.fmean(line["seconds"] for line in whole)]
    if lines and not whole:
        parts = sum(line["part"] for line in lines)
        means = [sum(line["seconds"] for line in lines) * graphs / parts]
    return {
        **ready,
        "iteration": statistics.median(means) if means else None,
        "repeats": means,
        "timed": sum(not line["warm"] for line in whole),
        "warm": sum(line["warm"] for line in whole),
        "parts": parts,
        "peak": max((line["peak"] for line in lines), default=None),
    }


def make_study(cap: float | None = None) -> Study:
    """Make the study with a cap in seconds on each configuration."""
    return Study(
        name="efficiency",
        title="End-to-end efficiency and scalability",
        protocol=PROTOCOL,
        keys=KEYS,
        targets=DATASETS,
        seeds=(),
        jobs=partial(jobs, cap=cap),
        table=table,
        figure=figure,
    )
