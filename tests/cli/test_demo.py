"""The version, and the demo from end to end."""

from __future__ import annotations

import json
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import artlas
from artlas.cli import app
from artlas.evaluation import draw_episodes, hash_episodes
from artlas.evaluation.controls import CONTROLS
from artlas.training import coverage

PNG = b"\x89PNG\r\n\x1a\n"


def run(*arguments):
    threads = torch.get_num_threads()
    try:
        return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "100"})
    finally:
        torch.set_num_threads(threads)  # the demo leaves one


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One quick run into a folder that does not exist yet, its output and its report."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "out"
    result = run("demo", "--quick", "--out", folder)
    assert result.exit_code == 0, result.output
    return folder, result.output, json.loads((folder / "results.json").read_text("utf-8"))


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.output.strip() == f"artlas {artlas.__version__}"


@pytest.mark.slow
def test_writes_figures_and_report_and_lists_them(quick):
    folder, output, _ = quick
    names = {"atlas.png", "embedding.png", "results.json"}
    assert {path.name for path in folder.iterdir()} == names
    for name in ("atlas.png", "embedding.png"):
        assert (folder / name).read_bytes().startswith(PNG)
    assert str(folder) in output.replace("\n", "")
    assert all(name in output for name in names)


@pytest.mark.slow
def test_prints_controls_and_comparison_for_both_datasets(quick):
    _, output, report = quick
    for row in ("ART z, trained", "ART z, untrained", "ART q alone", "ART H alone", *CONTROLS):
        assert row in output
    for data, rows in report["accuracy"].items():
        assert f"\n{data}: " in output
        for row in rows.values():
            assert f"{100 * row['mean']:.1f} ± {100 * row['std']:.1f}" in output
    for network in report["networks"]:
        assert network in output


def test_a_winning_control_is_named(quick):
    _, output, report = quick
    means = {row: found["mean"] for row, found in report["accuracy"]["families"].items()}
    assert max(means, key=means.get) == "degree histogram"
    assert "families: a control wins: degree histogram" in output


def test_report_repeats_the_published_episodes(quick):
    _, _, report = quick
    for data, classes in (("digits", 10), ("families", 8)):
        found, sizes = report["episodes"][data], report["data"][data]
        expected = draw_episodes(np.repeat(np.arange(classes), 12))
        assert found["count"] == len(expected) == 50
        assert sizes["train"] == sizes["test"] == 12 * classes
        assert all(len(row["episodes"]) == 50 for row in report["accuracy"][data].values())
    # families lie class by class in the file, so that their episodes can be drawn again from here
    assert report["episodes"]["families"]["sha256"] == hash_episodes(expected)
    assert {"artlas", "torch", "numpy", "kernels"} <= set(report["versions"])


def test_training_lowers_the_coverage_of_unseen_graphs(quick):
    _, _, report = quick
    assert report["training"]["steps"] == report["settings"]["steps"] == 20
    assert not report["training"]["interrupted"]
    for found in report["alignment"].values():
        assert found["after"]["coverage"] < found["before"]["coverage"]
        assert found["after"]["gain"] > 0.001 > abs(found["before"]["gain"])


@pytest.mark.slow
def test_ctrl_c_keeps_the_partly_trained_model(tmp_path, monkeypatch):
    batches, gather = [], coverage.gather

    def interrupted(sources, members):
        if len(batches) == 2:
            raise KeyboardInterrupt
        batches.append((members, gather(sources, members)))
        return batches[-1][1]

    monkeypatch.setattr(coverage, "gather", interrupted)
    for name in {"matplotlib", *(m for m in sys.modules if m.startswith("matplotlib."))}:
        monkeypatch.setitem(sys.modules, name, None)
    result = run("demo", "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Stopped by Ctrl-C after 2 of 20 steps" in result.output
    report = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert report["training"]["interrupted"]
    assert len(report["training"]["losses"]) == 2
    after = report["alignment"]["families"]
    assert after["after"]["coverage"] < after["before"]["coverage"]
    # structure alone, as many of the one domain as of the other
    for members, graphs in batches:
        assert graphs.x is None
        assert graphs.y is None
        assert Counter(name for name, _ in members) == {"digits": 32, "families": 32}
    # and without Matplotlib: all but the pictures, and how to get them
    assert "pip install 'artlas[demo]'" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_errors_say_how_to_fix_them(tmp_path, monkeypatch):
    taken = tmp_path / "file"
    taken.write_text("not a folder")
    result = run("demo", "--quick", "--out", taken)
    assert result.exit_code == 2
    assert "Pass --out with a folder" in " ".join(result.output.replace("│", "").split())
    monkeypatch.setitem(sys.modules, "networkx", None)
    result = run("demo", "--quick", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "pip install 'artlas[demo]'" in result.output
