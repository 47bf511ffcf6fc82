"""Estimators on disk: the same bits after a load, and files that cannot be trusted."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense
from learning.block_data import BLOCKS, vectors

import artlas
from artlas.errors import ReadError
from artlas.files.stored import read_tensors, write_tensors

X, Y = vectors(60, 3)
NAMES = np.array(["ring", "stjärna", "tree"])
FACTS, TENSORS = "estimator.json", "estimator.safetensors"


def saved(tmp_path, **settings):
    made = artlas.GraphClassifier(blocks=BLOCKS, **settings).fit(X, NAMES[Y])
    made.save(tmp_path / "model")
    return made, tmp_path / "model"


@pytest.mark.parametrize("settings", [{}, {"exact_up_to": 10, "landmarks": 20}])
@pytest.mark.parametrize(
    "labels", [NAMES[Y], NAMES.astype(object)[Y], Y, Y.astype(np.uint8), Y - 0.0, Y > 0]
)
def test_a_classifier_is_loaded_with_its_bits(tmp_path, labels, settings):
    made = artlas.GraphClassifier(blocks=BLOCKS, weights={"noise": 0.5}, **settings)
    made.fit(X, labels).save(tmp_path)
    again = artlas.GraphClassifier.load(tmp_path)
    np.testing.assert_array_equal(again.predict_proba(X), made.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), made.predict(X))
    assert again.predict(X).dtype == made.predict(X).dtype
    np.testing.assert_array_equal(again.novelty(X[:5] * 1.5), made.novelty(X[:5] * 1.5))
    assert again.explain(X[3]) == made.explain(X[3])
    assert again.report_ == made.report_
    settings = made.get_params() | {"blocks": artlas.blocks.Layout.of_widths(BLOCKS)}
    assert again.get_params() == settings
    refitted = again.fit(X, labels)
    np.testing.assert_array_equal(refitted.predict_proba(X), made.predict_proba(X))


def test_a_regressor_is_loaded_with_its_bits(tmp_path):
    made = artlas.GraphRegressor().fit(X, Y * 1.5)
    made.save(tmp_path)
    again = artlas.GraphRegressor.load(str(tmp_path))
    np.testing.assert_array_equal(again.predict(X), made.predict(X))
    assert again.explain(X[3]) == made.explain(X[3])


def test_an_estimator_of_graphs_still_takes_graphs(tmp_path):
    graphs = from_dense([random_dense(6, 0.5, np.random.default_rng(i)) for i in range(8)])
    made = artlas.GraphClassifier().fit(graphs, [0, 1] * 4)
    made.save(tmp_path)
    again = artlas.GraphClassifier.load(tmp_path)
    np.testing.assert_array_equal(again.predict_proba(graphs), made.predict_proba(graphs))
    with pytest.raises(artlas.GraphError, match="1 features, but 0 when fitted"):
        again.predict(graphs.with_features(np.ones((graphs.num_nodes, 1))))
    change(tmp_path, lambda facts: facts["layout"][0].__setitem__(0, "bigness"))
    with pytest.raises(ReadError, match="blocks"):
        artlas.GraphClassifier.load(tmp_path)


def test_there_is_no_pickle_and_no_rest(tmp_path):
    _, folder = saved(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [FACTS, TENSORS]
    json.loads((folder / FACTS).read_text(encoding="utf-8"))


def test_a_wrong_place_or_class(tmp_path):
    with pytest.raises(ReadError, match="there is no estimator here"):
        artlas.GraphClassifier.load(tmp_path)
    _, folder = saved(tmp_path)
    with pytest.raises(ReadError, match=r"not a GraphRegressor .* got 'GraphClassifier'"):
        artlas.GraphRegressor.load(folder)
    change(folder, lambda facts: facts.update(format=99))
    with pytest.raises(ReadError, match=r"in format 99\. To fix this, "):
        artlas.GraphClassifier.load(folder)


def change(folder, edit):
    """Edit the JSON file."""
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    edit(facts)
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")


EDITS = {
    "a key is gone": lambda f: f.pop("kernel"),
    "settings unknown": lambda f: f["settings"].update(depth=3),
    "settings no object": lambda f: f.update(settings=7),
    "ridge text": lambda f: f.update(ridge="much"),
    "ridge infinite": lambda f: f.update(ridge=1e999),
    "sharpness none": lambda f: f.update(sharpness=None),
    "sharpness negative": lambda f: f.update(sharpness=-1.0),
    "classes gone": lambda f: f.update(classes=None),
    "a class more": lambda f: f["classes"]["values"].append("vine"),
    "classes unsorted": lambda f: f["classes"]["values"].reverse(),
    "classes mixed": lambda f: f["classes"]["values"].__setitem__(0, 1),
    "classes of another kind": lambda f: f["classes"].update(dtype="<i8"),
    "classes cut": lambda f: f["classes"].update(dtype="<U2"),
    "classes of no dtype": lambda f: f["classes"].update(dtype="run me"),
    "widths negative": lambda f: f["kernel"].update(widths=[-4, 15]),
    "widths too large": lambda f: f["kernel"].update(widths=[4, 8]),
    "a block unknown": lambda f: f["kernel"].update(names=["shape", "smell"]),
    "a weight zero": lambda f: f["kernel"].update(weights=[0, 1]),
    "a weight too few": lambda f: f["kernel"].update(weights=[1.0]),
    "layout short": lambda f: f["layout"].pop(),
    "layout of numbers": lambda f: f.update(layout=[[1, [2]]]),
    "layout no list": lambda f: f.update(layout=5),
    "features negative": lambda f: f.update(num_features=-1),
    "features of graphs": lambda f: f.update(num_features=3),
    "report unknown": lambda f: f["report"].update(colour="red"),
    "report of text": lambda f: f["report"].update(graphs="many"),
    "report of lists": lambda f: f["report"].update(quality=[1]),
    "a setting of text": lambda f: f["settings"].update(ridge="much"),
    "features without end": lambda f: f.update(num_features=10**15),
    "tensors of another": lambda f: f.update(sha256="0" * 64),
}


@pytest.mark.parametrize("name", EDITS)
def test_settings_that_were_tampered_with(tmp_path, name):
    _, folder = saved(tmp_path)
    change(folder, EDITS[name])
    with pytest.raises(ReadError, match=r"estimator.json: .*; got .* To fix this, "):
        artlas.GraphClassifier.load(folder)


def wrong_tensors():
    """Name what is done to the tensors, and do it."""
    for name in ("mean", "scale", "anchors", "coefficients", "intercept", "familiar"):
        yield f"{name} not finite", lambda t, n=name: t[n].view(-1)[:1].fill_(torch.nan)
    for name in ("columns", "mean", "anchors", "coefficients", "intercept", "numbers", "labels"):
        yield f"{name} short", lambda t, n=name: t.update({n: t[n][:-1].clone()})
        yield f"{name} gone", lambda t, n=name: t.pop(n)
        yield f"{name} of another type", lambda t, n=name: t.update({n: t[n].to(torch.float16)})
    yield "columns beyond", lambda t: t["columns"][-1:].fill_(11)
    yield "columns before", lambda t: t["columns"][:1].fill_(-1)
    yield "columns twice", lambda t: t["columns"][:2].fill_(0)
    yield "labels beyond", lambda t: t["labels"][:1].fill_(3)
    yield "labels before", lambda t: t["labels"][:1].fill_(-1)
    yield "numbers before", lambda t: t["numbers"][:1].fill_(-1)
    yield "familiar unsorted", lambda t: t["familiar"][:1].fill_(2)
    yield "scale of another fit", lambda t: t["scale"].mul_(2)
    yield "one more", lambda t: t.update(extra=torch.ones(1))
    yield "nothing familiar", lambda t: t.update(familiar=torch.zeros(0))


WRONG = dict(wrong_tensors())


@pytest.mark.parametrize("name", WRONG)
def test_tensors_that_were_tampered_with(tmp_path, name):
    _, folder = saved(tmp_path)
    tensors = read_tensors(folder / TENSORS)
    WRONG[name](tensors)
    write_tensors(folder / TENSORS, tensors)
    with pytest.raises(ReadError, match=r"; got .* To fix this, "):
        artlas.GraphClassifier.load(folder)


def test_files_that_were_cut(tmp_path):
    _, folder = saved(tmp_path)
    for name in (TENSORS, FACTS):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ReadError, match="not a"):
            artlas.GraphClassifier.load(folder)
        (folder / name).write_bytes(whole)
    artlas.GraphClassifier.load(folder)
