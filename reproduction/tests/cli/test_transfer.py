"""artlas-paper transfer: its files, its failures, and quick runs kept apart."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from artlas_paper.cli import app


@pytest.fixture
def run(three, tmp_path):

    def call(*words):
        places = "--root", three, "--runs", tmp_path / "runs", "--out", tmp_path / "t.json"
        words = ["transfer", "graph", "--quick", *places, *words]
        return CliRunner().invoke(app, [str(word) for word in words])

    return call


@pytest.mark.slow
def test_a_quick_run_writes_beside_the_real_one(run, tmp_path):
    done = run("--targets", "BZR", "--shots", "1,5,all", "--variants", "plus,sum,plus-no-roles")
    assert done.exit_code == 0, done.output
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"runs", "t-quick.json", "t-quick.md", "t-quick.png", "t-quick-shots.png"}
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["quick"]
    records = json.loads((tmp_path / "t-quick.json").read_text())
    assert len(records) == 3 * 3
    assert {r["shots"] for r in records} == {1, 5, "all"}
    assert "| art plus | " in done.output
    assert "art plus - control plus-no-roles" in (tmp_path / "t-quick.md").read_text()
    assert run("--targets", "BZR", "--variants", "sum").exit_code == 0  # the model is used again
    settings = run("--targets", "BZR", "--seeds", "42", "--variants", "best")
    assert settings.exit_code == 1
    assert "no variant 'best'" in settings.output


def test_a_failed_target_is_named_and_the_others_are_done(run, tmp_path):
    done = run("--targets", "Cora,BZR", "--variants", "sum")
    assert done.exit_code == 1
    assert "Cora failed: Cora is no graph-level dataset" in done.output
    assert "| paper | 62.36 | 62.36 |" in done.output
    records = json.loads((tmp_path / "t-quick.json").read_text())
    assert {r["target"] for r in records} == {"BZR"}


def test_numbers_that_are_none(run):
    assert run("--shots", "5,few").exit_code == 2
    assert run("--seeds", "x").exit_code == 2
