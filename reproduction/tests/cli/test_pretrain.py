"""``artlas-paper pretrain``: small runs, resumed and refused."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tiny_datasets import TINY, write_raw
from typer.testing import CliRunner

import artlas
from artlas.cli.progress import TrainingBar
from artlas.training.loop import Progress
from artlas_paper.cli import app
from artlas_paper.datasets import REGISTRY


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "100"})


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    monkeypatch.setitem(REGISTRY, "TINY", TINY)
    write_raw(tmp_path)
    return tmp_path


def test_a_model_is_trained_saved_and_resumed(tiny):
    words = ["pretrain", "--sources", "TINY", "--root", tiny, "--epochs", 2, "--out", tiny / "m"]
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert "as in the paper" in done.output
    assert len((tiny / "m" / "log.jsonl").read_text().splitlines()) == 2
    again = run(*words)
    assert again.exit_code == 1
    assert "--resume" in again.output
    assert run(*words, "--resume").exit_code == 0
    assert artlas.load(tiny / "m").config == artlas.ArtConfig()


def test_invalid_requests_are_explained(tiny):
    done = run("pretrain", "--sources", "TINY,Nope", "--root", tiny, "--out", tiny / "m")
    assert done.exit_code == 1
    assert "there is no dataset 'Nope'" in done.output
    done = run("pretrain", "--sources", "TINY", "--out", tiny / "m", "--preset", "best")
    assert done.exit_code == 2


def test_the_bar_distinguishes_training_from_embedding(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    seen = io.StringIO()
    with TrainingBar(Console(file=seen, force_terminal=True, width=100)) as bar:
        shown = []
        for move in (
            lambda: None,
            lambda: bar.show_training(Progress(3, 10, 1, 0.25)),
            lambda: bar.show_training(Progress(10, 10, 2, 0.125)),
            lambda: bar.show_embedding(4, 10),
            lambda: bar.show_embedding(2, 50),
        ):
            move()
            (task,) = bar.tasks
            shown.append((task.description, task.completed, task.total))
    assert shown == [
        ("preparing", 0, None),
        ("epoch 1, loss 0.2500", 3, 10),
        ("epoch 2, loss 0.1250", 10, 10),
        ("vectors", 4, 10),
        ("vectors", 2, 50),
    ]
    assert "graphs/s" in seen.getvalue()
