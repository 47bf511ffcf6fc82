"""Every baseline: training, resuming, and the invariances of frozen vectors."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch
from cases import random_dense

from artlas import Graphs, ego_graphs
from artlas.nodes.ego import PprConfig
from artlas_paper.methods.domains import BatchBuilder
from artlas_paper.methods.registry import METHODS, find, load
from artlas_paper.methods.shared_features import SharedFeatures

WIDTH = 6
NAMES = list(METHODS)


def some(rng, count, low, high, p, shift):
    dense = [random_dense(int(rng.integers(low, high)), p, rng) for _ in range(count)]
    x = [rng.normal(shift, 1, size=(len(a), WIDTH)) for a in dense]
    y = np.array([int(a.sum() > p * len(a) ** 2) for a in dense])
    return Graphs.from_scipy([a.astype(float) for a in dense], x, y)


def domains(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "sparse": some(rng, 24, 8, 20, 0.15, 0.0),
        "dense": some(rng, 12, 5, 12, 0.7, 1.0),
        "tiny": some(rng, 6, 1, 4, 0.5, -1.0),
    }


def made(name, sources=None, **options):
    entry = find(name)
    sources = domains() if sources is None else sources
    config = entry.method.Config.for_domains(sources, hidden=16, **options)
    return entry.method(config)


def training(name, epochs, **more):
    own = find(name).training["graph"]
    return dataclasses.replace(own, epochs=epochs, batch=16, checkpoint_every=2, **more)


def permuted(graphs, rng):
    dense, x = [], []
    for graph in graphs:
        order = rng.permutation(graph.num_nodes)
        dense.append(graph.to_scipy(0).toarray()[np.ix_(order, order)])
        x.append(graph.x.numpy()[order])
    return Graphs.from_scipy(dense, x)


def same(a, b):
    one, other = a.state_dict(), b.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


@pytest.fixture(scope="module", params=NAMES)
def trained(request):
    model = made(request.param)
    losses = model.pretrain(domains(), training(request.param, 12))
    return model, losses


@pytest.mark.slow
def test_its_loss_falls(trained):
    model, losses = trained
    assert len(losses) == 12
    assert np.isfinite(losses).all()
    assert np.mean(losses[-3:]) < np.mean(losses[:3]), (model.name, losses)


def test_its_vectors_are_finite_and_differ(trained):
    model, _ = trained
    for graphs in domains(1).values():
        z = model.embed(graphs)
        assert z.shape[0] == len(graphs)
        assert torch.isfinite(z).all()
    assert float(model.embed(domains(1)["sparse"]).std(0).max()) > 1e-4


def test_the_numbering_of_nodes_does_not_matter(trained):
    model, _ = trained
    graphs = domains(2)["sparse"]
    again = permuted(graphs, np.random.default_rng(5))
    a, b = model.embed(graphs), model.embed(again)
    torch.testing.assert_close(a, b, atol=1e-4 * float(a.abs().max()), rtol=1e-3)


@pytest.mark.slow
def test_a_graph_has_the_same_vector_alone_and_among_others(trained):
    model, _ = trained
    graphs = Graphs.concat(list(domains(3).values()))
    together = model.embed(graphs)
    alone = torch.cat([model.embed(graph) for graph in graphs])
    torch.testing.assert_close(together, alone, atol=1e-5 * float(together.abs().max()), rtol=1e-4)


def test_embedding_reports_progress(monkeypatch):
    monkeypatch.setattr("artlas_paper.methods.base.EMBEDDED_NODES", 50)  # nodes
    graphs, told = domains(3)["sparse"], []
    made("gcn").embed_read_outs(graphs, ("pool",), lambda *done: told.append(done))
    assert len(told) > 2
    assert [count for _, count in told] == [len(graphs)] * len(told)
    assert told == sorted(set(told))
    assert told[-1][0] == len(graphs)


def test_labels_are_not_seen_when_graphs_are_embedded(trained):
    model, _ = trained
    graphs = domains(4)["sparse"]
    other = graphs.with_labels(np.random.default_rng(0).integers(0, 2, len(graphs)))
    assert torch.equal(model.embed(graphs), model.embed(other))


def test_both_read_outs_of_ego_graphs(trained):
    model, _ = trained
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, WIDTH))
    network = Graphs.from_scipy([random_dense(60, 0.08, rng).astype(float)], [x])
    egos = ego_graphs(network, range(12), PprConfig(most_nodes=15))
    pooled, centre = model.embed(egos), model.embed(egos, "centre")
    assert len(pooled) == len(centre) == 12
    assert torch.isfinite(centre).all()
    assert pooled.shape != centre.shape or not torch.allclose(pooled, centre)
    torch.testing.assert_close(pooled, model.embed(egos[:]))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_run_ends_with_the_same_weights(name, tmp_path):
    whole = made(name)
    whole.pretrain(domains(), training(name, 3))

    def interrupt(progress):
        if progress.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(name).pretrain(domains(), training(name, 3), tmp_path, report=interrupt)
    again = made(name)
    again.pretrain(domains(), training(name, 3), tmp_path, resume=True)
    assert same(whole, again)
    kept = load(tmp_path)
    graphs = domains(1)["dense"]
    assert torch.equal(kept.embed(graphs), whole.embed(graphs))


def egos(seed, classes=2):
    """Ego-graphs of two networks, which meet in their nodes."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, shift in (("one", 0.0), ("other", 1.0)):
        x = rng.normal(shift, 1, size=(50, WIDTH))
        network = Graphs.from_scipy([random_dense(50, 0.08, rng).astype(float)], [x])
        labelled = network.with_labels(rng.integers(0, classes, 50))
        made[name] = ego_graphs(labelled, range(20), PprConfig(most_nodes=15))
    return made


