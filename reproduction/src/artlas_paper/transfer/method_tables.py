"""The table of all methods: accuracies and ranks beside the paper's, and what each of them took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artlas_paper.methods.registry import METHODS, Level
from artlas_paper.transfer import paper_tables
from artlas_paper.transfer.records import Record
from artlas_paper.transfer.tables import Row, accuracies, averaged, targets_in

ART = {("art", "paper"): "ART, the paper's z", ("art", "plus"): "ART, z+"}
CONTROLS = {
    "graph": {
        "sum": "sum pool",
        "mean": "mean pool",
        "degree-histogram": "degree histogram",
        "plus-no-roles": "z+ without roles",
    },
    "node": {
        "centre": "centre's features",
        "ppr-mean": "PPR mean of features",
        "mean": "mean pool",
        "sum": "sum pool",
        "degree-histogram": "degree histogram",
        "plus-no-roles": "z+ without roles",
    },
}


Published = Mapping[str, Mapping[str, paper_tables.Cell]]


def average_ranks(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean over targets of the rank among all methods, 1 the best; ties share their ranks."""
    from scipy.stats import rankdata  # slow to import

    names = list(values)
    table = np.array([values[name] for name in names])
    ranks = np.stack([rankdata(-column) for column in table.T], axis=1)
    return dict(zip(names, ranks.mean(1).tolist(), strict=True))


def chosen(records: Sequence[Record]) -> list[Record]:
    """Records of baselines by their chosen read-out, as a variant of its own."""
    made = []
    for r in records:
        if r["method"] in METHODS and r.get("chosen"):
            kind = "untrained" if r["variant"].endswith("-untrained") else "chosen"
            made.append({**r, "variant": kind})
    return made


def report(records: Sequence[Record], level: Level) -> str:
    """The tables in Markdown, at five shots; empty without any baseline."""
    own = [r for r in records if r["shots"] == 5]
    baselines = [r for r in own if r["method"] in METHODS]
    if not baselines:
        return ""
    everything = [*own, *chosen(baselines)]
    targets = targets_in(baselines, level)
    parts = [
        f"## All methods, 5 examples a class\n\n{_HEAD}{_RULE if level == 'node' else ''}",
        _accuracies(everything, level, targets),
        "What training changed, and what a method took: accuracy less that of the same method "
        "untrained, with the standard error over episodes; seconds of training (epochs times the "
        "median of their seconds) and the growth of peak memory, the largest of all folds; "
        "milliseconds to embed a graph.",
        _costs(everything, targets),
    ]
    if level == "node":
        parts += ["Both read-outs of the ego-graphs.", _read_outs(everything, targets)]
    return "\n\n".join(parts)


_HEAD = (
    "Percent correct ± deviation over 50 episodes, averaged over the seeds that there are. The "
    "average leaves out COLORS-3, whose label leaks; the rank is the mean over the same targets "
    "among the methods, without the controls, and with one ART: its z, or z+ in its place. In "
    "brackets the paper's, its average and rank over the same targets, COLORS-3 with the "
    "leak. ART is trained for 60 epochs (graphs) or until its plateau (nodes), baselines "
    "as the second table says."
)
_RULE = (
    " A baseline reads an ego-graph by pooling or by its centre, whichever is better on average "
    "over the source domains of the fold (10 episodes each): the target has no part in it. "
    "ogbn-arxiv has no features here: structural ones stand in, and no average has it."
)


def _name(target: str) -> str:
    return target.removesuffix("-clean")


def _accuracies(records: Sequence[Record], level: Level, targets: Sequence[str]) -> str:
    counted, paper = averaged(targets), paper_tables.accuracies(level)
    there = {r["method"] for r in records}
    rows: dict[str, Row] = {
        entry.title: (name, "chosen") for name, entry in METHODS.items() if name in there
    }
    rows |= {title: row for row, title in ART.items()}
    means = {title: _means(records, row, counted) for title, row in rows.items()}
    means = {title: own for title, own in means.items() if len(own) == len(counted)}
    ranks = _ranks(means)
    theirs = {
        name: [row[_name(target)][0] for target in counted]
        for name, row in paper.items()
        if all(_name(target) in row for target in counted)
    }
    their_ranks = average_ranks(theirs) if theirs else {}
    lines = ["| | " + " | ".join(targets) + f" | average of {len(counted)} | rank |"]
    lines.append("|---" * (len(targets) + 3) + "|")
    rows |= {title: ("control", name) for name, title in CONTROLS[level].items()}
    for title, row in rows.items():
        cells = [_cell(records, row, target, paper) for target in targets]
        whole = _means(records, row, counted)
        cells.append(f"{np.mean(whole):.2f}" if len(whole) == len(counted) else "-")
        cells.append(f"{ranks[title]:.2f}" if title in ranks else "-")
        if (name := _published(row)) in theirs:
            cells[-2] += f" [{np.mean(theirs[name]):.2f}]"
            cells[-1] += f" [{their_ranks[name]:.2f}]"
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _ranks(means: dict[str, list[float]]) -> dict[str, float]:
    """Average ranks as in the paper, with one ART among the methods: its z, or z+ in its place."""
    paper, plus = ART.values()
    own = {title: values for title, values in means.items() if title != plus}
    ranks = average_ranks(own) if own else {}
    if plus in means:
        other = {title: values for title, values in means.items() if title != paper}
        ranks[plus] = average_ranks(other)[plus]
    return ranks


