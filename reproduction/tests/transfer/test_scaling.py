"""The published arithmetic of the heads."""

from __future__ import annotations

import numpy as np
import pytest

from artlas.evaluation import draw_episodes
from artlas.evaluation.accuracy import predict
from artlas_paper.transfer.scaling import scaled_head


@pytest.mark.parametrize("head", ["prototype", "linear"])
def test_published_arithmetic_agrees_where_every_column_varies(head):
    rng = np.random.default_rng(1)
    labels = np.repeat([2, 5, 9], 20)
    values = rng.normal(size=(60, 6)) * [1, 10, 0.1, 1, 1, 1] + labels[:, None] * 0.2
    for episode in draw_episodes(labels, count=6):
        single = predict(values, labels, episode, scaled_head(head, "single"))
        np.testing.assert_array_equal(single, predict(values, labels, episode, head))


def test_published_arithmetic_ties_on_a_column_that_only_queries_vary():
    """In float32 a column over its floor hides all others, and ties go to the lowest class."""
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1], 30)
    values = np.column_stack([rng.normal(size=(60, 40)) + labels[:, None], np.zeros(60)])
    episode = draw_episodes(labels, count=1)[0]
    values[episode.query, -1] = 0.5
    right = labels[episode.query]
    assert np.mean(predict(values, labels, episode) == right) > 0.9
    assert not predict(values, labels, episode, scaled_head("prototype", "single")).any()


def test_without_scaling_the_largest_column_decides():
    values = np.array([[0.0, 10.0], [1.0, 0.0], [0.9, 10.0]])
    head = scaled_head("prototype", "none")
    assert callable(head)
    assert head(values[:2], np.array([4, 7]), values[2:]).tolist() == [4]


def test_unknown_scalings_are_named():
    with pytest.raises(ValueError, match=r"double, single, none.*'half'"):
        scaled_head("prototype", "half")
