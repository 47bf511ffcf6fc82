"""The table of all methods: ranks as the paper's, choices without the target, honest records."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

import artlas
from artlas import PretrainConfig, evaluation
from artlas.evaluation.accuracy import predict
from artlas.files import stored
from artlas_paper import datasets
from artlas_paper.methods.registry import METHODS
from artlas_paper.studies import sanity
from artlas_paper.transfer import folds, method_tables, methods, paper_tables

EPISODES_OF_BZR = "7d08fdeaa4de7ef042025fb7855695008405247f8082c2dd59973b61eab4483a"


@pytest.mark.parametrize("level", ["graph", "node"])
def test_ranks_and_averages_are_computed_as_the_paper_does(level):
    table, ends = paper_tables.accuracies(level), paper_tables.averages(level)
    assert list(table) == [*METHODS, "art"]
    means = {name: [cell[0] for cell in row.values()] for name, row in table.items()}
    ranks = method_tables.average_ranks(means)
    for name, (average, rank) in ends.items():
        assert np.mean(means[name]) == pytest.approx(average, abs=0.011)
        assert ranks[name] == pytest.approx(rank, abs=0.006), name


@pytest.fixture
def small(three, tmp_path):
    own = folds.Folds(
        "graph", three, tmp_path / "runs", PretrainConfig(epochs=1), artlas.ArtConfig()
    )
    return methods.MethodFolds(own, 1)


@pytest.mark.parametrize("name", ["graphmae", "gin"])
def test_records_of_a_baseline(small, name):
    made = list(methods.transfer_method(small, name, "bzr", [1]))
    assert [r["variant"] for r in made] == ["pool", "pool-untrained"]
    for record in made:
        assert record["episodes"] == EPISODES_OF_BZR  # those of every other method
        assert record["method"] == name
        assert record["chosen"]
        assert record["cost"]["epochs"] == 1
        assert record["cost"]["of"] == 100
        assert record["cost"]["seconds"] > 0
    again = list(methods.transfer_method(small, name, "bzr", [1]))  # from the kept model
    assert [r["accuracies"] for r in again] == [r["accuracies"] for r in made]
    text = method_tables.report(made, "graph")
    assert f"| {METHODS[name].title} | {made[0]['mean']:.2f} ±" in text
    assert "1 of 100" in text


def test_a_pause_is_no_cost(small, tmp_path):
    entry = METHODS["gin"]
    (tmp_path / "log.jsonl").write_text("".join(f'{{"seconds": {s}}}\n' for s in (2, 2, 600)))
    small._note_cost(tmp_path, entry, small.training(entry, 1), 0)
    kept = stored.read_json(tmp_path / methods.COST)
    assert (kept["epochs"], kept["seconds"]) == (3, 6.0)


def test_a_plateau_ends_a_baseline_and_its_row_says_so(small):
    rule = dataclasses.replace(small, epochs=50, plateau=0.99)  # no epoch takes so much away
    made = list(methods.transfer_method(rule, "graphmae", "bzr", [1]))
    cost = made[0]["cost"]
    assert (cost["epochs"], cost["of"], cost["plateau"]) == (2, 100, 0.99)
    assert "| GraphMAE | 2 of 100, plateau 99 % |" in method_tables.report(made, "graph")
    more = [{**r, "cost": {**r["cost"], "epochs": 7}, "seed": 2} for r in made]
    assert "| 2 to 7 of 100, plateau 99 % |" in method_tables.report([*made, *more], "graph")


def test_other_epochs_of_a_target_that_stands_aside_are_named(small):
    made = list(methods.transfer_method(small, "graphmae", "bzr", [1]))
    aside = [{**r, "target": "COLORS-3"} for r in made]
    assert "| GraphMAE | 1 of 100 |" in method_tables.report([*made, *aside], "graph")
    fewer = [{**r, "cost": {**r["cost"], "epochs": 7}} for r in aside]
    text = method_tables.report([*made, *fewer], "graph")
    assert "| GraphMAE | 1 of 100; COLORS-3: 7 of 100 |" in text
    assert "| GraphMAE | 7 of 100 |" in method_tables.report(fewer, "graph")


@pytest.fixture
def networks(monkeypatch, tmp_path):
    """Two sources and a target without features, all made up, in the place of real networks."""

    def load_egos(name, root, features, *rest, **more):
        rng = np.random.default_rng(len(name))
        y = np.arange(360) % 3
        near = np.triu(rng.random((360, 360)) < np.where(y[:, None] == y, 0.04, 0.01), 1)
        x = None if name == "ogbn-arxiv" else np.eye(3)[y] @ rng.normal(size=(3, 256))
        network = artlas.Graphs.from_edges([(360, (near | near.T).nonzero())], x)
        return artlas.ego_graphs(
            network.with_labels(y), np.arange(360), artlas.PprConfig(most_nodes=20)
        )

    monkeypatch.setattr(folds, "sources_of", lambda level: ["Cora", "CiteSeer"])
    for place in (datasets, methods.datasets):
        monkeypatch.setattr(place, "load_egos", load_egos)
    own = folds.Folds("node", None, tmp_path, PretrainConfig(epochs=1), artlas.ArtConfig())
    return methods.MethodFolds(own, 1)


@pytest.mark.parametrize("target", ["Cora", "ogbn-arxiv"])
def test_records_of_nodes_have_both_read_outs(networks, target):
    made = list(methods.transfer_method(networks, "graphmae", target, [1]))
    trained = [r for r in made if not r["variant"].endswith("-untrained")]
    assert [r["variant"] for r in trained] == ["pool", "centre"]
    assert sum(r["chosen"] for r in trained) == 1
    best = max(trained[0]["sources"], key=trained[0]["sources"].get)
    assert [r["variant"] for r in trained if r["chosen"]] == [best]
    structural = target == "ogbn-arxiv"  # it has no features here
    assert made[0]["target"] == ("ogbn-arxiv-structural" if structural else "Cora")
    assert "Both read-outs" in method_tables.report(made, "node")


def test_the_target_is_not_among_the_sources(small, monkeypatch):
    assert set(small.domains("BZR")) == {"IMDB-BINARY", "PROTEINS"}
    small._loaded["PROTEINS"] = datasets.load("BZR", small.folds.root, "paper", verbose=False)
    with pytest.raises(datasets.DatasetError, match=r"BZR .* PROTEINS"):
        small.domains("BZR")


@pytest.mark.parametrize("name", list(METHODS))
def test_labels_of_queries_change_no_prediction(raw, name):
    whole = datasets.load("BZR", raw("BZR"), "paper", verbose=False)[:120]
    episode = evaluation.draw_episodes(whole.y.numpy(), 1)[0]
    other = whole.y.numpy().copy()
    other[episode.query] = np.random.default_rng(0).permutation(1 - other[episode.query])
    assert (other != whole.y.numpy()).any()
    model = METHODS[name].make("graph", {"BZR": whole})
    found = [
        predict(model.embed(whole.with_labels(y)).numpy(), y, episode)
        for y in (whole.y.numpy(), other)
    ]
    assert np.array_equal(*found)


def test_read_outs_are_chosen_by_the_sources_alone(small, monkeypatch):
    """The better of the two on the sources is taken, whatever it does on the target."""
    monkeypatch.setitem(methods.READ_OUTS, "graph", ("pool", "centre"))
    domains = small.domains("BZR")

    class Model:
        def embed_read_outs(self, graphs, ways, report=None):
            told = torch.nn.functional.one_hot(graphs.y, 2).float()
            return {"pool": torch.zeros(len(graphs), 2), "centre": told}

    chosen, scores = methods.choose_read_out(small, Model(), "BZR")
    assert chosen == "centre"
    assert scores["centre"] == 100
    assert set(domains) == {"IMDB-BINARY", "PROTEINS"}


def test_the_quick_study_of_sanity(quick_study, tmp_path):
    done = quick_study("sanity")
    assert done.exit_code == 0, done.output
    records = json.loads((tmp_path / "out" / "sanity-quick.json").read_text())
    assert {r["method"] for r in records} == {*METHODS, "art", *sanity.CONTROLS}
    for record in records:
        assert len(record["accuracies"]) == 50
        assert (record["untrained"] is None) == (record["method"] in sanity.CONTROLS)
        if record["method"] not in sanity.CONTROLS:
            assert record["accuracies"] != record["untrained"], record["method"]
    assert "| RiemannGFM | " in done.output
    assert "better than untrained" in done.output


def test_tasks_are_what_they_say():
    for name, make in sanity.TASKS.items():
        made = make()
        assert set(made.labels) == set(range(len(made.names))), name
        assert made.graphs.num_features > 0
        first, second = made.halves(0)
        assert len(first.graphs) + len(second.graphs) == len(made.graphs)
    dense = sanity.density()
    degree = dense.graphs.degree.numpy()
    graph_of = np.repeat(np.arange(len(dense.graphs)), dense.graphs.sizes.numpy())
    means = np.bincount(graph_of, degree) / dense.graphs.sizes.numpy()
    found = [means[dense.labels == y].mean() for y in range(3)]
    assert found == pytest.approx([2, 4, 8], rel=0.05)


def test_one_art_stands_among_the_methods_at_a_time():
    z, plus = method_tables.ART.values()
    ranks = method_tables._ranks({"a": [3.0, 1.0], z: [2.0, 2.0], plus: [1.0, 3.0]})
    assert ranks == {"a": 1.5, z: 1.5, plus: 1.5}
    assert method_tables._ranks({"a": [1.0], plus: [2.0]}) == {"a": 1.0, plus: 1.0}
    assert method_tables._ranks({}) == {}
