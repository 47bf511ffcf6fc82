"""Rows beyond the paper: on the paper's episodes, without a model, and blind to query labels."""

from __future__ import annotations

import numpy as np
import pytest

import artlas
from artlas import evaluation
from artlas.evaluation.accuracy import predict
from artlas_paper import datasets
from artlas_paper.transfer import beyond
from artlas_paper.transfer.art import evaluate_art
from artlas_paper.transfer.episodes import Episodes

ROWS = ["blocks", "blocks-kernel"]


def test_rows_are_on_the_papers_episodes_and_need_no_model(small, episodes_of_bzr):
    made = list(evaluate_art(small, "BZR", [1], [1, 5, "all"], only=[*ROWS, "sum"]))
    found = [(r["shots"], r["method"], r["variant"], r["seed"]) for r in made]
    beyond_paper = [("beyond-paper", row, None) for row in ROWS]
    rows = [("control", "sum", None), *beyond_paper]
    assert found == [(shots, *row) for shots in (1, 5, "all") for row in rows]
    assert {r["episodes"] for r in made if r["shots"] == 5} == {episodes_of_bzr}
    for shots in (1, "all"):
        assert len({r["episodes"] for r in made if r["shots"] == shots}) == 1
    assert {r["paper"] for r in made} == {None}
    assert not small.runs.exists()  # nothing was pretrained


def test_the_vector_is_the_librarys_and_its_heads_the_protocols_and_the_librarys(small):
    graphs = datasets.load("BZR", small.root, "raw", verbose=False)
    episodes = Episodes.draw(graphs.y.numpy(), 5)
    vectors = artlas.blocks.embed(graphs).numpy()[episodes.members]
    made = {r["variant"]: r for r in evaluate_art(small, "BZR", [], [5], only=ROWS)}
    for row, head in (("blocks", "prototype"), ("blocks-kernel", beyond.kernel_head)):
        expected = evaluation.evaluate(vectors, episodes.labels, episodes.drawn, head)
        assert made[row]["accuracies"] == pytest.approx(expected.episodes.tolist(), abs=1e-6)


def test_the_node_level_has_no_such_row():
    assert set(beyond.BEYOND["graph"]) == set(ROWS)
    assert not beyond.BEYOND["node"]


@pytest.mark.parametrize("shots", [1, 5])
def test_the_kernel_head_sees_no_query_label(shots):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    vectors = rng.normal(size=(60, artlas.blocks.layout().width)) + labels[:, None]
    episode = evaluation.draw_episodes(labels, 1, shots, 10)[0]
    hidden = np.full_like(labels, -1)
    hidden[episode.support] = labels[episode.support]
    seen = predict(vectors, labels, episode, beyond.kernel_head)
    blind = predict(vectors, hidden, episode, beyond.kernel_head)
    np.testing.assert_array_equal(seen, blind)
    assert np.mean(seen == labels[episode.query]) > 0.5
