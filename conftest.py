"""Fixtures that the tests of both packages share."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import torch

pytest_plugins = ["builds"]  # tests/builds.py
ROOT = pathlib.Path(__file__).parent
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
