"""The paper's two main tables: accuracies and ranks of all methods, and what each of them took.

The tables are "Cross-domain 5-shot graph classification results" and "Cross-domain 5-shot node
classification results"; published values stand in brackets beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artlas_paper import published_results
from artlas_paper.methods.registry import METHODS
from artlas_paper.protocol import ART_EPOCHS, EPISODES, SHOTS, Level
from artlas_paper.published_results import Cell
from artlas_paper.tables.accuracies import (
    Row,
    accuracies,
    averaged,
    markdown_table,
    rows_of,
    standard_error,
    targets_in,
)
from artlas_paper.transfer import beyond
from artlas_paper.transfer.baselines import CHOICE_EPISODES, READ_OUTS
from artlas_paper.transfer.records import Record

ART = {("art", "paper"): "ART, the paper's z", ("art", "plus"): "ART, z+"}
BEYOND = {
    "beyond the paper: blocks, prototype head": (beyond.METHOD, "blocks"),
    "beyond the paper: blocks, kernel head": (beyond.METHOD, "blocks-kernel"),
}
_POOLS = {
    "mean": "mean pool",
    "sum": "sum pool",
    "degree-histogram": "degree histogram",
    "plus-no-roles": "z+ without roles",
}
CONTROLS = {
    "graph": {"sum": "sum pool", **_POOLS},
    "node": {"centre": "centre's features", "ppr-mean": "PPR mean of features", **_POOLS},
}


def report(records: Sequence[Record], level: Level) -> str:
    """Return the tables in Markdown, at the paper's shots; empty without any baseline."""
    own = [r for r in records if r["shots"] == SHOTS]
    baselines = [r for r in own if r["method"] in METHODS]
    if not baselines:
        return ""
    everything = [*own, *with_chosen_read_out(baselines)]
    targets = targets_in(baselines, level)
    parts = [
        f"## All methods, {SHOTS} examples a class\n\n"
        f"{_HEAD}{_READ_OUT_RULE if level == 'node' else ''}",
        _accuracy_table(everything, level, targets),
        "What training changed, and what a method took: accuracy less that of the same method "
        "untrained, with the standard error over episodes; seconds of training (epochs times the "
        "median of their seconds) and the growth of peak memory, the largest of all folds; "
        "milliseconds to embed a graph.",
        _cost_table(everything, targets),
    ]
    if level == "node":
        parts += ["Both read-outs of the ego-graphs.", _read_out_table(everything, targets)]
    return "\n\n".join(parts)


_HEAD = (
    f"Percent correct ± deviation over {EPISODES} episodes, averaged over the seeds that there "
    "are. The average leaves out COLORS-3, whose label leaks; the rank is the mean over the same "
    "targets among the methods, without the controls, and with one ART: its z, or z+ in its place. "
    "In brackets the paper's, its average and rank over the same targets, COLORS-3 with the "
    f"leak. ART is trained for {ART_EPOCHS} epochs (graphs) or until its plateau (nodes), "
    "baselines as the second table says."
)
_READ_OUT_RULE = (
    " A baseline reads an ego-graph by pooling or by its centre, whichever is better on average "
    f"over the source domains of the fold ({CHOICE_EPISODES} episodes each): the target has no "
    "part in it. ogbn-arxiv has no features here: structural ones stand in, and no average has it."
)


