"""Accuracies over episodes, their comparison, and the controls."""

from __future__ import annotations

import re

import numpy as np
import pytest

from artlas.evaluation import Accuracy, compare_with_controls, draw_episodes, evaluate, nearest_rows
from artlas.evaluation.accuracy import predict
from artlas.evaluation.controls import degree_histogram, mean_pool, size, sum_pool
from artlas.graphs.collection import Graphs
from artlas.learning.heads import SupportScaler


@pytest.fixture
def task():
    """Three classes of 20 in six dimensions, apart enough to be learnt and close enough to err."""
    rng = np.random.default_rng(1)
    labels = np.repeat([2, 5, 9], 20)
    values = rng.normal(size=(60, 6)) * [1, 10, 0.1, 1, 1, 1] + labels[:, None] * 0.2
    return values, labels, draw_episodes(labels, count=6)


def naive(values, labels, episode):
    """Standardise and classify with loops over columns, classes and queries."""
    scaled = np.zeros_like(values)
    for j in range(values.shape[1]):
        column = [values[i, j] for i in episode.support]
        mean = sum(column) / len(column)
        spread = (sum((v - mean) ** 2 for v in column) / len(column)) ** 0.5
        scaled[:, j] = (values[:, j] - mean) / spread
    found = []
    for q in episode.query:
        distance = {}
        for c in sorted(set(labels.tolist())):
            rows = [scaled[i] for i in episode.support if labels[i] == c]
            distance[c] = np.linalg.norm(scaled[q] - sum(rows) / len(rows))
        found.append(min(distance, key=distance.get))
    return found


def test_agrees_with_a_naive_loop(task):
    values, labels, episodes = task
    hits = []
    for episode in episodes:
        expected = naive(values, labels, episode)
        assert predict(values, labels, episode).tolist() == expected
        hits.append(np.mean(np.array(expected) == labels[episode.query]))
    found = evaluate(values, labels, episodes)
    np.testing.assert_allclose(found.episodes, hits)
    assert 0.4 < found.mean < 1  # the task is neither hopeless nor trivial
    assert found.std == pytest.approx(np.std(hits))


def test_query_labels_do_not_matter(task):
    values, labels, episodes = task
    for episode in episodes:
        shuffled = labels.copy()
        shuffled[episode.query] = np.random.default_rng(2).permutation(labels[episode.query])
        assert (shuffled != labels).any()
        before, after = predict(values, labels, episode), predict(values, shuffled, episode)
        np.testing.assert_array_equal(before, after)


def test_query_values_do_not_matter_to_other_queries(task):
    values, labels, (episode, *_) = task
    changed = values.copy()
    changed[episode.query[1:]] *= 1e6
    assert predict(changed, labels, episode)[0] == predict(values, labels, episode)[0]


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9])
def test_a_column_constant_on_the_support_does_not_matter(task, constant):
    values, labels, (episode, *_) = task
    column = np.random.default_rng(3).normal(size=(60, 1))
    column[episode.support] = constant
    wider = np.concatenate([values, column], axis=1)
    np.testing.assert_array_equal(predict(wider, labels, episode), predict(values, labels, episode))
    assert not SupportScaler.fit(wider[episode.support]).varies[-1]


def test_all_columns_constant_is_a_tie_everywhere():
    values, labels = np.ones((20, 3)), np.repeat([1, 2], 10)
    (episode,) = draw_episodes(labels, count=1)
    assert set(predict(values, labels, episode)) == {1}


def test_errors_name_what_was_given():
    with pytest.raises(ValueError, match=r"one row per example; got shape \[3\]"):
        SupportScaler.fit([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="2 representations for 3 labels"):
        evaluate(np.ones((2, 1)), [0, 1, 2], [])
    with pytest.raises(ValueError, match="the same episodes; got 2 and 3"):
        Accuracy(np.ones(2)).difference_from(Accuracy(np.ones(3)))


def test_paired_difference():
    lead, error = Accuracy(np.array([0.5, 0.7])).difference_from(Accuracy(np.array([0.4, 0.2])))
    assert lead == pytest.approx(0.3)
    assert error == pytest.approx(0.2 / 2**0.5)


@pytest.mark.parametrize(
    ("ours", "control", "says"),
    [
        ([0.9, 0.8], [0.5, 0.4], "z wins, 40.0 points .* ahead of the best control, pool"),
        ([0.5, 0.4], [0.9, 0.8], "a control wins: pool, 40.0 points .* ahead of .*, z"),
        ([0.5, 0.4], [0.4, 0.5], "a tie: z and the control pool are 0.0 points"),
    ],
)
def test_comparison_names_the_winner(ours, control, says):
    rows = {"z": ours, "q": [0.1, 0.1], "pool": control, "size": [0.2, 0.1]}
    rows = {name: Accuracy(np.array(values)) for name, values in rows.items()}
    assert re.fullmatch(says + ".*", compare_with_controls(rows, ["pool", "size"]))


def test_nearest_rows_standardise_by_the_known_rows():
    known = [[0.0, 0.0], [1.0, 1000.0], [0.0, 1000.0]]
    assert nearest_rows([[1.0, 100.0], [0.0, 900.0]], known, 2).tolist() == [[1, 0], [2, 0]]


def test_controls_of_a_star_and_a_lone_node():
    hub = [[0] * 13, range(1, 14)]
    both = [(14, np.concatenate([hub, hub[::-1]], axis=1)), (1, [[], []])]
    x = [np.arange(28.0).reshape(14, 2), np.array([[5.0, -1.0]])]
    graphs = Graphs.from_edges(both, x=x)
    np.testing.assert_allclose(sum_pool(graphs), [[182, 196], [5, -1]])
    np.testing.assert_allclose(mean_pool(graphs), [[13, 14], [5, -1]])
    np.testing.assert_allclose(size(graphs), np.log([[14, 14], [1, 1]]))
    expected = np.zeros((2, 12))
    expected[0, [1, 11]], expected[1, 0] = [13 / 14, 1 / 14], 1  # degree 13 is in the last bin
    np.testing.assert_allclose(degree_histogram(graphs), expected)
    np.testing.assert_allclose(sum_pool(graphs.with_features(None)), [[14], [1]])


def test_query_labels_do_not_change_what_either_head_predicts():
    rng = np.random.default_rng(2)
    values, labels = rng.normal(size=(60, 8)), np.repeat([0, 1, 2], 20)
    for episode in draw_episodes(labels, 5, shots=5, queries=10):
        shuffled = labels.copy()
        shuffled[episode.query] = rng.permutation(shuffled[episode.query])
        for head in ("prototype", "linear"):
            before = predict(values, labels, episode, head)
            assert np.array_equal(before, predict(values, shuffled, episode, head))
    with pytest.raises(ValueError, match="prototype, linear"):
        predict(values, labels, episode, "magic")
