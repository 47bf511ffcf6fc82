"""GraphClassifier and GraphRegressor: predictions, what they learn from, and scikit-learn."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from cases import from_dense, random_dense
from learning.block_data import BLOCKS, vectors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import artlas
from artlas.blocks import Layout

NAMES = np.array(["ring", "star", "tree"])


def classifier(**settings):
    return artlas.GraphClassifier(blocks=BLOCKS, **settings)


@pytest.fixture(scope="module")
def graphs():
    """Thirty random graphs with three features a node, every second one dense."""
    rng = np.random.default_rng(0)
    made = from_dense(
        [random_dense(int(rng.integers(6, 14)), 0.2 + 0.4 * (i % 2), rng) for i in range(30)]
    )
    return made.with_features(rng.normal(size=(made.num_nodes, 3)))


KINDS = np.array(["sparse", "dense"] * 15)
LANDMARKS = {"exact_up_to": 10, "landmarks": 40}


@pytest.mark.parametrize("settings", [{}, LANDMARKS], ids=["exact", "landmarks"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_predicted_with_probabilities_in_their_order(settings, classes):
    X, places = vectors(150, classes)
    y = NAMES[places]
    made = classifier(**settings).fit(X[:100], y[:100])
    predicted, shares = made.predict(X[100:]), made.predict_proba(X[100:])
    assert (predicted == y[100:]).mean() == made.score(X[100:], y[100:]) > 0.8
    np.testing.assert_allclose(shares.sum(1), 1)
    np.testing.assert_array_equal(made.classes_[shares.argmax(1)], predicted)
    scores = made.decision_function(X[100:])
    assert scores.shape == ((50,) if classes == 2 else (50, 3))
    found = (scores > 0).astype(int) if classes == 2 else scores.argmax(1)
    np.testing.assert_array_equal(made.classes_[found], predicted)


@pytest.mark.parametrize("settings", [{}, LANDMARKS], ids=["exact", "landmarks"])
def test_numbers_are_predicted(settings):
    X, _ = vectors(150)
    y = 1e6 + np.tanh(X[:, 0] * 1e5).astype(float) + X[:, 1] * 1e4
    made = artlas.GraphRegressor(blocks=BLOCKS, **settings).fit(X[:100], y[:100])
    residual = y[100:] - made.predict(X[100:])
    wanted = 1 - (residual**2).sum() / ((y[100:] - y[100:].mean()) ** 2).sum()
    assert made.score(X[100:], y[100:]) == pytest.approx(wanted)
    assert wanted > 0.7
    assert made.report_.quality["R²"] == pytest.approx(wanted, abs=0.2)


def test_graphs_of_any_form_are_embedded(graphs):
    made = artlas.GraphClassifier().fit(graphs[:20], KINDS[:20])
    wanted = made.predict_proba(graphs[20:])
    assert made.score(graphs[20:], KINDS[20:]) > 0.8
    np.testing.assert_array_equal(made.predict_proba(list(graphs[20:])), wanted)
    ready = artlas.blocks.embed(graphs)
    np.testing.assert_array_equal(made.predict_proba(ready[20:]), wanted)
    same = artlas.GraphClassifier(blocks=artlas.blocks.layout()).fit(ready[:20], KINDS[:20])
    np.testing.assert_array_equal(same.predict_proba(ready[20:]), wanted)
    plain = [nx.cycle_graph(n) for n in range(3, 9)] + [nx.star_graph(n) for n in range(3, 9)]
    assert artlas.GraphClassifier().fit(plain, [0] * 6 + [1] * 6).score(plain, [0] * 6 + [1] * 6)


def test_labels_that_the_graphs_carry_are_used(graphs):
    places = np.arange(30) % 2
    labelled = graphs.with_labels(places)
    made = artlas.GraphClassifier().fit(labelled[:20])
    other = artlas.GraphClassifier().fit(graphs[:20], places[:20])
    np.testing.assert_array_equal(made.predict_proba(graphs), other.predict_proba(graphs))
    assert made.score(labelled[20:]) == made.score(graphs[20:], places[20:])
    flipped = artlas.GraphClassifier().fit(labelled[:20], 1 - places[:20])  # y comes first
    np.testing.assert_array_equal(flipped.predict(graphs), 1 - made.predict(graphs))
    number = artlas.GraphRegressor().fit(graphs.with_labels(places + 0.5))
    assert number.score(graphs.with_labels(places + 0.5)) > 0.5


@pytest.mark.parametrize("settings", [{}, LANDMARKS], ids=["exact", "landmarks"])
def test_a_prediction_depends_on_that_row_and_the_training_rows_alone(settings):
    X, y = vectors(200)
    made = classifier(**settings).fit(X[:80], y[:80])
    before = pickle.dumps(vars(made)["machine_"])
    whole = made.predict_proba(X[80:])
    for i in (0, 7, 119):
        np.testing.assert_allclose(made.predict_proba(X[80 + i][None])[0], whole[i], atol=1e-6)
    again = classifier(**settings).fit(X[:80], y[:80])
    again.predict(1000 * X[80:])
    np.testing.assert_array_equal(again.predict_proba(X[80:]), whole)
    assert again.sharpness_ == made.sharpness_
    assert pickle.dumps(vars(made)["machine_"]) == before


def test_leave_one_out_accuracy_is_that_of_refits_with_the_same_kernel():
    X, y = vectors(60, spread=1.5)
    made = classifier(ridge=0.3).fit(X, y)
    machine, right = made.machine_, 0
    gram, targets = machine.kernel.gram().double().numpy(), np.eye(2)[y]
    for i in range(60):
        rest = np.arange(60) != i
        system = np.ones((60, 60))
        system[:59, :59] = gram[np.ix_(rest, rest)] + 0.3 * np.eye(59)
        system[59, 59] = 0
        solution = np.linalg.solve(system, np.vstack([targets[rest], np.zeros((1, 2))]))
        right += (gram[i, rest] @ solution[:59] + solution[59]).argmax() == y[i]
    assert made.report_.quality["accuracy"] == pytest.approx(right / 60)
    assert 0.5 < right / 60 < 1


def test_a_row_of_weight_zero_is_as_if_absent():
    X, y = vectors(80)
    weights = np.ones(80)
    weights[::4] = 0
    kept = weights > 0
    with_zeros = classifier().fit(X, y, weights)
    without = classifier().fit(X[kept], y[kept])
    np.testing.assert_array_equal(with_zeros.predict_proba(X), without.predict_proba(X))
    near = [n.number for n in with_zeros.explain(X[:1]).neighbours]
    assert near == [int(np.flatnonzero(kept)[n.number]) for n in without.explain(X[:1]).neighbours]


def test_weights_pull_predictions_towards_their_rows():
    X, y = vectors(100, spread=3.0)
    weights = np.where(y == 1, 10.0, 1.0)
    plain, weighted = classifier().fit(X, y), classifier().fit(X, y, weights)
    assert (weighted.predict(X) == 1).mean() > (plain.predict(X) == 1).mean() + 0.1


def test_balanced_classes_weigh_the_same():
    X, y = vectors(200, spread=2.0)
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:10]]
    X, y = X[rows], y[rows]
    plain = classifier().fit(X, y)
    balanced = classifier(class_weight="balanced").fit(X, y)
    by_hand = classifier().fit(X, y, np.where(y == 1, 110 / 20, 110 / 200))
    np.testing.assert_array_equal(balanced.predict_proba(X), by_hand.predict_proba(X))
    assert (balanced.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_weights_of_blocks():
    X, y = vectors(100)
    alone = artlas.GraphClassifier(blocks={"shape": 4}).fit(X[:, :4].copy(), y)
    made = classifier(weights={"noise": 0}).fit(X, y)
    np.testing.assert_array_equal(made.predict_proba(X), alone.predict_proba(X[:, :4]))
    assert list(made.report_.alignments) == ["shape"]
    other = classifier(weights={"shape": 0.001}).fit(X, y)
    assert other.report_.quality["accuracy"] < 0.8 < made.report_.quality["accuracy"]


def test_probabilities_are_calibrated():
    """On held-out rows they beat the scores' own softmax, and the truth is within 5%."""
    X, y = vectors(1200, spread=2.0)
    made = classifier().fit(X[:400], y[:400])
    shares = made.predict_proba(X[400:])
    uncalibrated = pickle.loads(pickle.dumps(made))
    uncalibrated.sharpness_ = 1.0
    assert log_loss(y[400:], shares) < log_loss(y[400:], uncalibrated.predict_proba(X[400:])) - 0.01
    sure, right = shares.max(1), made.predict(X[400:]) == y[400:]
    bins = np.minimum((sure * 15).astype(int), 14)
    errors = [abs(sure[bins == b].sum() - right[bins == b].sum()) for b in range(15)]
    assert sum(errors) / 800 < 0.05


