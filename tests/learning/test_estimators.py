"""The estimators follow scikit-learn's conventions, also for graph input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import artlas
from artlas.learning.heads import Linear, Prototypes, SupportScaler
from artlas.method.representations import REPRESENTATIONS

SMALL = artlas.ArtConfig(bases=3, roles=4, hidden=16)


@pytest.fixture(scope="module")
def graphs():
    """Two classes of random graphs, sparse and dense, with three features a node."""
    rng = np.random.default_rng(0)
    made = from_dense(
        [random_dense(int(rng.integers(6, 14)), 0.2 + 0.4 * (i % 2), rng) for i in range(24)]
    )
    return made.with_features(rng.normal(size=(made.num_nodes, 3)))


LABELS = np.array(["sparse", "dense"] * 12)


def embedder(**changes):
    return artlas.GraphEmbedder(artlas.ART(SMALL), **changes)


def test_clone_and_parameters(graphs):
    first = artlas.GraphEmbedder("graph", "coordinates").fit(graphs)
    again = clone(first)
    assert again.get_params() == {"model": "graph", "representation": "coordinates"}
    assert not hasattr(again, "model_")
    again.set_params(representation="paper")
    assert again.representation == "paper"
    assert first.representation == "coordinates"
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        again.set_params(depth=3)


def test_a_model_as_parameter_is_cloned_whole(graphs):
    first = embedder().fit(graphs)
    again = clone(first).fit(graphs)
    np.testing.assert_array_equal(again.transform(graphs), first.transform(graphs))


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_pickle_keeps_the_model_and_the_bits(graphs, representation):
    first = embedder(representation=representation).fit(graphs)
    wanted = first.transform(graphs)
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.transform(graphs), wanted)
    np.testing.assert_array_equal(wanted, first.model_.embed(graphs, representation))


def test_transform_is_idempotent_and_leaves_its_input(graphs):
    before = [t.clone() for t in (graphs.node_ptr, graphs.row_ptr, graphs.col, graphs.x)]
    made = embedder().fit(graphs)
    first = made.transform(graphs)
    np.testing.assert_array_equal(made.transform(graphs), first)
    np.testing.assert_array_equal(made.fit_transform(graphs, LABELS), first)
    now = graphs.node_ptr, graphs.row_ptr, graphs.col, graphs.x
    assert all(torch.equal(a, b) for a, b in zip(before, now, strict=True))


def test_unfitted_use_is_refused(graphs):
    with pytest.raises(NotFittedError):
        embedder().transform(graphs)
    with pytest.raises(NotFittedError):
        embedder().get_feature_names_out()
    for head in (artlas.PrototypeClassifier(), artlas.FewShotLinear()):
        for method in (head.predict, head.predict_proba, head.decision_function):
            with pytest.raises(NotFittedError):
                method(np.zeros((2, 3)))


def test_no_graph_one_graph_and_a_generator(graphs):
    made = embedder().fit(graphs)
    with pytest.raises(artlas.GraphError, match="empty"):
        made.transform([])
    whole = made.transform(graphs)
    np.testing.assert_array_equal(made.transform(graphs[3]), whole[3:4])
    np.testing.assert_array_equal(made.transform(graphs[i] for i in range(5)), whole[:5])
    np.testing.assert_array_equal(made.transform([graphs[:2], graphs[2:5]]), whole[:5])


@pytest.mark.parametrize("pooling", ["mixed", "each"])
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_every_column_has_its_own_name(graphs, representation, pooling):
    model = artlas.ART(artlas.ArtConfig(bases=3, roles=4, hidden=16, pooling=pooling))
    for data in (graphs, graphs.with_features(None)):
        made = artlas.GraphEmbedder(model, representation).fit(data)
        names = made.get_feature_names_out()
        assert len(set(names)) == len(names) == made.transform(data).shape[1]
    names = embedder(representation="paper").fit(graphs).get_feature_names_out()
    assert [names[0], names[2], names[3], names[-1]] == ["q_0", "q_2", "role_0_x_0", "role_3_x_2"]


def test_names_follow_what_columns_hold(graphs):
    """A feature that is zero everywhere empties the columns that are named after it, no others."""
    x = graphs.x.clone()
    x[:, 1] = 0
    for representation in ("paper", "features", "plus", "plus-no-roles"):
        made = embedder(representation=representation).fit(graphs)
        values = made.transform(graphs.with_features(x))
        for name, column in zip(made.get_feature_names_out(), values.T, strict=True):
            assert column.any() != (name.endswith("_1") and not name.startswith("q_"))


def test_pipeline_and_grid_search(graphs):
    pipeline = make_pipeline(embedder(), artlas.PrototypeClassifier())
    search = GridSearchCV(pipeline, {"graphembedder__representation": ["paper", "plus"]}, cv=3)
    search.fit(graphs, LABELS)
    assert search.best_score_ > 0.8
    assert set(search.predict(graphs[:4])) <= {"sparse", "dense"}
    linear = make_pipeline(embedder(representation="coordinates"), artlas.FewShotLinear())
    scores = cross_val_score(linear, graphs, LABELS, cv=3)
    assert scores.mean() > 0.8


def test_other_features_are_refused(graphs):
    made = embedder().fit(graphs)
    with pytest.raises(artlas.GraphError, match="0 features, but 3 when fitted"):
        made.transform(graphs.with_features(None))
    with pytest.raises(ValueError, match="Unknown representation 'best'"):
        embedder(representation="best").fit(graphs)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("head", [artlas.PrototypeClassifier(), artlas.FewShotLinear()])
def test_heads_pass_the_checks_of_scikit_learn(head):
    check_estimator(head)


@pytest.mark.parametrize(
    ("made", "plain"),
    [(artlas.PrototypeClassifier(), Prototypes), (artlas.FewShotLinear(), Linear)],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_heads_are_the_heads_of_the_protocol(made, plain, classes):
    rng = np.random.default_rng(2)
    labels = np.arange(30) % classes
    values = rng.normal(size=(30, 8)) + labels[:, None]
    values[:, 4] = 1.0  # constant on the support
    made = clone(made).fit(values[:20], labels[:20])
    scaler = SupportScaler.fit(values[:20])
    wanted = plain.fit(scaler.transform(values[:20]), labels[:20]).predict(
        scaler.transform(values[20:])
    )
    np.testing.assert_array_equal(made.predict(values[20:]), wanted)
    shares = made.predict_proba(values[20:])
    np.testing.assert_allclose(shares.sum(1), 1)
    np.testing.assert_array_equal(shares.argmax(1), wanted)
    score = made.decision_function(values[20:])
    found = (score > 0).astype(int) if classes == 2 else score.argmax(1)
    np.testing.assert_array_equal(found, wanted)
