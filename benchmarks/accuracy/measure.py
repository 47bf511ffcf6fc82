"""Measure rows over splits, and store what each gave as soon as it is there."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas import Graphs
from benchmarks.accuracy.calibration import Reliability
from benchmarks.accuracy.records import Record
from benchmarks.accuracy.rows import Prediction, Predictor, Prepare
from benchmarks.accuracy.splits import Split, hash_splits

Labels = NDArray[np.int64]
Settings = Mapping[str, Sequence[Split]]  # splits by the name of a setting


def measure_rows(
    record: Record,
    graphs: Graphs,
    labels: Labels,
    settings: Settings,
    rows: Mapping[str, Prepare],
    about: Mapping[str, Any],
    again: bool = False,
) -> None:
    """Measure rows that the record lacks, or all of them again.

    about: what tells how the splits were made (seeds, ...), for the record.
    """
    facts = {name: splits_facts(splits, labels, about) for name, splits in settings.items()}
    for row, prepare in rows.items():
        missing = [
            name for name in settings if again or not record.get(row, name, facts[name]["hash"])
        ]
        if not missing:
            continue
        start, cpu = time.perf_counter(), time.process_time()
        predictor = prepare(graphs)
        made = {"embed_seconds": time.perf_counter() - start}
        made["embed_cpu_seconds"] = time.process_time() - cpu
        for name in missing:
            results = {**made, **measure(predictor, labels, settings[name])}
            record.put(row, name, facts[name], results)
            say(record.dataset, row, name, results)


def splits_facts(
    splits: Sequence[Split], labels: Labels, about: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe the splits for a record."""
    counts = {"count": len(splits), "graphs": len(labels), "classes": int(labels.max()) + 1}
    return {"hash": hash_splits(splits), **counts, **about}


def measure(predictor: Predictor, labels: Labels, splits: Sequence[Split]) -> dict[str, Any]:
    """Learn from the training part of every split, and score the test part.

    Test labels are read only after prediction. CPU seconds are those of all threads together, which
    other processes slow down less than the clock's.
    """
    accuracies, notes, seconds, cpu_seconds = [], [], 0.0, 0.0
    reliability: Reliability | None = None
    for split in splits:
        start, cpu = time.perf_counter(), time.process_time()
        found: Prediction = predictor(split.train, labels[split.train], split.test)
        seconds += time.perf_counter() - start
        cpu_seconds += time.process_time() - cpu
        accuracies.append(float(np.mean(found.classes == labels[split.test])))
        if found.notes:
            notes.append(dict(found.notes))
        if found.probabilities is not None:
            own = Reliability.of(found.probabilities, labels[split.test])
            reliability = own if reliability is None else reliability + own
    results: dict[str, Any] = {"seconds": seconds, "cpu_seconds": cpu_seconds}
    results["accuracies"] = accuracies
    if reliability is not None:
        results["calibration_error"] = reliability.error
    if notes:
        results["notes"] = notes
    return results


def say(dataset: str, row: str, setting: str, results: Mapping[str, Any]) -> None:
    """Print a line about what was measured."""
    mean = 100 * np.mean(results["accuracies"])
    seconds = f"{results['embed_seconds']:.1f} + {results['seconds']:.1f} s"
    print(f"{dataset:16} {row:32} {setting:10} {mean:5.1f} %  {seconds}", file=sys.stderr)
