"""Make the tables and the figure of the study of efficiency, beside the paper's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from artlas_paper import figures
from artlas_paper.studies.efficiency_worker import METHODS, OTHERS
from artlas_paper.studies.plots import finish_panel, legend_above, panel_row
from artlas_paper.studies.tables import distinct, markdown_table, where
from artlas_paper.transfer.records import Record

MS = "ms a graph"
SHARED = 3.0  # a load average above what one configuration causes
# The paper's ratios of SCGFM's latency to ART's, latencies, and ART's memory in training.
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
    """Compute milliseconds per graph, or the bound of the cap where no iteration finished."""
    seconds = record["iteration"]
    return 1e3 * (record["cap"] if seconds is None else seconds) / record["graphs"]


def rate(record: Record) -> float:
    """Compute graphs per second."""
    return 1e3 / latency(record)


def peak(record: Record) -> float | None:
    """Compute the peak of memory in MiB."""
    return None if record["peak"] is None else record["peak"] / 2**20


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Fit the slope of log y over log x by least squares; None for fewer than two points."""
    if len(points) < 2:
        return None
    x, y = np.log(np.array(points, dtype=np.float64)).T
    return float(np.polyfit(x, y, 1)[0])


def table(records: Sequence[Record]) -> str:
    """Tabulate scaling, single graphs, datasets and slopes, and state the conditions."""
    synthetic = where(records, target=None)
    batches = [r for r in synthetic if r["graphs"] > 1]
    parts = [
        "## Frozen inference, milliseconds a graph",
        _by_size(batches, "inference", latency, _ms, _ratio_columns),
        "## Training: graphs a second",
        _by_size(batches, "training", rate, _number),
        "## Training: peak memory above data and model, MiB",
        _by_size(batches, "training", peak, _number, _paper_memory_column),
        "## Single graphs, ART",
        _single_graphs(where(synthetic, graphs=1)),
        "## Datasets",
        _datasets([r for r in records if r["target"] is not None]),
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
    extra_columns: Callable[[dict[str, Record], int], dict[str, str]] | None = None,
) -> str:
    """Tabulate a value by size and method, with extra columns."""
    own = where(records, task=task)
    methods = distinct(own, "method", METHODS)
    body, head = [], ["N", *methods]
    for nodes in sorted({r["nodes"] for r in own}):
        by_method = {r["method"]: r for r in where(own, nodes=nodes)}
        extra = {} if extra_columns is None else extra_columns(by_method, nodes)
        head = ["N", *methods, *extra]
        cells = [_cell(by_method.get(m), value, form) for m in methods]
        body.append([f"{nodes:,}", *cells, *extra.values()])
    return markdown_table(head, body)


def _cell(
    record: Record | None,
    value: Callable[[Record], float | None],
    form: Callable[[float | None], str],
) -> str:
    """Format a value; a configuration ended by the cap says what it finished."""
    if record is None:
        return "-"
    if record["state"] == "finished":
        return form(value(record))
    if record["iteration"] is None:
        return f"{'<' if value is rate else '>'} {form(value(record))} (over the cap)"
    finished = f"{record['timed']} timed" if record["timed"] else f"{record['warm']} warm-up"
    if record["parts"]:
        finished = f"{record['parts']} of {record['graphs']} graphs"
    return f"{form(value(record))} (over the cap, {finished})"


def _ratio_columns(by_method: dict[str, Record], nodes: int) -> dict[str, str]:
    ratios = {f"{method} / ART": "-" for method in METHODS[1:]}
    for method in METHODS[1:]:
        if "ART" in by_method and method in by_method:
            times = latency(by_method[method]) / latency(by_method["ART"])
            bound = "> " if by_method[method]["iteration"] is None else ""
            ratios[f"{method} / ART"] = f"{bound}{times:,.0f}x"
    known = PAPER_RATIO.get(nodes)
    ratios["the paper's SCGFM / ART"] = "-" if known is None else f"{known:,.0f}x"
    return ratios


def _paper_memory_column(by_method: dict[str, Record], nodes: int) -> dict[str, str]:
    known = PAPER_GIB.get(nodes)
    return {"the paper's ART, GPU": "-" if known is None else f"{known * 1024:,.0f}"}


def _single_graphs(records: Sequence[Record]) -> str:
    head = ["N", "inference, ms", "bytes a node", "training step, ms", "bytes a node"]
    body = []
    for nodes in sorted({r["nodes"] for r in records}):
        by_task = {r["task"]: r for r in where(records, nodes=nodes)}
        cells = []
        for task in ("inference", "training"):
            record = by_task.get(task)
            memory = None if record is None else record["peak"]
            cells.append(_cell(record, latency, _ms))
            cells.append("-" if memory is None else f"{memory / nodes:,.0f}")
        body.append([f"{nodes:,}", *cells])
    return markdown_table(head, body)


