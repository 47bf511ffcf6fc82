"""The study `shots`: 5, 20 and 50 labels a class on the development datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.accuracy import comparison, datasets, markdown
from benchmarks.accuracy.measure import measure_rows
from benchmarks.accuracy.records import Record, load_all
from benchmarks.accuracy.rows import ROWS
from benchmarks.accuracy.splits import Labels, Split, episodes
from benchmarks.accuracy.statistics import over_sets
from benchmarks.accuracy.study import Options

SHOTS = (5, 20, 50)
SPARE = 10  # graphs of every class that must be left to predict
TODAY = "z+, prototypes"
LEADS = {5: 2.5, 20: 7.0, 50: 9.0}  # points asked for over today's default
MEASURED = (
    "artlas",
    TODAY,
    "z+, kernel head",
    "log-sum pool, prototypes",
    "log-sum pool, kernel head",
    "degree histogram, kernel head",
)
ABOUT = """20 episodes of 5, 20 or 50 training graphs a class and at most 50 test graphs a class
(`artlas.evaluation.draw_episodes`, seed 42), the same for all rows; mean ± standard error over
episodes. "z+, prototypes" is the default before this classifier."""


def settings_of(labels: Labels) -> dict[str, list[Split]]:
    """Draw the episodes of every number of shots that leaves enough graphs of every class."""
    smallest = int(np.bincount(labels).min())
    return {str(n): episodes(labels, n) for n in SHOTS if smallest >= n + SPARE}


def run(options: Options) -> None:
    """Measure all rows, and write the page."""
    rows = options.chosen({row: ROWS[row] for row in MEASURED})
    for name in options.chosen_datasets(datasets.DEVELOPMENT):
        graphs, labels = datasets.read(options.data, name)
        record = Record(options.out, "shots", name)
        about = {"seeds": [42 + number for number in range(20)]}
        measure_rows(record, graphs, labels, settings_of(labels), rows, about, options.again)
    write(options)


def write(options: Options) -> None:
    """Write the page of all records."""
    records = load_all(options.out, "shots")
    sections = [ABOUT]
    known = [n for n in datasets.DEVELOPMENT if any(r.dataset == n for r in records)]
    for shots in SHOTS:
        results = comparison.results_of(records, str(shots), MEASURED)
        names = [n for n in known if any(n in by_set for by_set in results.values())]
        if not names:
            continue
        sections.append(f"## {shots} shots")
        if missing := [name for name in known if name not in names]:
            few = f"fewer than {shots + SPARE} graphs"
            sections.append(f"Left out, as a class has {few}: {', '.join(missing)}.")
        sections += _verdict(results, names, LEADS[shots])
        sections.append(comparison.accuracy_table(results, names))
        if comparison.OURS in results:
            sections += ["Paired by episode:", comparison.lead_table(results, names)]
    text = markdown.page("Few labels: development datasets", options.command, records, sections)
    markdown.write(options.out / "shots.md", text)


def _verdict(
    results: Mapping[str, Mapping[str, Mapping[str, object]]], names: Sequence[str], asked: float
) -> list[str]:
    if comparison.OURS not in results or TODAY not in results:
        return []
    leads = comparison.lead_of(results, TODAY, names)
    if not leads:
        return []
    mean = over_sets(list(leads.values()))
    met = "met" if 100 * mean.mean >= asked else "**missed**"
    lead = mean.points(signed=True)
    return [
        f"Lead over {TODAY}, mean of {len(leads)} datasets: {lead} points "
        f"(asked: {asked:+g}, {met})."
    ]