def average_ranks(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Average over targets the rank among all methods, 1 the best; ties share their ranks."""
    from scipy.stats import rankdata  # slow to import

    names = list(values)
    table = np.array([values[name] for name in names])
    ranks = np.stack([rankdata(-column) for column in table.T], axis=1)
    return dict(zip(names, ranks.mean(1).tolist(), strict=True))


def with_chosen_read_out(records: Sequence[Record]) -> list[Record]:
    """Return the records of the chosen read-outs, as variants ``chosen`` and ``untrained``."""
    return [
        {**r, "variant": "untrained" if r["variant"].endswith("-untrained") else "chosen"}
        for r in records
        if r["method"] in METHODS and r.get("chosen")
    ]


def _accuracy_table(records: Sequence[Record], level: Level, targets: Sequence[str]) -> str:
    counted, paper = averaged(targets), published_results.accuracies(level)
    methods = {r["method"] for r in records}
    rows: dict[str, Row] = {
        entry.title: (name, "chosen") for name, entry in METHODS.items() if name in methods
    }
    rows |= {title: row for row, title in ART.items()}
    means = {title: _means(records, row, counted) for title, row in rows.items()}
    ranks = _ranks({title: own for title, own in means.items() if len(own) == len(counted)})
    published = {
        name: [row[_published_target(target)][0] for target in counted]
        for name, row in paper.items()
        if all(_published_target(target) in row for target in counted)
    }
    published_ranks = average_ranks(published) if published else {}
    rows |= {title: ("control", name) for name, title in CONTROLS[level].items()}
    rows |= {title: row for title, row in BEYOND.items() if row in rows_of(records)}
    body = []
    for title, row in rows.items():
        cells = [_cell(records, row, target, paper) for target in targets]
        own = _means(records, row, counted)
        average = f"{np.mean(own):.2f}" if len(own) == len(counted) else "-"
        rank = f"{ranks[title]:.2f}" if title in ranks else "-"
        if (name := _published_method(row)) in published:
            average += f" [{np.mean(published[name]):.2f}]"
            rank += f" [{published_ranks[name]:.2f}]"
        body.append([title, *cells, average, rank])
    return markdown_table(["", *targets, f"average of {len(counted)}", "rank"], body)


def _ranks(means: dict[str, list[float]]) -> dict[str, float]:
    """Average ranks as in the paper, with one ART among the methods: its z, or z+ in its place."""
    z, z_plus = ART.values()
    with_z = {title: values for title, values in means.items() if title != z_plus}
    ranks = average_ranks(with_z) if with_z else {}
    if z_plus in means:
        with_z_plus = {title: values for title, values in means.items() if title != z}
        ranks[z_plus] = average_ranks(with_z_plus)[z_plus]
    return ranks


def _means(records: Sequence[Record], row: Row, targets: Sequence[str]) -> list[float]:
    """Return the percent correct of a row on every target that has records of it."""
    by_target = [accuracies(records, row, target) for target in targets]
    return [float(values.mean()) for values in by_target if values is not None]


def _published_target(target: str) -> str:
    return target.removesuffix("-clean")


def _published_method(row: Row) -> str:
    """Return the row of the paper's table that a row of ours is compared with, or nothing."""
    return "" if row == ("art", "plus") or row[0] == "control" else row[0]


def _cell(
    records: Sequence[Record], row: Row, target: str, paper: Mapping[str, Mapping[str, Cell]]
) -> str:
    values = accuracies(records, row, target)
    if values is None:
        return "-"
    published = paper.get(_published_method(row), {}).get(target)
    beside = "" if published is None else f" [{published[0]:.2f}]"
    return f"{values.mean():.2f} ± {values.std():.2f}{beside}"


def _cost_table(records: Sequence[Record], targets: Sequence[str]) -> str:
    head = ["", "epochs", "trained - untrained", "training, s", "memory, MiB", "embedding, ms"]
    body = []
    for name, entry in METHODS.items():
        own = [r for r in records if r["method"] == name and r["variant"] == "chosen"]
        if not own:
            continue
        gains, errors = [], []
        for target in averaged(targets):
            a, b = (accuracies(records, (name, k), target) for k in ("chosen", "untrained"))
            if a is not None and b is not None:
                gains.append(float((a - b).mean()))
                errors.append(standard_error(a - b))
        costs = [r["cost"] for r in own]
        body.append(
            [
                entry.title,
                _epochs(own),
                f"{np.mean(gains):+.2f} ({np.linalg.norm(errors) / len(errors):.2f})",
                f"{max(c['seconds'] for c in costs):.0f}",
                f"{max(c['peak_mib'] for c in costs)}",
                f"{np.median([c['embed_ms'] for c in costs]):.2f}",
            ]
        )
    return markdown_table(head, body)


def _epochs(records: Sequence[Record]) -> str:
    """Return the epochs of all folds, out of how many, and the rule that may have ended them.

    Targets outside the averages are named where their folds had other epochs.
    """
    by_target: dict[str, list[Mapping[str, Any]]] = {}
    for r in records:
        by_target.setdefault(r["target"], []).append(r["cost"])
    counted = averaged(list(by_target))
    usual = _epochs_of([cost for target in counted for cost in by_target[target]])
    others = {t: _epochs_of(costs) for t, costs in by_target.items() if t not in counted}
    return "; ".join([usual, *(f"{t}: {text}" for t, text in others.items() if text != usual)])


def _epochs_of(costs: Sequence[Mapping[str, Any]]) -> str:
    counts = {c["epochs"] for c in costs}
    rules = sorted({rule for c in costs if (rule := c.get("plateau")) is not None})
    least = f"{min(counts)} to " if len(counts) > 1 else ""
    text = f"{least}{max(counts)} of {costs[0]['of']}"
    return text + "".join(f", plateau {100 * rule:g} %" for rule in rules)


def _read_out_table(records: Sequence[Record], targets: Sequence[str]) -> str:
    """Compare the read-outs of the ego-graphs; the chosen ones are bold."""
    chosen = {(r["method"], r["variant"], r["target"]) for r in records if r.get("chosen")}
    body = []
    for name, entry in METHODS.items():
        for way in READ_OUTS["node"]:
            cells = []
            for target in targets:
                values = accuracies(records, (name, way), target)
                text = "-" if values is None else f"{values.mean():.2f}"
                cells.append(f"**{text}**" if (name, way, target) in chosen else text)
            if set(cells) != {"-"}:
                body.append([f"{entry.title}, {way}", *cells])
    return markdown_table(["", *targets], body)