@pytest.mark.slow
def test_cross_validation_of_graphs(graphs):
    made = artlas.GraphClassifier()
    assert cross_val_score(made, graphs, KINDS, cv=3).mean() > 0.8
    assert cross_val_score(made, list(graphs), KINDS, cv=3).mean() > 0.8
    plain = [nx.path_graph(n) for n in range(3, 9)] + [nx.complete_graph(n) for n in range(3, 9)]
    assert cross_val_score(made, plain, [0] * 6 + [1] * 6, cv=3).mean() > 0.6
    search = GridSearchCV(made, {"ridge": [None, 0.1]}, cv=3).fit(graphs, KINDS)
    assert search.best_score_ > 0.8
    vote = cross_val_predict(made, graphs, KINDS, cv=3, method="predict_proba")
    assert vote.shape == (30, 2)


@pytest.mark.slow
def test_parallel_cross_validation_of_graphs(graphs):
    scores = cross_val_score(artlas.GraphClassifier(), graphs, KINDS, cv=3, n_jobs=2)
    np.testing.assert_array_equal(
        scores, cross_val_score(artlas.GraphClassifier(), graphs, KINDS, cv=3)
    )


def test_pipeline_clone_and_pickle(graphs):
    X, y = vectors(60)
    pipeline = make_pipeline(StandardScaler(), classifier()).fit(X, y)
    np.testing.assert_array_equal(pipeline.predict(X), classifier().fit(X, y).predict(X))
    first = artlas.GraphClassifier(ridge=0.2).fit(graphs, KINDS)
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.predict_proba(graphs), first.predict_proba(graphs))
    fresh = clone(first)
    assert fresh.get_params()["ridge"] == 0.2
    for method in (fresh.predict, fresh.predict_proba, fresh.novelty, fresh.explain, fresh.save):
        with pytest.raises(NotFittedError):
            method(graphs)


