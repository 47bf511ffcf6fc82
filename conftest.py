"""Fixtures and markers that the tests of both packages share."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import NoReturn

import pytest
import torch

pytest_plugins = ["builds"]  # tests/builds.py
ROOT = pathlib.Path(__file__).parent
SHARED = ROOT.parent / "shared" / "data"
# What must be there for a run to count: "data", "browser". A test that lacks it fails instead of
# being skipped; .ci/run sets both, a fork's workflow neither.
REQUIRED = os.environ.get("ARTLAS_TESTS_REQUIRE", "").split(",")


@pytest.hookimpl(tryfirst=True)  # before -m selects by these markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs data or a browser by its fixtures, and everything else quick as ``fast``."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for name, fixture in {"data": "raw", "browser": "chromium"}.items():
            if fixture in fixtures:
                item.add_marker(name)
        if not any(item.get_closest_marker(name) for name in ("data", "browser", "slow")):
            item.add_marker("fast")


@pytest.fixture(autouse=True)
def same_surroundings():
    """Fail the test that changes threads or environment for all later ones, not its victims."""

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
            skip_or_fail("data", "the benchmark files are not beside the project (../shared/data)")
        subprocess.run(
            [sys.executable, SHARED / "install", root, name], check=True, capture_output=True
        )
        return root

    return lay_out


@pytest.fixture(scope="session")
def chromium():
    """``chromium(page)``: the document that a headless browser makes of an HTML file."""
    program = shutil.which("chromium")
    if program is None:
        skip_or_fail("browser", "Chromium is not installed")
    switches = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]

    def dump(page: pathlib.Path) -> str:
        command = [program, *switches, "--dump-dom", page.as_uri()]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    return dump


def skip_or_fail(needed: str, reason: str) -> NoReturn:
    """Skip a test whose surroundings are missing, or fail it where they are required."""
    if needed in REQUIRED:
        pytest.fail(f"{reason}, and ARTLAS_TESTS_REQUIRE asks for {needed}")
    pytest.skip(reason)
