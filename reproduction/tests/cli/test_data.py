"""``artlas-paper data``: the list, and preparing with failures and Ctrl-C in between."""

from __future__ import annotations

import pytest
from tiny_datasets import TINY, TINY_SENTENCE, visible_parts, write_raw
from typer.testing import CliRunner

from artlas_paper.cli import app
from artlas_paper.datasets import REGISTRY, packed


def run(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)], env={"COLUMNS": "80"})


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    monkeypatch.setitem(REGISTRY, "TINY", TINY)
    return tmp_path


def row(result, name):
    return next(line.split() for line in result.output.splitlines() if line.split()[:1] == [name])


def test_list_shows_every_dataset_in_80_columns(tiny):
    result = run("list", "--root", tiny)
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= max(80, len(f"In {tiny}"))
    assert "…" not in result.output
    for name in REGISTRY:
        assert row(result, name)
    assert row(result, "Reddit") == [
        "Reddit",
        "node",
        "target",
        "232,965",
        "41",
        "602",
        "absent",
        "none",
        "stated",
    ]
    assert row(result, "ogbn-arxiv")[-2:] == ["absent", "ODC-BY"]
    assert row(result, "digits")[6:8] == ["built", "in"]


def test_list_shows_how_far_each_is(tiny):
    assert "absent" in row(run("list", "--root", tiny), "TINY")
    write_raw(tiny)
    assert row(run("list", "--root", tiny), "TINY")[6:8] == ["raw", "files"]
    assert run("prepare", "TINY", "--root", tiny).exit_code == 0
    assert "packed" in row(run("list", "--root", tiny), "TINY")


def test_prepare_says_what_was_done(tiny):
    write_raw(tiny)
    result = run("prepare", "tiny", "--root", tiny)
    assert result.exit_code == 0
    assert result.output == f"TINY, packed the raw files: {TINY_SENTENCE}\n"
    result = run("prepare", "TINY", "tiny", "--root", tiny, "--no-download")
    assert result.output == f"TINY, packed already: {TINY_SENTENCE}\n"


def test_a_failure_does_not_stop_the_others(tiny):
    write_raw(tiny)
    result = run("prepare", "nonsense", "Cora", "TINY", "--root", tiny, "--no-download")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("nonsense: there is no dataset 'nonsense'.")
    assert lines[1].startswith("Cora: Cora is not here: ind.cora.x, ")
    assert f"artlas-paper data prepare Cora --root {tiny}" in lines[1]
    assert lines[2].startswith("TINY, packed the raw files: 3 graphs")


def test_all_is_every_dataset_that_is_not_built_in(tiny):
    write_raw(tiny)
    result = run("prepare", "all", "--root", tiny, "--no-download")
    assert result.exit_code == 1
    names = [line.split(",")[0].split(":")[0] for line in result.output.splitlines()]
    assert names == [e.name for e in REGISTRY.values() if e.role != "built-in"]


def test_ctrl_c(tiny, monkeypatch):
    write_raw(tiny)
    write = packed.write

    def interrupted(*args):
        monkeypatch.setattr(packed.json, "dumps", stop)
        return write(*args)

    def stop(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(packed, "write", interrupted)
    result = run("prepare", "TINY", "--root", tiny)
    assert result.exit_code == 130
    assert "nothing half-written is left" in result.output
    assert packed.find(tiny, "TINY") is None
    assert visible_parts(tiny) == []


def test_without_pytorch_geometric_the_others_go_on(tiny, monkeypatch):
    def refuse(*args):
        raise ImportError("pip install 'artlas[pyg]'")

    write_raw(tiny)
    monkeypatch.setattr("artlas_paper.datasets.download._pyg_datasets", refuse)
    result = run("prepare", "Cora", "TINY", "--root", tiny)
    assert result.exit_code == 1
    assert "pip install 'artlas[pyg]'" in result.output
    assert f"ind.cora.test.index not in {tiny}/Planetoid/Cora/raw" in result.output
    assert f"artlas-paper data prepare Cora --root {tiny}" in result.output
    assert "TINY, packed" in result.output


def test_data_alone_shows_its_help():
    assert "prepare" in run().output


def test_prepare_finds_ego_graphs_too(raw):
    root = raw("Cora")
    done = run("prepare", "Cora", "--centres", "10", "--root", root)
    assert done.exit_code == 0
    assert "70 ego-graphs of" in done.output
    assert run("prepare", "Cora", "--centres", "few", "--root", root).exit_code == 2