def _datasets(records: Sequence[Record]) -> str:
    head = ["data", "mean nodes", "method", "training, graphs/s", f"inference, {MS}"]
    head += ["training, MiB", "inference, MiB"]
    body = []
    for target in distinct(records, "target", ("COLLAB", "Computers")):
        own = where(records, target=target)
        size = f"{own[0]['total_nodes'] / own[0]['graphs']:,.0f}"
        for method in distinct(own, "method", (*METHODS, *OTHERS)):
            by_task = {r["task"]: r for r in where(own, method=method)}
            training, inference = by_task.get("training"), by_task.get("inference")
            cells = [
                _cell(training, rate, _number),
                _cell(inference, latency, _ms),
                _number(None if training is None else peak(training)),
                _number(None if inference is None else peak(inference)),
            ]
            body.append([target, size, method, *cells])
    for (target, method), (speed, ms, gib) in PAPER_REAL.items():
        cells = [f"{speed:,.0f}", f"{ms:.3f}", f"{gib * 1024:,.0f}", "-"]
        body.append([f"{target}, paper (GPU)", "-", method, *cells])
    return markdown_table(head, body)


def series(
    records: Sequence[Record], value: Callable[[Record], float | None]
) -> list[tuple[float, float]]:
    """List (nodes, value) by nodes, without values that are zero or missing."""
    points = [(r["nodes"], value(r)) for r in records]
    return sorted((nodes, y) for nodes, y in points if y)


def _measured(records: Sequence[Record]) -> list[Record]:
    return [r for r in records if r["iteration"] is not None]


def _slopes(records: Sequence[Record]) -> str:
    body = []
    for name, own in (
        ("batches", [r for r in _measured(records) if r["graphs"] > 1]),
        ("single graphs", where(_measured(records), graphs=1)),
    ):
        for method in distinct(own, "method", METHODS):
            cells = [
                slope(series(where(own, method=method, task=task), value))
                for task, value in (
                    ("inference", latency),
                    ("training", latency),
                    ("training", peak),
                )
            ]
            body.append([name, method, *("-" if c is None else f"{c:.2f}" for c in cells)])
    body.append(["batches", "ART, paper", "0.97 (2,048 to 4,096)", "-", f"{PAPER_SLOPE}"])
    return markdown_table(
        ["graphs", "method", "inference time", "training time", "training memory"], body
    )


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
        "that the cap ended, large triangles are lower bounds for those that finished nothing, and "
        "crosses are the paper's values on a GPU."
    )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:,.1f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def figure(records: Sequence[Record]) -> Any:
    """Plot latency (a) and peak training memory (b) over the number of nodes, both logarithmic.

    Open markers are configurations that the cap ended; large triangles are lower bounds for those
    that finished no iteration; crosses are the paper's values on a GPU.
    """
    drawing, (left, right) = panel_row(2, 9.6, 4.2)
    synthetic = where(records, target=None)
    panels: tuple[tuple[Any, str, Callable[[Record], float | None]], ...] = (
        (left, "inference", latency),
        (right, "training", peak),
    )
    for panel, task, value in panels:
        for i, (method, single) in enumerate([*((m, False) for m in METHODS), ("ART", True)]):
            own = [r for r in synthetic if (r["graphs"] == 1) == single]
            label = f"{method}, single graphs" if single else method
            line = {"ls": "--" if single else "-", "label": label if panel is left else None}
            _plot_method(panel, i, where(own, method=method, task=task), value, **line)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        finish_panel(panel, xlabel="nodes a graph")
    for (method, nodes), ms in PAPER_MS.items():
        colour = figures.COLOURS[METHODS.index(method)]
        name = f"the paper's {method}, GPU" if nodes == 2048 else None
        left.plot([nodes], [ms], "x", color=colour, ms=7, label=name)
    memory = [gib * 1024 for gib in PAPER_GIB.values()]
    right.plot(list(PAPER_GIB), memory, "x", color=figures.COLOURS[0], ms=7)
    left.set_ylabel(f"(a) inference, {MS}", color=figures.INK)
    right.set_ylabel("(b) training, peak MiB", color=figures.INK)
    legend_above(drawing, 4)
    return drawing


def _plot_method(
    panel: Any,
    index: int,
    records: Sequence[Record],
    value: Callable[[Record], float | None],
    **line: Any,
) -> None:
    """Plot a line through what was measured, and a marker by how each configuration ended."""
    measured = _measured(records)
    points = series(measured, value)
    if not points:
        return
    colour, marker = figures.COLOURS[index], figures.MARKERS[index]
    panel.plot(*zip(*points, strict=True), lw=1.2, color=colour, **line)
    for chosen, look, size, fill in (
        (where(measured, state="finished"), marker, 5, colour),
        ([r for r in measured if r["state"] != "finished"], marker, 5, "white"),
        (where(records, iteration=None), "^", 8, colour),
    ):
        shown = series(chosen, value)
        if shown:
            panel.plot(*zip(*shown, strict=True), look, ms=size, ls="", color=colour, mfc=fill)
