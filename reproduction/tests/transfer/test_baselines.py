"""Records of baselines: the same episodes, choices without the target, labels read late."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import artlas
from artlas import PretrainConfig, evaluation
from artlas.evaluation.accuracy import predict
from artlas_paper import datasets
from artlas_paper.methods.registry import METHODS
from artlas_paper.tables import all_methods
from artlas_paper.transfer import baselines, folds
from artlas_paper.transfer.baseline_folds import BaselineFolds
from artlas_paper.transfer.baselines import evaluate_baseline


@pytest.mark.slow
@pytest.mark.parametrize("name", ["graphmae", "gin"])
def test_records_of_a_baseline(small_baselines, name, episodes_of_bzr):
    made = list(evaluate_baseline(small_baselines, name, "bzr", [1]))
    assert [r["variant"] for r in made] == ["pool", "pool-untrained"]
    for record in made:
        assert record["episodes"] == episodes_of_bzr  # those of every other method
        assert record["method"] == name
        assert record["chosen"]
        assert record["cost"]["epochs"] == 1
        assert record["cost"]["of"] == 100
        assert record["cost"]["seconds"] > 0
    again = list(evaluate_baseline(small_baselines, name, "bzr", [1]))  # from the kept model
    assert [r["accuracies"] for r in again] == [r["accuracies"] for r in made]
    text = all_methods.report(made, "graph")
    assert f"| {METHODS[name].title} | {made[0]['mean']:.2f} ±" in text
    assert "1 of 100" in text


@pytest.mark.slow
def test_a_plateau_ends_a_baseline_and_its_row_says_so(small_baselines):
    rule = dataclasses.replace(
        small_baselines, epochs=50, plateau=0.99
    )  # no epoch takes so much away
    made = list(evaluate_baseline(rule, "graphmae", "bzr", [1]))
    cost = made[0]["cost"]
    assert (cost["epochs"], cost["of"], cost["plateau"]) == (2, 100, 0.99)
    assert "| GraphMAE | 2 of 100, plateau 99 % |" in all_methods.report(made, "graph")
    more = [{**r, "cost": {**r["cost"], "epochs": 7}, "seed": 2} for r in made]
    assert "| 2 to 7 of 100, plateau 99 % |" in all_methods.report([*made, *more], "graph")


def test_other_epochs_of_a_target_that_stands_aside_are_named(small_baselines):
    made = list(evaluate_baseline(small_baselines, "graphmae", "bzr", [1]))
    aside = [{**r, "target": "COLORS-3"} for r in made]
    assert "| GraphMAE | 1 of 100 |" in all_methods.report([*made, *aside], "graph")
    fewer = [{**r, "cost": {**r["cost"], "epochs": 7}} for r in aside]
    text = all_methods.report([*made, *fewer], "graph")
    assert "| GraphMAE | 1 of 100; COLORS-3: 7 of 100 |" in text
    assert "| GraphMAE | 7 of 100 |" in all_methods.report(fewer, "graph")


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
    monkeypatch.setattr("artlas_paper.datasets.egos.load_egos", load_egos)
    own = folds.Folds("node", None, tmp_path, PretrainConfig(epochs=1), artlas.ArtConfig())
    return BaselineFolds(own, 1)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["Cora", "ogbn-arxiv"])
def test_records_of_nodes_have_both_read_outs(networks, target):
    made = list(evaluate_baseline(networks, "graphmae", target, [1]))
    trained = [r for r in made if not r["variant"].endswith("-untrained")]
    assert [r["variant"] for r in trained] == ["pool", "centre"]
    assert sum(r["chosen"] for r in trained) == 1
    best = max(trained[0]["sources"], key=trained[0]["sources"].get)
    assert [r["variant"] for r in trained if r["chosen"]] == [best]
    structural = target == "ogbn-arxiv"  # it has no features here
    assert made[0]["target"] == ("ogbn-arxiv-structural" if structural else "Cora")
    assert "Both read-outs" in all_methods.report(made, "node")


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


def test_read_outs_are_chosen_by_the_sources_alone(small_baselines, monkeypatch):
    """The better of the two on the sources is taken, whatever it does on the target."""
    monkeypatch.setitem(baselines.READ_OUTS, "graph", ("pool", "centre"))
    domains = small_baselines.domains("BZR")

    class Model:
        def embed_read_outs(self, graphs, ways, report=None):
            told = torch.nn.functional.one_hot(graphs.y, 2).float()
            return {"pool": torch.zeros(len(graphs), 2), "centre": told}

    chosen, scores = baselines.choose_read_out(small_baselines, Model(), "BZR")
    assert chosen == "centre"
    assert scores["centre"] == 100
    assert set(domains) == {"IMDB-BINARY", "PROTEINS"}
