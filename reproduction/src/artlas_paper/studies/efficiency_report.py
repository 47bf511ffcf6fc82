"""The tables and the figure of the study of efficiency, with the paper's values beside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from artlas_paper import figures
from artlas_paper.studies.efficiency_worker import METHODS, OTHERS
from artlas_paper.studies.study import ordered, rows
from artlas_paper.transfer.records import Record

MS = "ms a graph"
SHARED = 3.0  # a load average that a configuration does not make alone
# Of the paper: ratios of SCGFM's latency to ART's, latencies, and ART's memory in training.
PAPER_RATIO = {256: 279.0, 1024: 974.0, 2048: 1621.75 / 2.031}
PAPER_MS = {("ART", 2048): 2.031, ("ART", 4096): 3.979, ("SCGFM", 2048): 1621.75}
PAPER_GIB = {256: 0.874, 4096: 13.69}
PAPER_SLOPE = 0.99
# Graphs a second in training, milliseconds a graph at inference, GiB
PAPER_REAL = {
    ("COLLAB", "SCGFM"): (10191.93, 11.567, 0.296),
    ("COLLAB", "ART"): (1794.78, 0.262, 1.396),
    ("Reddit", "SCGFM"): (7391.40, 139.843, 0.770),
    ("Reddit", "ART"): (302.53, 1.643, 4.028),
}


def latency(record: Record) -> float:
    """Milliseconds a graph, or the bound that the cap gives where no iteration was finished."""
    found = record["iteration"]
    return 1e3 * (record["cap"] if found is None else found) / record["graphs"]


def rate(record: Record) -> float:
    """Graphs a second."""
    return 1e3 / latency(record)


def peak(record: Record) -> float | None:
    """MiB."""
    return None if record["peak"] is None else record["peak"] / 2**20


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Of log y over log x by least squares; None of fewer than two points."""
    if len(points) < 2:
        return None
    x, y = np.log(np.array(points, dtype=np.float64)).T
    return float(np.polyfit(x, y, 1)[0])


def table(records: Sequence[Record]) -> str:
    """Scaling in time and memory, single graphs, datasets, slopes, and conditions."""
    synthetic = [r for r in records if r["target"] is None]
    batches = [r for r in synthetic if r["graphs"] > 1]
    parts = [
        "## Frozen inference, milliseconds a graph",
        _by_size(batches, "inference", latency, _ms, _ratio),
        "## Training: graphs a second",
        _by_size(batches, "training", rate, _rate),
        "## Training: peak memory above data and model, MiB",
        _by_size(batches, "training", peak, _mib, _paper_memory),
        "## Single graphs, ART",
        _single([r for r in synthetic if r["graphs"] == 1]),
        "## Datasets",
        _real([r for r in records if r["target"] is not None]),
        "## Log-log slopes over the number of nodes",
        _slopes(synthetic),
        _conditions(records),
    ]
    return "\n\n".join(parts)


def _by_size(
    records: Sequence[Record],
    task: str,
    value: Callable[[Record], float | None],
    form: Callable[[float | None], str],
    more: Callable[[dict[str, Record], int], dict[str, str]] | None = None,
) -> str:
    """A row a size, a column a method, and what is said of the row."""
    own = [r for r in records if r["task"] == task]
    methods = ordered(own, "method", METHODS)
    body, head = [], ["N", *methods]
    for nodes in sorted({r["nodes"] for r in own}):
        found = {r["method"]: r for r in own if r["nodes"] == nodes}
        extra = {} if more is None else more(found, nodes)
        head = ["N", *methods, *extra]
        cells = [_marked(found.get(m), value, form) for m in methods]
        body.append([f"{nodes:,}", *cells, *extra.values()])
    return rows(head, body)


