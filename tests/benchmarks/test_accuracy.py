"""The benchmark of accuracy: splits, records, rows and tables say what they claim."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense, star

import artlas
from artlas.blocks import Layout
from artlas_paper.transfer.control_roles import equal_mass
from benchmarks.accuracy import comparison, fair, markdown, svm, wl
from benchmarks.accuracy.__main__ import parse
from benchmarks.accuracy.block_grams import BlockGrams
from benchmarks.accuracy.calibration import Reliability
from benchmarks.accuracy.degree_roles import degree_roles
from benchmarks.accuracy.gin_network import Training, fit_and_predict
from benchmarks.accuracy.measure import measure, measure_rows
from benchmarks.accuracy.published import PUBLISHED, best
from benchmarks.accuracy.records import Record
from benchmarks.accuracy.rows import ROWS, SHORT, Prediction
from benchmarks.accuracy.splits import (
    Split,
    hash_splits,
    published_folds,
    stratified_folds,
    stratified_sample,
)
from benchmarks.accuracy.statistics import Estimate, difference, estimate, over_sets

LABELS = np.repeat([0, 1], [20, 30])


def labelled(count=30, features=True, seed=0):
    """Make graphs of two classes, which differ in density."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    dense = [random_dense(int(rng.integers(6, 10)), 0.25 + 0.35 * y, rng) for y in labels]
    x = [np.eye(3)[rng.integers(0, 3, len(matrix))] for matrix in dense] if features else None
    return from_dense(dense, x=x), labels


def test_folds_are_stratified_and_cover_every_graph_once_a_seed():
    folds = stratified_folds(LABELS, [0, 1])
    assert len(folds) == 10
    for first in (0, 5):
        tested = np.concatenate([fold.test for fold in folds[first : first + 5]])
        assert sorted(tested) == list(range(50))
    for fold in folds:
        assert not set(fold.train) & set(fold.test)
        assert np.bincount(LABELS[fold.test]).tolist() == [4, 6]


def test_published_folds_learn_from_training_and_validation(tmp_path):
    path = tmp_path / "SET.json"
    inner = {"train": [5, 1], "validation": [3]}
    path.write_text(json.dumps([{"test": [0, 2], "model_selection": [inner]}]))
    (fold,) = published_folds(path)
    assert fold.train.tolist() == [1, 3, 5]
    assert fold.validation.tolist() == [3]
    assert fold.test.tolist() == [0, 2]


def test_a_sample_keeps_the_shares_of_the_classes():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    chosen = stratified_sample(labels, 100)
    assert len(chosen) == len(set(chosen)) == 100
    np.testing.assert_allclose(np.bincount(labels[chosen]), [60, 30, 10], atol=1)
    assert stratified_sample(labels, 2000).tolist() == list(range(1000))


def test_equal_hashes_mean_equal_splits():
    whole = stratified_folds(LABELS, [0])
    assert hash_splits(whole) == hash_splits(stratified_folds(LABELS, [0]))
    assert hash_splits(whole) != hash_splits(stratified_folds(LABELS, [1]))
    one, two = np.array([1]), np.array([2])
    assert hash_splits([Split(one, two)]) != hash_splits([Split(two, one)])
    both = np.array([1, 2])
    assert hash_splits([Split(both, two[:0])]) != hash_splits([Split(one, two)])


def constant(seen):
    """Return a row that predicts class 0, and notes the labels that it was given."""

    def prepare(graphs):
        def predict(train, labels, test):
            seen.append(labels)
            return Prediction(np.zeros(len(test), dtype=np.int64))

        return predict

    return prepare