def learnt(model, batch):
    """The loss of a batch and all gradients, of a copy of the model."""
    model = copy.deepcopy(model).train()
    torch.manual_seed(0)
    loss = model.loss(batch)
    loss.backward()
    return loss.detach(), [p.grad for p in model.parameters() if p.grad is not None]


def assert_same(one, other):
    torch.testing.assert_close(one[0], other[0], rtol=1e-4, atol=1e-5)
    largest = max(float(grad.abs().max()) for grad in other[1])
    assert largest > 0
    for a, b in zip(one[1], other[1], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4 * largest)


@pytest.mark.parametrize("name", NAMES)
def test_shared_features_give_the_same_gradients(name):
    sources = egos(6)
    model = made(name, sources)
    model.prepare(sources)
    members = [(source, i) for source in sources for i in range(12)]
    batch = BatchBuilder(sources).build(members)
    assert isinstance(batch.features, SharedFeatures)
    assert len(batch.features.table) < batch.num_nodes / 2
    assert_same(learnt(model, batch), learnt(model, batch.with_features(batch.x)))


@pytest.mark.parametrize(
    ("name", "options"),
    [("gcn", {}), ("gat", {}), ("graphacl", {"negatives": 64}), ("riemanngfm", {"dropout": 0.0})],
)
def test_split_batches_give_the_same_gradients(name, options, monkeypatch):
    sources = egos(7)
    model = made(name, sources, **options)
    model.prepare(sources)
    batch = BatchBuilder(sources).build([("one", i) for i in range(20)])
    whole = learnt(model, batch)
    monkeypatch.setattr("artlas_paper.methods.batch.CACHED_NUMBERS", 40 * 16)  # three graphs or so
    assert len(batch.split(16)) > 5
    assert_same(learnt(model, batch), whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_initial_weights_and_steps_follow_the_seed(name):
    assert same(made(name), made(name))
    assert not same(made(name), made(name, seed=7))
    models = [made(name) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        model.pretrain(domains(), training(name, 1, seed=seed))
    assert same(models[0], models[1])
    assert not same(models[0], models[2])


def test_a_batch_can_mix_domains_with_and_without_features():
    one, other = (graphs.graph for graphs in egos(8).values())
    one, other = (
        one.with_features(np.arange(50.0)[:, None]),
        Graphs(other.node_ptr, other.row_ptr, other.col, y=other.y),
    )
    centres = range(10), PprConfig(most_nodes=15)
    for sources in (
        {"one": one, "other": other},
        {"one": ego_graphs(one, *centres), "other": ego_graphs(other, *centres)},
        {"one": ego_graphs(one, *centres), "other": other},
    ):
        batch = BatchBuilder(sources).build([("other", 0), ("one", 0)])
        first = sources["one"][[0]]
        assert torch.equal(batch.x[: first.num_nodes], first.x)
        assert torch.equal(
            batch.x[first.num_nodes :], torch.ones(len(batch.x[first.num_nodes :]), 1)
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_step_on_some_graphs(name):
    graphs = domains()["sparse"]
    step = made(name, {"sparse": graphs}).stepper(graphs, training(name, 1))
    assert np.isfinite([step() for _ in range(3)]).all()


@pytest.mark.parametrize("name", NAMES)
def test_graphs_without_edges(name):
    dots = Graphs.from_edges([(3, [[], []]), (1, [[], []])], np.ones((4, WIDTH)), np.array([0, 1]))
    model = made(name, {"dots": dots})
    assert torch.isfinite(model.embed(dots)).all()
    assert np.isfinite(model.stepper(dots, training(name, 1))())


@pytest.mark.parametrize("name", NAMES)
def test_other_widths_are_refused(name):
    graphs = domains()["sparse"]
    wide = graphs.with_features(np.zeros((graphs.num_nodes, WIDTH + 1)))
    with pytest.raises(ValueError, match="another width"):
        made(name).embed(wide)
    with pytest.raises(ValueError, match="another width"):
        made(name).pretrain({"wide": wide}, training(name, 1))


def test_an_unknown_name_is_answered_by_the_known_ones():
    with pytest.raises(ValueError, match="graphmae"):
        find("nothing")
