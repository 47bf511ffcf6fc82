"""The study `speed`: embedding beside z+, single large graphs, ten folds, and a large fit.

Every measurement runs in a fresh process (`benchmarks.accuracy.speed_worker`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.accuracy import markdown
from benchmarks.accuracy.records import Record
from benchmarks.accuracy.speed_worker import COLLECTIONS, PARTS
from benchmarks.accuracy.study import Options
from benchmarks.fresh_process import run_module
from benchmarks.timing import Spread

POWERS = (3, 4, 5, 6)  # of ten, nodes
KINDS = ("random", "power-law")
ABOUT = """Seconds by the clock; graphs and vectors in memory. "blocks" is `artlas.blocks.embed`,
"compact" its preset of that name, z+ the shipped model's `embed(graphs, "plus")`, timed in turn in
one process; median and range of rounds. Every large graph is embedded in a fresh process; peak
memory is what that process took beyond the graph and the libraries."""


def run(options: Options) -> None:
    """Measure the parts that were named, or all, and write the page."""
    unknown = [part for part in options.only if part not in PARTS]
    if unknown:
        sys.exit(f"There is no part {unknown[0]!r}. To fix this: choose among {', '.join(PARTS)}.")
    for part in PARTS:
        if options.only and part not in options.only:
            continue
        if part == "busy" and not (options.busy or part in options.only):
            continue
        for case in _cases(part):
            record = Record(options.out, "speed", part)
            if record.get(case, "seconds", "") is None or options.again:
                words = case.split() if part == "large" else [case]
                found = run_module(
                    "benchmarks.accuracy.speed_worker",
                    part,
                    options.data.resolve(),
                    *words,
                    default_malloc=True,
                )
                found["load"] = os.getloadavg()[0]
                record.put(case, "seconds", {"hash": ""}, found)
                print(part, case, found, file=sys.stderr)
    write(options)


def _cases(part: str) -> list[str]:
    if part == "embed":
        return list(COLLECTIONS)
    if part == "large":
        return [f"{kind} {10**power}" for kind in KINDS for power in POWERS]
    return ["NCI1"] if part in ("busy", "folds") else ["100,000 graphs"]


def write(options: Options) -> None:
    """Write the page of all records."""
    records = {part: Record(options.out, "speed", part) for part in PARTS}
    found = {
        part: {case: own["seconds"] for case, own in record.rows.items()}
        for part, record in records.items()
    }
    sections = [ABOUT]
    if found["embed"]:
        sections += ["## Embedding", _embedding_table(found["embed"])]
    if found["busy"]:
        about = "The same while two other processes keep both cores busy:"
        sections += [about, _embedding_table(found["busy"])]
    if found["large"]:
        sections += ["## One large graph", _large_table(found["large"])]
    for case, own in found["folds"].items():
        sections += [
            "## Ten folds",
            f"{case}, {own['graphs']:,} graphs, ten stratified folds: embedding "
            f"{own['embed']:.1f} s, fit and predict {own['folds']:.1f} s.",
        ]
    for case, own in found["fit"].items():
        sections += [
            "## A large fit",
            f"{case} generated like molecules ({own['columns']:,} columns), two classes: embedding "
            f"{own['embed']:.1f} s, fit {own['fit']:.1f} s (landmarks: {own['landmarks']:,}), "
            f"prediction of 10,000 {own['predict']:.1f} s; peak memory of the process "
            f"{own['peak'] / 2**30:.2f} GiB, of which {own['before_fit'] / 2**30:.2f} GiB were in "
            f"use before the fit; accuracy {100 * own['accuracy']:.1f} %.",
        ]
    loads = [own["load"] for rows in found.values() for own in rows.values()]
    if loads:
        sections.append(
            f"Load average of the machine meanwhile: {min(loads):.1f} to {max(loads):.1f}."
        )
    used = [record for record in records.values() if record.rows]
    text = markdown.page("Speed of the vector and the fit", options.command, used, sections)
    markdown.write(options.out / "speed.md", text)


def _embedding_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for case, own in found.items():
        seconds: dict[str, list[float]] = own["rounds"]
        cells = [_rates([own["graphs"] / each for each in values]) for values in seconds.values()]
        pairs = zip(seconds["z+"], seconds["blocks"], strict=True)
        ratio = Spread.of([theirs / ours for theirs, ours in pairs])
        cells.append(f"{ratio.median:.2f} ({ratio.low:.2f}-{ratio.high:.2f})")
        rows.append([f"{case} ({own['graphs']:,})", *cells])
        names = list(seconds)
    return markdown.table(["graphs a second", *names, "blocks / z+"], rows)


def _rates(rates: list[float]) -> str:
    spread = Spread.of(rates)
    return f"{spread.median:,.0f} ({spread.low:,.0f}-{spread.high:,.0f})"


def _large_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for kind in KINDS:
        cases = [f"{kind} {10**power}" for power in POWERS if f"{kind} {10**power}" in found]
        if not cases:
            continue
        own = [found[case] for case in cases]
        nodes = [each["nodes"] for each in own]
        slope = np.nan
        if len(own) > 1:
            slope = np.polyfit(np.log(nodes), np.log([each["seconds"] for each in own]), 1)[0]
        for each in own:
            last = f"{slope:.2f}" if each is own[-1] else ""
            rows.append(
                [
                    kind,
                    f"{each['nodes']:,}",
                    f"{each['edges']:,}",
                    f"{each['largest_degree']:,}",
                    f"{each['seconds']:.3g}",
                    f"{each['peak_extra'] / 2**20:,.0f}",
                    last,
                ]
            )
    head = ["graph", "nodes", "edges", "largest degree", "s", "peak extra, MiB", "log-log slope"]
    return markdown.table(head, rows)