def test_a_run_resumes_from_its_records(tmp_path):
    graphs, labels = labelled()
    settings = {"folds": stratified_folds(labels, [0], 3)}
    seen: list[np.ndarray] = []

    def run(row, again=False, settings=settings):
        record = Record(tmp_path, "study", "SET")
        rows = {row: constant(seen)}
        measure_rows(record, graphs, labels, settings, rows, {"seeds": [0]}, again)
        return len(seen)

    assert run("one") == 3
    assert run("one") == 3
    assert run("one", again=True) == 6
    assert run("two") == 9
    stored = Record(tmp_path, "study", "SET")
    assert set(stored.rows) == {"one", "two"}
    result = stored.rows["one"]["folds"]
    assert result["accuracies"] == [0.5, 0.5, 0.5]
    assert {"commit", "threads", "seconds", "cpu_seconds", "embed_seconds"} <= set(result)
    splits = stored.content["splits"]["folds"]
    assert splits["hash"] == hash_splits(settings["folds"])
    assert splits["seeds"] == [0]

    assert run("one", settings={"folds": stratified_folds(labels, [1], 3)}) == 12
    assert set(Record(tmp_path, "study", "SET").rows["one"]) == {"folds"}
    assert Record(tmp_path, "study", "SET").rows["two"] == {}  # of the other folds


def test_two_runs_do_not_forget_each_others_results(tmp_path):
    first, second = Record(tmp_path, "study", "SET"), Record(tmp_path, "study", "SET")
    first.put("one", "folds", {"hash": "h"}, {"accuracies": [1.0]})
    second.put("two", "folds", {"hash": "h"}, {"accuracies": [0.5]})
    assert set(Record(tmp_path, "study", "SET").rows) == {"one", "two"}


def test_rows_see_the_labels_of_training_graphs_only():
    _, labels = labelled()
    seen: list[np.ndarray] = []
    splits = stratified_folds(labels, [0], 3)
    measure(constant(seen)(None), labels, splits)
    for split, given in zip(splits, seen, strict=True):
        assert given.tolist() == labels[split.train].tolist()


def test_calibration_error_by_hand():
    probabilities = np.array([[0.9, 0.1], [0.92, 0.08], [0.35, 0.65], [0.6, 0.4]])
    labels = np.array([0, 1, 1, 0])
    # bins of 1/15: 0.9 and 0.92 lie in (13/15, 14/15], 0.65 in (9/15, 10/15], 0.6 in (8/15, 9/15]
    wanted = (abs(0.9 + 0.92 - 1) + abs(0.65 - 1) + abs(0.6 - 1)) / 4
    found = Reliability.of(probabilities, labels)
    assert found.error == pytest.approx(wanted)
    parts = Reliability.of(probabilities[:1], labels[:1]) + Reliability.of(
        probabilities[1:], labels[1:]
    )
    assert parts.error == pytest.approx(wanted)


def test_estimates_by_hand():
    assert estimate([0.5, 0.7]) == pytest.approx((0.6, 0.1))
    assert difference([0.5, 0.9], [0.4, 0.6]) == pytest.approx((0.2, 0.1))
    assert over_sets([Estimate(0.2, 0.3), Estimate(0.4, 0.4)]) == pytest.approx((0.3, 0.25))
    assert Estimate(0.1234, 0.0056).points(signed=True) == "+12.3 ± 0.6"
    with pytest.raises(ValueError, match="differ"):
        difference([0.5, 0.9], [0.4])


PATH, TRIANGLE = np.diag([True, True], 1) | np.diag([True, True], -1), ~np.eye(3, dtype=bool)


def test_wl_by_hand():
    graphs = from_dense([PATH, TRIANGLE, star(3)])
    counts = [
        wl.counts(graphs, colours).toarray() for colours in wl.colours_by_round(graphs, 2).values()
    ]
    # round 1 tells degrees: path 1 2 1, triangle 2 2 2, star 3 1 1 1
    degrees = {tuple(column) for column in counts[0].T}
    assert degrees == {(2, 0, 3), (1, 3, 0), (0, 0, 1)}
    # round 2: the middle of the path, a corner, ends of the path, the star's ends and its centre
    assert {tuple(c) for c in counts[1].T} == {
        (1, 0, 0), (0, 3, 0), (2, 0, 0), (0, 0, 3), (0, 0, 1)
    }  # fmt: skip
    grams = wl.grams(graphs, 2)
    first = np.array([[5, 3, 6], [3, 9, 0], [6, 0, 10]])
    np.testing.assert_array_equal(grams[1], first)
    np.testing.assert_array_equal(grams[2], first + np.diag([5, 9, 10]))


