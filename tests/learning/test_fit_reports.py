"""What the estimators of graphs tell beside predictions: reports, explanations, novelty."""

from __future__ import annotations

import numpy as np
import pytest
from learning.block_data import BLOCKS, vectors

import artlas

NAMES = np.array(["ring", "star", "tree"])
LANDMARKS = {"exact_up_to": 10, "landmarks": 40}


def classifier(**settings):
    return artlas.GraphClassifier(blocks=BLOCKS, **settings)


def test_novelty_is_the_share_of_training_rows_with_nearer_neighbours():
    X, y = vectors(300)
    made = classifier().fit(X[:200], y[:200])
    usual = made.novelty(X[200:])
    assert 0.3 < usual.mean() < 0.7
    assert made.outside(X[200:]).mean() < 0.05
    assert made.outside(X[200:], 0.3).mean() == pytest.approx(0.3, abs=0.15)
    np.testing.assert_array_equal(made.novelty(X[200:] + 5 * X.std(0)), 1)
    assert made.outside(X[200:] + 5 * X.std(0)).all()
    np.testing.assert_array_equal(made.novelty(X[:200]), 0)  # each has itself as a neighbour
    rough = classifier(exact_up_to=10, landmarks=50).fit(X[:200], y[:200])
    assert rough.outside(X[200:]).mean() < 0.06
    assert rough.outside(X[200:] + 5 * X.std(0)).all()
    with pytest.raises(artlas.GraphError, match="the level is no share; got 5"):
        made.outside(X, 5)


@pytest.mark.parametrize("settings", [{}, LANDMARKS], ids=["exact", "landmarks"])
def test_explanations_sum_to_the_difference_of_scores(settings):
    X, places = vectors(90, 3)
    made = classifier(**settings).fit(X, NAMES[places])
    scores = made.decision_function(X[:6])
    for row, score in zip(X, scores, strict=False):
        told = made.explain(row)
        best, second = np.argsort(-score)[:2]
        assert (told.prediction, told.runner_up) == (NAMES[best], NAMES[second])
        total = sum(told.contributions.values()) + told.base
        assert total == pytest.approx(score[best] - score[second], abs=1e-5)
        assert told.probability == pytest.approx(made.predict_proba(row[None]).max())
        assert told.contributions["shape"] > abs(told.contributions["noise"])


def test_explanations_name_the_nearest_training_rows():
    X, places = vectors(90, 3)
    made = classifier().fit(X, NAMES[places])
    told = made.explain(X[33:34], count=4)
    gram = made.machine_.kernel.gram()[33]
    wanted = gram.argsort(descending=True)[:4].tolist()
    assert [n.number for n in told.neighbours] == wanted
    assert wanted[0] == 33
    assert [n.label for n in told.neighbours] == NAMES[places[wanted]].tolist()
    np.testing.assert_allclose([n.similarity for n in told.neighbours], gram[wanted], atol=1e-5)
    assert "shape" in str(told)
    assert "33" in str(told)
    with pytest.raises(artlas.GraphError, match="one graph is explained at a time; got 2"):
        made.explain(X[:2])


def test_explanations_of_numbers_sum_to_the_prediction():
    X, _ = vectors(60)
    made = artlas.GraphRegressor(blocks=BLOCKS).fit(X, 7 + X[:, 0] * 1e5)
    told = made.explain(X[8])
    assert told.prediction == pytest.approx(made.predict(X[8:9])[0])
    assert sum(told.contributions.values()) + told.base == pytest.approx(told.prediction, abs=1e-4)
    assert told.neighbours[0].label == pytest.approx(7 + X[8, 0] * 1e5)


def test_the_report_says_what_was_found(capsys):
    X, y = vectors(80)
    made = classifier(verbose=True).fit(X, y)
    report = made.report_
    assert capsys.readouterr().out == f"{report}\n"
    assert (report.graphs, report.columns, report.classes, report.landmarks) == (80, 11, 2, None)
    assert report.ridge == made.machine_.ridge
    assert report.alignments["shape"] > 3 * abs(report.alignments["noise"])
    assert "leave-one-out: accuracy" in str(report)
    classifier(**LANDMARKS).fit(X, y)
    assert capsys.readouterr().out == ""
    assert classifier(**LANDMARKS).fit(X, y).report_.landmarks == 40


def test_leaving_blocks_out_tells_the_useful_from_the_useless():
    X, y = vectors(120, spread=1.0)
    gains = classifier(verbose=True).fit(X, y).leave_one_block_out(X, y)
    without = classifier(weights={"shape": 0}).fit(X, y).report_.quality["accuracy"]
    whole = classifier(weights={}).fit(X, y).report_.quality["accuracy"]
    assert gains["shape"] == whole - without > 0.2
    assert abs(gains["noise"]) < 0.1
    with pytest.raises(artlas.GraphError, match="there is no other block"):
        artlas.GraphRegressor().fit(X, y).leave_one_block_out(X, y)
