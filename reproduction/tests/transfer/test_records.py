"""Files of records: merged by key, also by several processes at once."""

from __future__ import annotations

import multiprocessing

import pytest

from artlas_paper.transfer import records


def record(target, variant, values, seed=1, method="art"):
    return {
        "target": target,
        "method": method,
        "variant": variant,
        "seed": seed,
        "shots": 5,
        "accuracies": values,
    }


def test_files_are_merged_by_what_a_record_is_of(tmp_path):
    path = tmp_path / "r.json"
    records.merge(path, [record("A", "q", [0.5]), record("A", "H", [0.1])])
    kept = records.merge(path, [record("A", "q", [0.7])])
    assert [r["accuracies"] for r in kept] == [[0.1], [0.7]]
    assert records.read(path) == kept


def _merge_some(path, variant, count):
    for number in range(count):
        records.merge(path, [record("A", f"{variant}{number}", [0.5])])


@pytest.mark.slow
def test_processes_that_merge_at_once_lose_nothing(tmp_path):
    path = tmp_path / "r.json"
    context = multiprocessing.get_context("spawn")
    team = [context.Process(target=_merge_some, args=(path, v, 40)) for v in "qH"]
    for process in team:
        process.start()
    for process in team:
        process.join()
    assert [process.exitcode for process in team] == [0, 0]
    assert {r["variant"] for r in records.read(path)} == {
        f"{v}{i}" for v in "qH" for i in range(40)
    }