def test_wl_starts_from_the_columns_of_zeros_and_ones():
    x = [np.array([[1, 0, 0.5], [0, 1, 0.2], [1, 0, 0.1]])]
    graphs = from_dense([PATH], x=x)
    assert list(wl.colours_by_round(graphs, 1)) == [0, 1]
    start = wl.start_colours(graphs)
    assert start[0] == start[2] != start[1]
    assert wl.start_colours(from_dense([PATH], x=[np.full((3, 1), 0.5)])) is None


@pytest.mark.parametrize("features", [True, False])
def test_hashed_wl_does_not_depend_on_other_graphs_or_on_the_order_of_nodes(features):
    graphs, _ = labelled(8, features)
    vectors, widths = wl.hashed_features(graphs)
    assert vectors.shape == (8, sum(widths.values()))
    assert ("wl0" in widths) == features
    np.testing.assert_array_equal(wl.hashed_features(graphs[3])[0][0], vectors[3])
    order = np.random.default_rng(0).permutation(graphs[3].num_nodes)
    dense = graphs[3].to_scipy(0).toarray()[np.ix_(order, order)]
    x = [graphs[3].x.numpy()[order]] if features else None
    np.testing.assert_array_equal(wl.hashed_features(from_dense([dense], x=x))[0][0], vectors[3])
    counts = np.expm1(vectors[:, : wl.BUCKETS]).sum(1)
    np.testing.assert_allclose(counts, graphs.sizes, rtol=1e-5)


def test_the_machine_chooses_a_kernel_that_tells_the_classes():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    good = rng.normal(size=(60, 3)) * 0.1 + 3 * labels[:, None]
    noise = rng.normal(size=(60, 3))
    grams = {1: noise @ noise.T + np.eye(60), 2: good @ good.T + np.eye(60)}
    split = stratified_folds(labels, [0])[0]
    found, choice = svm.predict(grams, split.train, labels[split.train], split.test)
    assert choice.rounds == 2
    assert choice.accuracy > 0.95
    assert (found == labels[split.test]).mean() > 0.9


def test_degree_roles_sort_nodes_by_degree_and_share_ties():
    roles = degree_roles(from_dense([star(3), PATH]), 2)
    # the star: centre of degree 3, which is the last quarter of the mass
    np.testing.assert_allclose(roles[0], [0, 1])
    np.testing.assert_allclose(roles[1:4], [[2 / 3, 1 / 3]] * 3, atol=1e-6)
    np.testing.assert_allclose(roles.sum(1), np.ones(7), atol=1e-6)
    np.testing.assert_allclose(roles[:4].sum(0), [2, 2], atol=1e-6)
    assert equal_mass(4, 2).tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]


@pytest.mark.slow
@pytest.mark.parametrize("features", [True, False])
@pytest.mark.parametrize("row", ROWS)
def test_every_row_learns(row, features):
    graphs, labels = labelled(60, features)
    predictor = ROWS[row](graphs)
    results = measure(predictor, labels, stratified_folds(labels, [0], 3))
    tells = "mean pool" not in row and "log-sum" not in row  # these two see no edges
    assert np.mean(results["accuracies"]) > (0.7 if tells else 0.2)
    assert set(SHORT.values()) == set(ROWS)


def test_kernels_of_blocks_give_the_classifiers_predictions():
    rng = np.random.default_rng(1)
    labels = np.arange(90) % 3
    vectors = rng.normal(size=(90, 12)).astype(np.float32)
    vectors[:, :4] += np.eye(3, 4)[labels] * 1.5
    layout = Layout.of_widths({"told": 4, "noise": 6, "constant": 1, "more": 1})
    vectors[:, 10] = 1
    split = stratified_folds(labels, [0])[0]
    known = labels[split.train]
    grams = BlockGrams.of(torch.from_numpy(vectors), layout, split.train, split.test)
    names, widths = layout.names, dict(zip(layout.names, layout.widths, strict=True))
    for chosen in [names, names[1:], names[:2], ("told",), ("more", "constant")]:
        own = np.concatenate([vectors[:, layout[name]] for name in chosen], 1)
        machine = artlas.GraphClassifier(blocks={n: widths[n] for n in chosen})
        wanted = machine.fit(own[split.train], known).predict(own[split.test])
        np.testing.assert_array_equal(grams.predict(known, chosen), wanted)
    assert len(set(grams.predict(known, ("constant",)))) == 1


