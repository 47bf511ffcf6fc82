"""The standardiser and the prototype and linear heads."""

from __future__ import annotations

import numpy as np
import pytest

from artlas.learning.heads import Linear, Prototypes, SupportScaler


def test_scaler_uses_the_population_deviation_and_its_floor():
    scaler = SupportScaler.fit([[1.0, 0.0, 5.0], [3.0, 1e-9, 5.0]])
    np.testing.assert_array_equal(scaler.varies, [True, True, False])
    np.testing.assert_allclose(scaler.spread, [1.0, 1e-6])
    np.testing.assert_allclose(scaler.transform([[4.0, 1e-6, 99.0]]), [[2.0, 0.9995]])


def test_float32_input_is_standardised_in_float64():
    # Their mean, 1e8 + 4, lies between two neighbours in float32.
    support = np.array([[1e8], [1e8 + 8]], dtype=np.float32)
    assert SupportScaler.fit(support).transform(support).tolist() == [[-1.0], [1.0]]


def test_ties_go_to_the_lowest_class():
    head = Prototypes.fit([[1.0, 0.0], [-1.0, 0.0], [0.0, 7.0]], [8, 4, 6])
    assert head.classes.tolist() == [4, 6, 8]
    assert head.predict([[0.0, 0.0], [0.5, 0.0], [0.0, 6.0]]).tolist() == [4, 8, 6]


def test_linear_head_is_the_optimum_of_balanced_logistic_regression():
    """scikit-learn solves the same problem in all 40 dimensions."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    labels = np.repeat([0, 3, 7], [5, 5, 3])
    support = rng.normal(size=(13, 40)) + 0.7 * labels[:, None]
    queries = rng.normal(size=(200, 40)) + 0.7 * rng.choice([0, 3, 7], 200)[:, None]
    head = Linear.fit(support, labels)
    known = LogisticRegression(C=1, class_weight="balanced", tol=1e-10, max_iter=10_000)
    known.fit(support, labels)
    weights = head.weights
    np.testing.assert_allclose(
        weights - weights.mean(1, keepdims=True),
        known.coef_.T - known.coef_.T.mean(1, keepdims=True),
        atol=1e-4,
    )
    np.testing.assert_array_equal(head.predict(queries), known.predict(queries))


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_linear_head_is_at_its_minimum(scale):
    """Copies of columns, as roles make them, and weights that have to grow large."""
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(6), 20)
    base = rng.normal(size=(120, 40)) + labels[:, None] / 4
    support = scale * (np.tile(base, 8) + 0.01 * rng.normal(size=(120, 320)))
    head = Linear.fit(support, labels)
    logits = support @ head.weights + head.bias
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    slope = support.T @ (shares - np.eye(6)[labels]) + head.weights  # all classes weigh one
    start = support.T @ (np.full((120, 6), 1 / 6) - np.eye(6)[labels])
    assert np.abs(slope).max() < 1e-7 * np.abs(start).max()
    assert np.abs((shares - np.eye(6)[labels]).sum(0)).max() < 1e-5


def test_linear_head_of_two_classes_and_of_fewer_dimensions_than_examples():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 20)
    support = rng.normal(size=(40, 3)) + labels[:, None]
    head = Linear.fit(support, labels)
    assert (head.predict(support) == labels).mean() > 0.75
    same = Linear.fit(np.zeros((4, 3)), [0, 0, 1, 1])  # nothing to tell them apart by
    assert set(same.predict(np.ones((2, 3)))) <= {0, 1}
