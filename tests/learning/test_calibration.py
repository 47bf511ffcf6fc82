"""Probabilities from scores by one temperature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import log_loss

from artlas.learning.calibration import fit_sharpness, probabilities


@pytest.mark.parametrize("truth", [0.7, 5.0, 60.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_it_recovers_the_sharpness_that_made_the_labels(truth, classes):
    rng = np.random.default_rng(0)
    scores = rng.uniform(0, 1, size=(20_000, classes))
    shares = softmax(truth * scores, axis=1)
    labels = (shares.cumsum(1) < rng.uniform(size=(20_000, 1))).sum(1)
    found = fit_sharpness(scores, labels, np.ones(20_000))
    assert found == pytest.approx(truth, rel=0.1)
    calibrated = log_loss(labels, probabilities(scores, found))
    assert calibrated < log_loss(labels, probabilities(scores, 2.0))


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=(30, 3)), rng.integers(0, 3, 30)
    weights = np.ones(30)
    weights[:5] = 2000
    found = fit_sharpness(scores, labels, weights)
    only = fit_sharpness(scores[:5], labels[:5], np.full(5, 2000.0))
    assert found == pytest.approx(only, rel=0.05)
    assert found != pytest.approx(fit_sharpness(scores, labels, np.ones(30)), rel=0.2)


@pytest.mark.parametrize("count", [2, 10, 1000])
def test_rows_that_are_all_right_leave_some_doubt_which_wanes(count):
    labels = np.arange(count) % 2
    sharpness = fit_sharpness(np.eye(2)[labels], labels, np.ones(count))
    top = probabilities(np.eye(2)[:1], sharpness)[0, 0]
    assert 0.9 < top < 1 - 1 / (10 * count)


def test_rows_that_are_all_wrong_give_even_odds_with_the_same_order():
    labels = np.arange(100) % 2
    sharpness = fit_sharpness(np.eye(2)[1 - labels], labels, np.ones(100))
    shares = probabilities(np.array([[1.0, 0.0], [0.2, 0.3]]), sharpness)
    np.testing.assert_allclose(shares, 0.5, atol=0.06)
    assert shares.argmax(1).tolist() == [0, 1]