def results(**rows):
    """Make results of accuracies by row and dataset."""
    return {
        row: {
            name: {"accuracies": own, "calibration_error": 0.1}
            for name, own in zip("AB", values, strict=False)
        }
        for row, values in rows.items()
    }


def test_tables_by_hand():
    found = results(artlas=[[0.5, 0.7], [0.9, 0.9]], other=[[0.4, 0.4], [0.9, 1.0]])
    lines = comparison.accuracy_table(found, ["A", "B"]).splitlines()
    assert lines[0] == "| accuracy, % | A | B | mean |"
    assert lines[2] == "| artlas | **60.0 ± 10.0** | 90.0 ± 0.0 | **75.0 ± 5.0** |"
    assert lines[3] == "| other | 40.0 ± 0.0 | **95.0 ± 5.0** | 67.5 ± 2.5 |"
    line = comparison.lead_table(found, ["A", "B"]).splitlines()[2]
    assert line == "| other | +20.0 ± 10.0 | -5.0 ± 5.0 | +7.5 ± 5.6 | 1 of 2 |"
    few = results(artlas=[[0.5, 0.7], [0.9, 0.9]], other=[[0.4, 0.4]])
    lines = comparison.accuracy_table(few, ["A", "B"]).splitlines()
    assert lines[3] == "| other | 40.0 ± 0.0 |  |  |"
    with pytest.raises(ValueError, match="cells"):
        markdown.table(["a", "b"], [["1"]])


def test_the_published_table_is_whole():
    assert {len(values) for row, values in PUBLISHED.items() if row in ("GIN", "DiffPool")} == {8}
    assert best("NCI1") == ("GIN", (80.0, 1.4, False))
    assert best("ENZYMES")[0] == "structure-blind baseline"
    assert str(PUBLISHED["DGCNN"]["ENZYMES"]) == "38.9 ± 5.7 ?"
    assert str(PUBLISHED["GIN"]["ENZYMES"]) == "59.6 ± 4.5"


def test_the_page_of_the_fair_comparison_from_a_made_up_row(tmp_path, monkeypatch):
    data, out = tmp_path / "data", tmp_path / "out"
    monkeypatch.setattr(fair, "ROWS", {**ROWS, "artlas": constant([])})
    graphs, labels = labelled()
    monkeypatch.setattr(fair.datasets, "read", lambda data, name: (graphs, labels))
    folder = data / "arena" / "folds"
    folder.mkdir(parents=True)
    folds = [
        {
            "test": fold.test.tolist(),
            "model_selection": [
                {"train": fold.train[1:].tolist(), "validation": fold.train[:1].tolist()}
            ],
        }
        for fold in stratified_folds(labels, [0])
    ]
    (folder / "NCI1.json").write_text(json.dumps(folds))
    words = ["fair", "--data", str(data), "--only", "NCI1", "--rows", "artlas", "--out", str(out)]
    _, _, options = parse(words)
    fair.run(options)
    page = (out / "fair-comparison.md").read_text()
    assert "| artlas |  |  |  | 50.0 ± 0.0 |  |  |  |  |  |" in page
    assert "| artlas minus best | -30.0 | -30.0 |" in page
    assert "python -m benchmarks.accuracy fair --data DIR" in page
    assert (out / "fair-comparison.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("features", [True, False])
def test_gin_learns(features):
    graphs, labels = labelled(120, features)
    parts = tuple(np.split(np.random.default_rng(0).permutation(120), [80, 100]))
    settings = Training(hidden=16, layers=2, epochs=60, batch=32)
    found = fit_and_predict(graphs, labels, parts, settings)
    assert (found.classes == labels[parts[2]]).mean() > 0.7
    assert 0 < found.epochs <= 60


@pytest.mark.parametrize("words", [["--rows", "wll"], ["--only", "NCI"]])
def test_unknown_names_are_refused(words, tmp_path):
    _, _, options = parse(["fair", "--data", str(tmp_path), *words])
    with pytest.raises(SystemExit, match="To fix this"):
        fair.run(options)
