"""The study of efficiency: summaries, tables, the cap, the worker, and the quick command."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import artlas
from artlas_paper.cli import app
from artlas_paper.studies import efficiency, efficiency_report, efficiency_worker, study
from artlas_paper.studies.efficiency_worker import Configuration

READY = {"total_nodes": 64, "total_edges": 99, "threads": 2}


def configuration(**changes):
    made = {
        "method": "ART",
        "task": "inference",
        "graphs": 2,
        "target": None,
        "nodes": 32,
        "root": None,
        "warm": 1,
        "timed": 2,
        "repeats": 2,
    }
    return Configuration(**{**made, **changes})


def line(repeat, warm, seconds, peak=7):
    return {"repeat": repeat, "warm": warm, "seconds": seconds, "peak": peak}


def record(nodes, seconds, method="ART", task="inference", graphs=32, **more):
    return {
        "target": None,
        "nodes": nodes,
        "graphs": graphs,
        "method": method,
        "task": task,
        "state": "finished",
        "cap": 16.0,
        "load": 1.0,
        "iteration": seconds,
        "timed": 150,
        "warm": 50,
        "parts": 0,
        "peak": 2**20 * (nodes or 1),
        **READY,
        **more,
    }


def test_a_time_is_the_median_of_the_repeats_means():
    lines = [line(0, True, 99), line(0, False, 1), line(0, False, 3), line(1, True, 99, 50)]
    lines += [line(1, False, 5), line(2, False, 30)]
    lines.insert(3, {"part": 2, "seconds": 1e9, "peak": 3})
    found = efficiency.summary(READY, lines, 8)
    assert found["repeats"] == [2, 5, 30]
    assert (found["iteration"], found["timed"], found["warm"], found["peak"]) == (5, 4, 2, 50)
    assert (found["total_edges"], found["parts"]) == (99, 0)
    warm = efficiency.summary(READY, lines[:1], 8)
    assert (warm["iteration"], warm["timed"], warm["warm"]) == (99, 0, 1)
    parts = [{"part": 2, "seconds": 3.0, "peak": 3}, {"part": 1, "seconds": 1.5, "peak": 4}]
    partial = efficiency.summary(READY, parts, 8)
    assert (partial["iteration"], partial["parts"], partial["peak"]) == (12, 3, 4)
    none = efficiency.summary(READY, [], 8)
    assert (none["iteration"], none["peak"], none["repeats"]) == (None, None, [])


def test_slopes_are_those_of_powers():
    assert efficiency_report.slope([(2, 5 * 2**1.5), (8, 5 * 8**1.5), (32, 5 * 32**1.5)]) == (
        pytest.approx(1.5)
    )
    assert efficiency_report.slope([(2, 5)]) is None


def test_the_page_says_what_the_cap_ended():
    over = {"state": "over the cap"}
    records = [
        record(256, 0.064),
        record(1024, 0.256),
        record(256, 6.4, "SCGFM", **over, timed=0, warm=3),
        record(1024, None, "SCGFM", **over, timed=0, warm=0, peak=None),
        record(512, 4.8, "SCGFM", **over, timed=0, warm=0, parts=3),
        record(256, 0.032, task="training"),
        record(1024, 0.128, task="training"),
        record(4096, 0.5, graphs=1),
        record(None, 0.64, target="COLLAB", graphs=64, peak=2**20),
    ]
    page = efficiency_report.table(records)
    assert "| 256 | 2.000 | 200.0 (over the cap, 3 warm-up) | 100x | - | - | 279x |" in page
    assert "| 1,024 | 8.000 | > 500.0 (over the cap) | > 62x | - | - | 974x |" in page
    assert "| 512 | - | 150.0 (over the cap, 3 of 32 graphs) | - | - | - | - |" in page
    assert "| 256 | 1,000.0 |" in page
    assert "| 256 | 256.0 | 895 |" in page  # MiB, the paper's 0.874 GiB
    assert "| 4,096 | 500.0 | 1,048,576 | - | - |" in page
    assert "| COLLAB | 1 | ART | - | 10.0 | - | 1.0 |" in page
    assert "| batches | ART | 1.00 | 1.00 | 1.00 |" in page
    assert "| batches | SCGFM | -0.42 | - | - |" in page  # a bound is no measurement
    assert "3 of 9 were ended by it" in page
    assert "shared" not in page
    assert "shared" in efficiency_report.table([record(256, 1.0, load=5.0)])
    assert len(efficiency_report.figure(records).axes) == 2


def test_every_method_sees_the_same_graphs():
    first, second = (
        efficiency_worker.load_graphs(configuration(method=m, nodes=64)) for m in ("ART", "SCGFM")
    )
    assert torch.equal(first.col, second.col)
    assert (len(first), first.num_nodes, first.num_edges) == (2, 128, 512)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ART", "SCGFM, our solver"])
@pytest.mark.parametrize("task", ["inference", "training"])
def test_the_worker_tells_every_iteration(method, task):
    told = []
    efficiency_worker.run_configuration(configuration(method=method, task=task), told.append)
    assert told[0]["total_nodes"] == 64
    parts = [t for t in told if "part" in t]
    told = [t for t in told if "part" not in t]
    if parts:  # SCGFM's inference, on one thread or two
        assert sum(t["part"] for t in parts) == 6 * 2
        whole = sum(t["seconds"] for t in told[1:])
        assert whole == pytest.approx(sum(t["seconds"] for t in parts))
    assert [(t["repeat"], t["warm"]) for t in told[1:]] == [
        (repeat, warm) for repeat in (0, 1) for warm in (True, False, False)
    ]
    assert all(t["seconds"] > 0 and t["peak"] >= 0 for t in told[1:])


def test_what_is_timed_is_the_method():
    graphs = efficiency_worker.sparse_graphs(np.random.default_rng(3), [12, 20])
    model = artlas.load("graph")
    expected = model.embed(graphs, "paper")
    call = efficiency_worker.art_iteration(model, graphs, "inference")
    assert torch.equal(call(), expected)
    before = artlas.coverage(model.align(graphs).energies, 0.1).mean()
    step = efficiency_worker.art_iteration(model, graphs, "training")
    losses = [step() for _ in range(3)]
    assert losses[0] == pytest.approx(float(before), rel=1e-5)
    assert losses[2] < losses[0]


@pytest.mark.slow
def test_a_configuration_over_the_cap_is_ended():
    large = configuration(method="SCGFM, our solver", nodes=2000, graphs=32)
    found = efficiency.measure(large, 0.05, lambda done, total: None)
    assert found["state"] == "over the cap"
    assert (found["iteration"], found["timed"], found["cap"]) == (None, 0, 0.05)


@pytest.mark.slow
def test_what_fails_is_said(tmp_path):
    wrong = configuration(target="BZR", nodes=None, root=str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="BZR"):
        efficiency.measure(wrong, 20.0, lambda done, total: None)
    with pytest.raises(ValueError, match="nothing"):
        configuration(method="nothing")


def test_full_runs_follow_the_protocol():
    setting = study.Setting(None, None, ("COLLAB",), ())
    found = list(efficiency.configurations(setting))
    batches = [c for c in found if c.target is None and c.graphs > 1]
    assert {(c.graphs, c.warm, c.timed, c.repeats) for c in batches} == {(32, 10, 30, 5)}
    assert {c.nodes for c in batches} == {256, 512, 1024, 2048, 4096}
    assert max(c.nodes for c in found if c.graphs == 1) == 2**20
    real = [c for c in found if c.target == "COLLAB"]
    assert {(c.graphs, c.warm, c.timed, c.repeats) for c in real} == {(64, 10, 20, 5)}
    assert {c.method for c in real} == {*efficiency_worker.METHODS, *efficiency_worker.OTHERS}
    training = {c.method for c in real if c.task == "training"}
    assert training == {"ART", "SCGFM", *efficiency_worker.OTHERS}
    assert len(efficiency_worker.OTHERS) == 11


@pytest.mark.slow
def test_the_quick_command(raw, tmp_path):
    pytest.importorskip("ot")
    root, out = raw("BZR"), tmp_path / "out"
    words = ["study", "efficiency", "--quick", "--root", root, "--out", out]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    files = {path.name for path in out.iterdir()}
    assert files == {f"efficiency-quick.{kind}" for kind in ("json", "md", "png", "svg")}
    records = json.loads((out / "efficiency-quick.json").read_text())
    assert len(records) == 7
    for found in records:
        assert found["state"] == "finished"
        assert found["timed"] == 4
        assert found["iteration"] > 0
        assert found["peak"] >= 0
    assert {(r["target"], r["method"]) for r in records} == {
        (None, "ART"),
        (None, "SCGFM"),
        ("BZR", "ART"),
        ("BZR", "GIN"),
    }
    assert "| COLLAB, paper (GPU) | - | SCGFM | 10,192 | 11.567 | 303 | - |" in done.output
