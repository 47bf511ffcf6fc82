"""Fixtures that tests of several folders share."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).parent.parent
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def same_surroundings():
    """A test that changes how all later ones run is at fault itself, not the ones that fail."""

    def surroundings():
        names = sorted(name for name in os.environ if name.endswith("_NUM_THREADS"))
        return torch.get_num_threads(), {name: os.environ[name] for name in names}

    before = surroundings()
    yield
    assert surroundings() == before


@pytest.fixture(scope="session")
def raw(tmp_path_factory):
    """``raw(NAME)``: a data root with the raw files of a benchmark, or a skip that says why."""
    root = tmp_path_factory.mktemp("data")

    def lay_out(name: str) -> pathlib.Path:
        if not (SHARED / "install").exists():
            absent = "the benchmark files are not beside the project (no ../shared/data)"
            if os.environ.get("CI"):
                pytest.fail(f"{absent}: in CI these tests must run")
            pytest.skip(absent)
        subprocess.run(
            [sys.executable, SHARED / "install", root, name], check=True, capture_output=True
        )
        return root

    return lay_out


@pytest.fixture
def three(monkeypatch, raw):
    """The root of three small datasets, which are all sources that there are."""
    from artlas.studies import folds

    names = ["BZR", "IMDB-BINARY", "PROTEINS"]
    monkeypatch.setattr(folds, "sources_of", lambda level: names)
    return [raw(name) for name in names][-1]


@pytest.fixture(scope="session")
def kept_runs(tmp_path_factory):
    """A folder of models that the quick studies share: what one has trained, all others use."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def quick_study(three, kept_runs, tmp_path):
    """``quick_study(NAME, ...)``: a quick run of the command, its results in tmp_path/out."""
    from typer.testing import CliRunner

    from artlas.cli import app

    def call(name, *words):
        places = "--root", three, "--runs", kept_runs, "--out", tmp_path / "out"
        words = ["study", name, "--quick", *places, *words]
        return CliRunner().invoke(app, [str(word) for word in words])

    return call
