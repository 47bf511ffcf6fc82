"""Fixtures that the tests of the studies share."""

from __future__ import annotations

import pytest


@pytest.fixture
def three(monkeypatch, raw):
    """The root of three small datasets, which are all sources that there are."""
    from artlas_paper.transfer import folds

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

    from artlas_paper.cli import app

    def call(name, *words):
        places = "--root", three, "--runs", kept_runs, "--out", tmp_path / "out"
        words = ["study", name, "--quick", *places, *words]
        return CliRunner().invoke(app, [str(word) for word in words])

    return call