def _means(records: Sequence[Record], row: Row, targets: Sequence[str]) -> list[float]:
    """Percent correct on every target that there is something of."""
    found = [accuracies(records, row, target, 5) for target in targets]
    return [float(values.mean()) for values in found if values is not None]


def _published(row: Row) -> str:
    """The row of the paper's table that a row of ours is to be compared with."""
    return "" if row in (("art", "plus"),) or row[0] == "control" else row[0]


def _cell(
    records: Sequence[Record],
    row: Row,
    target: str,
    paper: Mapping[str, Mapping[str, paper_tables.Cell]],
) -> str:
    found = accuracies(records, row, target, 5)
    if found is None:
        return "-"
    theirs = paper.get(_published(row), {}).get(target)
    beside = "" if theirs is None else f" [{theirs[0]:.2f}]"
    return f"{found.mean():.2f} ± {found.std():.2f}{beside}"


def _costs(records: Sequence[Record], targets: Sequence[str]) -> str:
    lines = ["| | epochs | trained - untrained | training, s | memory, MiB | embedding, ms |"]
    lines.append("|---" * 6 + "|")
    for name, entry in METHODS.items():
        own = [r for r in records if r["method"] == name and r["variant"] == "chosen"]
        if not own:
            continue
        costs = [r["cost"] for r in own]
        gains, errors = [], []
        for target in averaged(targets):
            a, b = (accuracies(records, (name, k), target, 5) for k in ("chosen", "untrained"))
            if a is not None and b is not None:
                gains.append(float((a - b).mean()))
                errors.append(float((a - b).std()) / len(a) ** 0.5)
        gain = f"{np.mean(gains):+.2f} ({np.linalg.norm(errors) / len(errors):.2f})"
        seconds, memory = max(c["seconds"] for c in costs), max(c["peak_mib"] for c in costs)
        each = np.median([c["embed_ms"] for c in costs])
        lines.append(
            f"| {entry.title} | {_epochs(own)} | {gain} | {seconds:.0f} | {memory} | {each:.2f} |"
        )
    return "\n".join(lines)


def _epochs(records: Sequence[Record]) -> str:
    """The epochs of all folds, of how many, and the rule that may have ended them.

    Targets that stand aside are named where their folds had other epochs.
    """
    by_target: dict[str, list[Mapping[str, Any]]] = {}
    for r in records:
        by_target.setdefault(r["target"], []).append(r["cost"])
    counted = averaged(list(by_target))
    usual = _count([cost for target in counted for cost in by_target[target]])
    aside = {target: _count(costs) for target, costs in by_target.items() if target not in counted}
    others = [f"{target}: {text}" for target, text in aside.items() if text != usual]
    return "; ".join([usual, *others])


def _count(costs: Sequence[Mapping[str, Any]]) -> str:
    counts = {c["epochs"] for c in costs}
    rules = sorted({rule for c in costs if (rule := c.get("plateau")) is not None})
    several = f"{min(counts)} to " if len(counts) > 1 else ""
    text = f"{several}{max(counts)} of {costs[0]['of']}"
    return text + "".join(f", plateau {100 * rule:g} %" for rule in rules)


def _read_outs(records: Sequence[Record], targets: Sequence[str]) -> str:
    lines = ["| | " + " | ".join(targets) + " |", "|---" * (len(targets) + 1) + "|"]
    for name, entry in METHODS.items():
        for way in ("pool", "centre"):
            cells = []
            for target in targets:
                found = accuracies(records, (name, way), target, 5)
                mark = any(
                    r["method"] == name
                    and r["variant"] == way
                    and r["target"] == target
                    and r.get("chosen")
                    for r in records
                )
                text = "-" if found is None else f"{found.mean():.2f}"
                cells.append(f"**{text}**" if mark else text)
            if set(cells) != {"-"}:
                lines.append(f"| {entry.title}, {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
