"""What the estimators of graphs refuse, and extreme input that they answer soundly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense
from learning.block_data import BLOCKS, vectors

import artlas
from artlas.blocks import Layout

X, Y = vectors(30)
GRAPHS = from_dense([random_dense(6, 0.5, np.random.default_rng(i)) for i in range(4)])


def refused(match, rows=X, y=Y, sample_weight=None, regress=False, **settings):
    kind = artlas.GraphRegressor if regress else artlas.GraphClassifier
    with pytest.raises(artlas.GraphError, match=match) as error:
        kind(**settings).fit(rows, y, sample_weight)
    assert "; got " in str(error.value)
    assert "To fix this, " in str(error.value)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.zeros(30), r"only one class to choose from; got one class, 0.0"),
        (Y[:29], r"not one label per graph; got 29 labels for 30 graphs"),
        (np.where(Y == 0, np.nan, 1.0), r"a label is missing; got nan at 0"),
        ([None] * 5 + ["a"] * 25, r"a label is missing; got None at 0"),
        (["a", 1] * 15, r"labels are of several kinds; got int, str"),
        (np.linspace(0, 1, 30), r"Unknown label type: continuous; got \[0.0"),
        (None, r"y to be passed, but the target y is None; got 30 graphs without labels"),
    ],
)
def test_labels_that_cannot_be_learned(y, match):
    y = np.array(y, dtype=object) if isinstance(y, list) else y
    refused(match, y=y)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.array(["1", "2"] * 15), r"a target is not a number; got \['1', '2', '1'\]"),
        (np.where(Y == 0, np.inf, 1.0), r"a target is not finite; got inf at 0"),
        (np.where(Y == 1, np.nan, 1.0), r"a label is missing; got nan at 1"),
    ],
)
def test_numbers_that_cannot_be_learned(y, match):
    refused(match, y=y, regress=True)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (np.where(np.arange(30) == 4, -2.0, 1.0), r"negative or not finite; got -2.0"),
        (np.full(30, np.nan), r"negative or not finite; got nan"),
        (np.zeros(30), r"all sample weights are zero"),
        (np.ones(29), r"one sample weight per graph; got shape \[29\] for 30 graphs"),
        (["heavy"] * 30, r"a sample weight is not a number"),
        (np.where(Y == 1, 0.0, 1.0), r"a class has no weight; got class np.int64\(1\)"),
    ],
)
def test_weights_that_fit_no_rows(weights, match):
    refused(match, sample_weight=weights)


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_vectors_that_are_not_finite(value, name):
    rows = X.copy()
    rows[17, 3] = value
    refused(rf"a vector is not finite; got {name} in row 17", rows)
    made = artlas.GraphClassifier().fit(X, Y)
    with pytest.raises(artlas.GraphError, match=f"not finite; got {name} in row 17"):
        made.predict(rows)


@pytest.mark.parametrize(
    ("blocks", "match"),
    [
        (
            {"a": 4, "b": 6},
            r"do not fit the vectors; got blocks of 10 columns in all, vectors of 11",
        ),
        (Layout.of_widths({"a": 12}), r"got blocks of 12 columns in all, vectors of 11"),
        ({"a": 11.0}, r"a block's width is no number; got \{'a': 11.0\}"),
        ({"a": -1, "b": 12}, r"a block's width is no number"),
        (11, r"not declared by a mapping; got 11"),
    ],
)
def test_blocks_that_do_not_fit(blocks, match):
    refused(match, blocks=blocks)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ({"colours": 1}, r"a block's weight does not fit; got \{'colours': 1\}"),
        ({"shape": -1}, r"among shape, noise"),
        ({"shape": np.nan}, r"a block's weight does not fit"),
        ({"shape": "all"}, r"a block's weight does not fit"),
        ({"shape": 0, "noise": 0}, r"all blocks have weight zero"),
        (3, r"the blocks' weights are not a mapping; got 3"),
    ],
)
def test_weights_of_blocks_that_do_not_fit(weights, match):
    refused(match, blocks=BLOCKS, weights=weights)


@pytest.mark.parametrize(
    ("setting", "match"),
    [
        ({"ridge": 0}, "ridge must be positive"),
        ({"ridge": np.nan}, "ridge must be positive"),
        ({"landmarks": 1}, "landmarks must be a whole number from 2"),
        ({"exact_up_to": 0.5}, "exact_up_to must be a whole number"),
        ({"class_weight": "fair"}, "class_weight must be one of balanced"),
        ({"verbose": 1}, "verbose must be one of True, False"),
    ],
)
def test_settings_that_are_none(setting, match):
    with pytest.raises(ValueError, match=match):
        artlas.GraphClassifier(**setting).fit(X, Y)


def test_graphs_unlike_those_of_the_fit():
    made = artlas.GraphClassifier().fit(GRAPHS, [0, 1, 0, 1])
    featured = GRAPHS.with_features(np.ones((GRAPHS.num_nodes, 2)))
    with pytest.raises(artlas.GraphError, match="2 features, but 0 when fitted"):
        made.predict(featured)
    with pytest.raises(ValueError, match="11 features, but GraphClassifier is expecting"):
        made.predict(X)
    with pytest.raises(artlas.GraphError, match="this was fitted to vectors; got a Graphs"):
        artlas.GraphClassifier().fit(X, Y).predict(GRAPHS)
    refused("blocks are declared for graphs", GRAPHS, [0, 1, 0, 1], blocks={"size": 3})
    per_node = GRAPHS.with_labels(np.arange(GRAPHS.num_nodes) % 2)
    refused("the target y is None; got 4 graphs without labels", per_node, None)


def test_one_graph_is_too_few():
    refused("nothing to compare; got one sample", GRAPHS[:1], [0])


@pytest.mark.parametrize("settings", [{}, {"exact_up_to": 0, "landmarks": 5}])
@pytest.mark.parametrize("rows", [np.ones((12, 11)), np.zeros((12, 11), np.float32)])
def test_rows_that_are_all_equal_are_given_the_commonest_class(rows, settings):
    y = np.array([0, 1, 1] * 4)
    made = artlas.GraphClassifier(**settings).fit(rows, y)
    assert made.predict(rows[:3]).tolist() == [1, 1, 1]
    assert made.predict(rows[:1] + 5).tolist() == [1]
    shares = made.predict_proba(rows[:1])[0]
    assert 0 < shares[0] < shares[1] < 1
    assert not made.outside(rows).any()
    assert made.explain(rows[0]).prediction == 1
    number = artlas.GraphRegressor(**settings).fit(rows, y)
    np.testing.assert_allclose(number.predict(rows), 2 / 3)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_one_example_a_class_is_recognised(count):
    rows, y = X[:count], np.array(["a", "b", "c", "d", "e"])[:count]
    made = artlas.GraphClassifier(blocks=BLOCKS).fit(rows, y)
    assert made.predict(rows).tolist() == y.tolist()
    shares = made.predict_proba(rows)
    assert np.isfinite(shares).all()
    assert shares.argmax(1).tolist() == list(range(count))
    assert np.isfinite(artlas.GraphRegressor().fit(rows, np.arange(count)).predict(X)).all()


def test_two_equal_rows_of_two_classes():
    made = artlas.GraphClassifier().fit(np.ones((2, 3)), [0, 1])
    np.testing.assert_allclose(made.predict_proba(np.ones((2, 3))), 0.5)


def test_many_copies_of_few_rows_are_solved():
    rows, y = np.repeat(X[:4], 50, 0), np.repeat(Y[:4], 50)
    made = artlas.GraphClassifier(blocks=BLOCKS).fit(rows, y)
    assert made.score(rows, y) == 1
    assert made.report_.quality["accuracy"] == 1


def test_very_uneven_weights_are_solved():
    weights = 10.0 ** np.linspace(-12, 12, 30)
    made = artlas.GraphClassifier(blocks=BLOCKS, ridge=1e-3).fit(X, Y, weights)
    assert np.isfinite(made.predict_proba(X)).all()
    assert made.predict(X[-1:])[0] == Y[-1]


def test_values_far_beyond_the_training_rows_are_answered():
    made = artlas.GraphClassifier(blocks=BLOCKS).fit(X, Y)
    far = np.array([np.full(11, 3e38), np.full(11, -3e38)], dtype=np.float32)
    assert np.isfinite(made.predict_proba(far)).all()
    assert made.outside(far).all()


def test_whole_numbers_and_booleans_are_labels():
    for y in (Y.astype(bool), Y.astype(np.int8), Y.astype(float), torch.from_numpy(Y)):
        made = artlas.GraphClassifier(blocks=BLOCKS).fit(X, y)
        assert made.predict(X).dtype == np.asarray(y).dtype
        assert made.score(X, y) > 0.9