def _marked(
    record: Record | None,
    value: Callable[[Record], float | None],
    form: Callable[[float | None], str],
) -> str:
    if record is None:
        return "-"
    if record["state"] == "finished":
        return form(value(record))
    if record["iteration"] is None:
        return f"{'<' if value is rate else '>'} {form(value(record))} (over the cap)"
    managed = f"{record['timed']} timed" if record["timed"] else f"{record['warm']} warm-up"
    if record["parts"]:
        managed = f"{record['parts']} of {record['graphs']} graphs"
    return f"{form(value(record))} (over the cap, {managed})"


def _ratio(found: dict[str, Record], nodes: int) -> dict[str, str]:
    made = {f"{method} / ART": "-" for method in METHODS[1:]}
    for method in METHODS[1:]:
        if "ART" in found and method in found:
            times = latency(found[method]) / latency(found["ART"])
            bound = "> " if found[method]["iteration"] is None else ""
            made[f"{method} / ART"] = f"{bound}{times:,.0f}x"
    known = PAPER_RATIO.get(nodes)
    made["the paper's SCGFM / ART"] = "-" if known is None else f"{known:,.0f}x"
    return made


def _paper_memory(found: dict[str, Record], nodes: int) -> dict[str, str]:
    known = PAPER_GIB.get(nodes)
    return {"the paper's ART, GPU": "-" if known is None else f"{known * 1024:,.0f}"}


def _single(records: Sequence[Record]) -> str:
    head = ["N", "inference, ms", "bytes a node", "training step, ms", "bytes a node"]
    body = []
    for nodes in sorted({r["nodes"] for r in records}):
        found = {r["task"]: r for r in records if r["nodes"] == nodes}
        cells = []
        for task in ("inference", "training"):
            record = found.get(task)
            memory = None if record is None else record["peak"]
            cells.append(_marked(record, latency, _ms))
            cells.append("-" if memory is None else f"{memory / nodes:,.0f}")
        body.append([f"{nodes:,}", *cells])
    return rows(head, body)


def _real(records: Sequence[Record]) -> str:
    head = ["data", "mean nodes", "method", "training, graphs/s", f"inference, {MS}"]
    head += ["training, MiB", "inference, MiB"]
    body = []
    for target in ordered(records, "target", ("COLLAB", "Computers")):
        own = [r for r in records if r["target"] == target]
        size = f"{own[0]['total_nodes'] / own[0]['graphs']:,.0f}"
        for method in ordered(own, "method", (*METHODS, *OTHERS)):
            found = {r["task"]: r for r in own if r["method"] == method}
            training, inference = found.get("training"), found.get("inference")
            cells = [
                _marked(training, rate, _rate),
                _marked(inference, latency, _ms),
                _mib(None if training is None else peak(training)),
                _mib(None if inference is None else peak(inference)),
            ]
            body.append([target, size, method, *cells])
    for (target, method), (speed, ms, gib) in PAPER_REAL.items():
        cells = [f"{speed:,.0f}", f"{ms:.3f}", f"{gib * 1024:,.0f}", "-"]
        body.append([f"{target}, paper (GPU)", "-", method, *cells])
    return rows(head, body)


def series(
    records: Sequence[Record], method: str, task: str, value: Callable[[Record], float | None]
) -> list[tuple[float, float]]:
    """(nodes, value) by nodes, of what has a value above zero."""
    own = [(r["nodes"], value(r)) for r in records if r["method"] == method and r["task"] == task]
    return sorted((nodes, found) for nodes, found in own if found)


def _measured(records: Sequence[Record]) -> list[Record]:
    return [r for r in records if r["iteration"] is not None]


def _slopes(records: Sequence[Record]) -> str:
    body = []
    for name, own in (
        ("batches", [r for r in _measured(records) if r["graphs"] > 1]),
        ("single graphs", [r for r in _measured(records) if r["graphs"] == 1]),
    ):
        for method in ordered(own, "method", METHODS):
            cells = [
                slope(series(own, method, task, value))
                for task, value in (
                    ("inference", latency),
                    ("training", latency),
                    ("training", peak),
                )
            ]
            body.append([name, method, *("-" if c is None else f"{c:.2f}" for c in cells)])
    body.append(["batches", "ART, paper", "0.97 (2,048 to 4,096)", "-", f"{PAPER_SLOPE}"])
    return rows(["graphs", "method", "inference time", "training time", "training memory"], body)


