"""Tables that compare rows over datasets: accuracies, our paired leads and calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.accuracy.markdown import bold_best, table
from benchmarks.accuracy.records import Record
from benchmarks.accuracy.statistics import Estimate, difference, estimate, over_sets

Results = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by row and dataset
OURS = "artlas"


def results_of(records: Sequence[Record], setting: str, rows: Sequence[str]) -> Results:
    """Collect the results under a setting, by row and dataset."""
    return {
        row: {r.dataset: r.rows[row][setting] for r in records if setting in r.rows.get(row, {})}
        for row in rows
        if any(setting in record.rows.get(row, {}) for record in records)
    }


def accuracy_table(results: Results, datasets: Sequence[str]) -> str:
    """Tabulate mean ± standard error of every row on every dataset, and the mean over all.

    A row that lacks a dataset has no mean.
    """
    cells: dict[str, list[str]] = {row: [row] for row in results}
    found = {
        row: {name: estimate(own["accuracies"]) for name, own in by_set.items()}
        for row, by_set in results.items()
    }
    for name in datasets:
        column = {row: own[name].points() if name in own else "" for row, own in found.items()}
        values = {row: own[name].mean for row, own in found.items() if name in own}
        for row, cell in bold_best(column, values).items():
            cells[row].append(cell)
    means = {
        row: over_sets([own[name] for name in datasets])
        for row, own in found.items()
        if all(name in own for name in datasets)
    }
    column = {row: means[row].points() if row in means else "" for row in found}
    for row, cell in bold_best(column, {row: each.mean for row, each in means.items()}).items():
        cells[row].append(cell)
    return table(["accuracy, %", *datasets, "mean"], cells.values())


def lead_of(results: Results, other: str, datasets: Sequence[str]) -> dict[str, Estimate]:
    """Estimate our paired lead over another row, by dataset that both have."""
    ours, theirs = results[OURS], results[other]
    return {
        name: difference(ours[name]["accuracies"], theirs[name]["accuracies"])
        for name in datasets
        if name in ours and name in theirs
    }


def lead_table(results: Results, datasets: Sequence[str]) -> str:
    """Tabulate our paired leads over every other row, and on how many datasets we are ahead."""
    rows = []
    for other in results:
        if other == OURS:
            continue
        leads = lead_of(results, other, datasets)
        if not leads:
            continue
        cells = [leads[name].points(signed=True) if name in leads else "" for name in datasets]
        ahead = sum(lead.mean > 0 for lead in leads.values())
        mean = over_sets(list(leads.values())).points(signed=True)
        rows.append([other, *cells, mean, f"{ahead} of {len(leads)}"])
    return table([f"{OURS} minus", *datasets, "mean", "ahead"], rows)


def calibration_table(results: Results, datasets: Sequence[str]) -> str:
    """Tabulate the expected calibration errors."""
    rows = []
    for row, by_set in results.items():
        values = [by_set.get(name, {}).get("calibration_error") for name in datasets]
        if any(value is not None for value in values):
            known = [value for value in values if value is not None]
            cells = ["" if value is None else f"{value:.3f}" for value in values]
            mean = f"{sum(known) / len(known):.3f}" if len(known) == len(datasets) else ""
            rows.append([row, *cells, mean])
    return table(["calibration error", *datasets, "mean"], rows)


def seconds_table(results: Results, datasets: Sequence[str]) -> str:
    """Tabulate the seconds of embedding + of all splits (fit and predict)."""
    rows = [
        [
            row,
            *(
                f"{own[name]['embed_seconds']:.1f} + {own[name]['seconds']:.1f}"
                if name in own
                else ""
                for name in datasets
            ),
        ]
        for row, own in results.items()
    ]
    return table(["embed + all splits, s", *datasets], rows)
