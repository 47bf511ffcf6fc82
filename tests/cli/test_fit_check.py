"""The check of artlas fit: folds, controls and the verdict."""

from __future__ import annotations

import numpy as np
import pytest
from cases import from_dense, random_dense

import artlas
from artlas.cli import fit_check
from artlas.evaluation import controls


@pytest.fixture
def graphs():
    """Sixteen rings and paths in turn, of 4 to 11 nodes."""
    made = []
    for i in range(16):
        path = np.eye(4 + i // 2, k=1)
        path[0, -1] = i % 2 == 0
        made.append(path + path.T)
    return from_dense(made)


def test_whole_numbers_are_not_predicted_as_whole_numbers(graphs):
    labels = np.arange(16) // 2
    estimator = artlas.GraphRegressor().fit(graphs, labels)
    found = fit_check.check(estimator, graphs, labels, lambda done, total: None)
    others = (labels.sum() - labels) / 15
    expected = 1 - (labels - others) ** 2 / labels.var()
    np.testing.assert_allclose(found.scores["mean of labels"].episodes, expected)
    assert found.scores["mean of labels"].mean < 0 < found.scores["sizes"].mean


@pytest.mark.slow
def test_the_check_is_ahead_where_structure_matters():
    """Rings joined to second neighbours, with triangles, or to third ones, without: 4-regular."""
    made, labels = [], np.arange(48) % 2
    for i in range(48):
        ring, apart = np.arange(9 + i // 2), 2 + i % 2
        matrix = np.zeros((len(ring), len(ring)))
        for step in (1, apart):
            matrix[ring, np.roll(ring, step)] = matrix[np.roll(ring, step), ring] = 1
        made.append(matrix)
    graphs, told = from_dense(made), []
    estimator = artlas.GraphClassifier().fit(graphs, labels)
    found = fit_check.check(estimator, graphs, labels, lambda done, total: told.append(done))
    assert fit_check.verdict(found).startswith("The estimator is ahead of the best control")
    assert (found.graphs, found.folds, found.repeats, found.total) == (48, 5, 3, 48)
    assert told == list(range(1, 3 * 5 * len(found.scores) + 1))
    assert "sum of features" not in found.scores  # there are none


def test_the_verdict_has_three_forms():
    rng = np.random.default_rng(0)

    def found(ours, other):
        scores = {fit_check.OURS: ours, "sizes": other, "majority class": 0.0 * other}
        made = {name: fit_check.Accuracy(values) for name, values in scores.items()}
        return fit_check.Check("accuracy", made, 100, 100, 5, 1)

    good, bad = np.ones(100), (rng.random(100) < 0.6).astype(float)
    said = fit_check.verdict(found(good, bad))
    assert said.startswith("The estimator is ahead of the best control, sizes, by ")
    said = fit_check.verdict(found(bad, good))
    assert said.startswith("A control is better: sizes is ahead of the estimator by ")
    said = fit_check.verdict(found(good, good))
    assert said.startswith("A control is as good: sizes and the estimator are 0.0 points")


def test_small_classes_have_fewer_folds():
    def division(*counts):
        places = np.repeat(np.arange(len(counts)), counts)
        return fit_check._division(len(places), places, True)

    assert division(20, 3) == (3, 3)
    assert division(3, 1) == (4, 1)
    assert division(400, 400) == (5, 1)
    assert division(60, 1) == (5, 3)
    assert fit_check._division(12, np.arange(12), False) == (12, 1)


def test_folds_hold_every_class_evenly():
    places = np.repeat([0, 1, 2], [50, 23, 7])
    fold = fit_check._folds(places, 5, 0)
    for c in range(3):
        counts = np.bincount(fold[places == c], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert (fold == fit_check._folds(places, 5, 0)).all()
    assert (fold != fit_check._folds(places, 5, 1)).any()


@pytest.mark.slow
def test_balanced_classes_weigh_the_same_in_the_check(graphs):
    labels = np.array([0] * 12 + [1] * 4)
    estimator = artlas.GraphClassifier(class_weight="balanced").fit(graphs, labels)
    found = fit_check.check(estimator, graphs, labels, lambda done, total: None)
    assert found.measure == "balanced accuracy"
    assert found.scores["majority class"].mean == pytest.approx(0.5)


def test_roles_by_degree_do_not_depend_on_the_order_of_nodes():
    rng = np.random.default_rng(0)
    dense = [random_dense(n, 0.4, rng) for n in (1, 3, 9, 20)]
    x = [rng.normal(size=(len(a), 2)) for a in dense]
    orders = [rng.permutation(len(a)) for a in dense]
    one = controls.degree_roles(from_dense(dense, x=x))
    turned = [a[o][:, o] for a, o in zip(dense, orders, strict=True)]
    moved = [v[o] for v, o in zip(x, orders, strict=True)]
    np.testing.assert_allclose(controls.degree_roles(from_dense(turned, x=moved)), one, atol=1e-6)
    assert one.shape == (4, 8 * 3)
    sums = np.sign(one) * np.expm1(np.abs(one))  # over all roles, those of all nodes
    np.testing.assert_allclose(
        sums.reshape(4, 8, 3)[:, :, :2].sum(1), [v.sum(0) for v in x], atol=1e-5
    )