def _conditions(records: Sequence[Record]) -> str:
    threads = sorted({r["threads"] for r in records})
    loads = [r["load"] for r in records]
    caps = ", ".join(f"{cap:g}" for cap in sorted({r["cap"] for r in records}))
    over = sum(r["state"] != "finished" for r in records)
    shared = "; the machine was shared, so that times are upper bounds"
    return (
        f"Threads: {', '.join(map(str, threads))}. Cap: {caps} s a configuration, warm-up included;"
        f" {over} of {len(records)} were ended by it. Load average before the configurations: "
        f"{min(loads):.1f} to {max(loads):.1f}, median {np.median(loads):.1f}"
        f"{shared if max(loads) > SHARED else ''}. In the figure, open markers are configurations "
        "that the cap ended, large triangles lower bounds of those that finished nothing, and "
        "crosses the paper's values of a GPU."
    )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:,.1f}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _mib(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def figure(records: Sequence[Record]) -> Any:
    """Frozen latency (a) and peak training memory (b) over the number of nodes, both logarithmic.

    Open markers are configurations that the cap ended, large triangles those that finished no
    iteration, so that they lie above; crosses are the paper's, of a GPU.
    """
    made = figures.blank(9.6, 4.2)
    left, right = made.subplots(1, 2)
    synthetic = [r for r in records if r["target"] is None]
    panels: tuple[tuple[Any, str, Callable[[Record], float | None]], ...] = (
        (left, "inference", latency),
        (right, "training", peak),
    )
    for panel, task, value in panels:
        for i, (method, single) in enumerate([*((m, False) for m in METHODS), ("ART", True)]):
            own = [r for r in synthetic if (r["graphs"] == 1) == single]
            points = series(_measured(own), method, task, value)
            if not points:
                continue
            label = f"{method}, single graphs" if single else method
            panel.plot(
                *zip(*points, strict=True),
                ls="--" if single else "-",
                lw=1.2,
                color=figures.COLOURS[i],
                label=label if panel is left else None,
            )
            kinds = (
                ([r for r in _measured(own) if r["state"] == "finished"], i, figures.COLOURS[i]),
                ([r for r in _measured(own) if r["state"] != "finished"], i, "white"),
                ([r for r in own if r["iteration"] is None], None, figures.COLOURS[i]),
            )
            for chosen, marker, fill in kinds:
                shown = series(chosen, method, task, value)
                if shown:
                    look = "^" if marker is None else figures.MARKERS[marker]
                    panel.plot(
                        *zip(*shown, strict=True),
                        look,
                        ms=8 if marker is None else 5,
                        ls="",
                        color=figures.COLOURS[i],
                        mfc=fill,
                    )
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xlabel("nodes a graph", fontsize=9, color=figures.MUTED)
        figures.plain_axes(panel)
    for (method, nodes), ms in PAPER_MS.items():
        colour = figures.COLOURS[METHODS.index(method)]
        name = f"the paper's {method}, GPU" if nodes == 2048 else None
        left.plot([nodes], [ms], "x", color=colour, ms=7, label=name)
    memory = [gib * 1024 for gib in PAPER_GIB.values()]
    right.plot(list(PAPER_GIB), memory, "x", color=figures.COLOURS[0], ms=7)
    left.set_ylabel(f"(a) inference, {MS}", color=figures.INK)
    right.set_ylabel("(b) training, peak MiB", color=figures.INK)
    made.legend(ncols=4, fontsize=8, loc="outside upper center", frameon=False)
    return made
