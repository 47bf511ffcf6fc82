"""Ten thousand broken files, and a check that the harness would notice."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from fuzzing import fuzz, mutations

from artlas import GraphError, Graphs
from artlas.io.reading import read

COUNT = 10_000


@pytest.mark.slow
def test_every_broken_file_is_read_or_refused(tmp_path):
    findings, outcomes = fuzz.run(COUNT)
    assert not findings, fuzz.report(findings, tmp_path)
    assert outcomes.keys() == {name for name, _ in mutations.seeds()}
    assert sum(sum(counts.values()) for counts in outcomes.values()) == COUNT
    # A mutation that always or never breaks its file would test nothing.
    for name, counts in outcomes.items():
        assert counts["refused"] > 50, name
        assert counts["graphs"] >= 3, name


@pytest.mark.filterwarnings("ignore::artlas.errors.GraphCleaningWarning")
@pytest.mark.parametrize("number", range(len(mutations.seeds())))
def test_every_seed_can_be_read(tmp_path, number):
    target, files = mutations.seeds()[number]
    assert isinstance(read(fuzz.write(tmp_path, target, files), verbose=False), Graphs)


def test_cases_are_the_same_every_time():
    known = mutations.seeds()
    assert [mutations.case(7, i, known) for i in range(60)] == [
        mutations.case(7, i, known) for i in range(60)
    ]
    changed = sum(mutations.case(0, i, known) != known[i % len(known)] for i in range(600))
    assert changed > 550


@pytest.mark.slow
def test_the_judge_knows_right_from_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "SECONDS", 0.5)
    good = Graphs.from_edges((2, [[0, 1], [1, 0]]))

    def refusing(*_, **__):
        raise GraphError("no")

    def broken(*_, **__):
        raise KeyError("x")

    def slow(*_, **__):
        end = time.process_time() + 0.6
        while time.process_time() < end:
            pass
        return good

    assert fuzz.judge(tmp_path, lambda *_, **__: good) == ("graphs", "")
    assert fuzz.judge(tmp_path, refusing) == ("refused", "")
    assert "KeyError" in fuzz.judge(tmp_path, broken)[1]
    assert " took 0." in fuzz.judge(tmp_path, slow)[1]
    one_way = Graphs(good.node_ptr, good.row_ptr.new_tensor([0, 1, 1]), good.col[:1])
    assert fuzz.judge(tmp_path, lambda *_, **__: one_way)[1] == "the adjacency is not canonical"
    beyond = Graphs(good.node_ptr, good.row_ptr, good.col + 1)
    assert fuzz.judge(tmp_path, lambda *_, **__: beyond)[1] == "a neighbour is out of range"


@pytest.mark.parametrize(
    ("floor", "before", "after", "what"),
    [
        (100, 100, 599, ""),
        (100, 100, 601, " took 501 MB"),
        (100, 400, 601, " took 501 MB"),
        (100, 700, 700, ""),
    ],
)
def test_the_judge_sees_memory(tmp_path, monkeypatch, floor, before, after, what):
    good, peaks = Graphs.from_edges((2, [[0, 1], [1, 0]])), iter([before, after])
    monkeypatch.setattr(fuzz, "_peak", lambda: next(peaks))
    assert fuzz.judge(tmp_path, lambda *_, **__: good, floor)[1] == what


def test_the_peak_of_a_process_is_in_megabytes():
    code = "from fuzzing.fuzz import _peak; a = _peak(); b'x' * (300 << 20); print(_peak() - a)"
    paths = os.pathsep.join([str(fuzz.TESTS), *filter(None, sys.path)])
    made = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        check=True,
    )
    assert 250 < float(made.stdout) < 350


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "what"),
    [("os.kill(os.getpid(), signal.SIGKILL)", "died with -9"), ("time.sleep(60)", "stalled")],
)
def test_a_worker_that_dies_or_stalls_is_a_finding(tmp_path, monkeypatch, end, what):
    (tmp_path / "fuzzing").mkdir()
    (tmp_path / "fuzzing" / "fuzz.py").write_text(LAST.replace("END", end))
    monkeypatch.setattr(fuzz, "TESTS", tmp_path)
    monkeypatch.setattr(fuzz, "STALLED", 1.0)
    findings, outcomes = fuzz.run(10, workers=1)
    assert [finding.number for finding in findings] == [4]
    assert findings[0].what.startswith(what)
    assert fuzz.unpack(findings[0]) == mutations.case(0, 4, mutations.seeds())[1]
    assert outcomes == {"left": {"graphs": 5}}
    assert "case 4" in fuzz.report(findings, tmp_path)


LAST = """
import json, os, pathlib, signal, sys, time
seed, first, count, step, progress = sys.argv[2:]
for number in range(int(first), int(count)):
    pathlib.Path(progress).write_text(str(number))
    if number == 4:
        END
print(json.dumps({"outcomes": {"left": {"graphs": int(count) - int(first)}}}))
"""