def test_an_estimator_can_be_fitted_anew(graphs):
    X, y = vectors(60)
    made = artlas.GraphClassifier().fit(X, y).fit(graphs, KINDS)
    other = artlas.GraphClassifier().fit(graphs, KINDS)
    np.testing.assert_array_equal(made.predict_proba(graphs), other.predict_proba(graphs))
    made.fit(X, y)
    np.testing.assert_array_equal(
        made.predict_proba(X), artlas.GraphClassifier().fit(X, y).predict_proba(X)
    )


def test_a_tensor_an_array_and_a_layout_are_the_same():
    X, y = vectors(60)
    wanted = classifier().fit(X, y).predict_proba(X)
    made = artlas.GraphClassifier(blocks=Layout.of_widths(BLOCKS)).fit(torch.from_numpy(X), y)
    np.testing.assert_array_equal(made.predict_proba(torch.from_numpy(X)), wanted)
    X.flags.writeable = False  # as joblib hands over large arrays
    np.testing.assert_array_equal(classifier().fit(X, y).predict_proba(X), wanted)


UNMET = {
    "check_sample_weight_equivalence_on_dense_data": "weights do not enter the columns' scales",
    "check_estimator_sparse_tag": "a sparse matrix is a graph",
    "check_estimator_sparse_array": "a sparse matrix is a graph",
    "check_estimator_sparse_matrix": "a sparse matrix is a graph",
    "check_class_weight_classifiers": "class weights are balanced or the same",
    "check_methods_subset_invariance": "kernels in float32 differ by more than 1e-7",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    "made",
    [
        artlas.GraphClassifier(),
        artlas.GraphClassifier(class_weight="balanced", exact_up_to=10, landmarks=20),
        artlas.GraphRegressor(),
    ],
    ids=["classifier", "landmarks", "regressor"],
)
def test_they_pass_the_checks_of_scikit_learn(made):
    check_estimator(made, expected_failed_checks=UNMET)
