"""Forms of the atlas: dense objectives against the kernels, training, records and table."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense, sharpened

import artlas
from artlas import Graphs
from artlas.method.config import UNIFORM
from artlas_paper.studies import atlas_variants, dense_objectives
from artlas_paper.transfer import folds
from artlas_paper.transfer.folds import Folds

SMALL = artlas.ArtConfig(
    bases=3, roles=4, hidden=16, measure_epsilon=UNIFORM, diagonal=True, pooling="each"
)
THREE = ["BZR", "IMDB-BINARY", "PROTEINS"]


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    return from_dense([random_dense(n, 0.3, rng) for n in (5, 12, 9, 20)])


@pytest.mark.parametrize("epsilon", [1e-8, UNIFORM])
def test_dense_couplings_are_the_kernels(graphs, epsilon):
    model = sharpened(dataclasses.replace(SMALL, measure_epsilon=epsilon), 5.0)
    dense = dense_objectives.dense_couplings(model, graphs, steps=200)
    for g in range(len(graphs)):
        size = int(graphs.sizes[g])
        wanted = model.couplings(graphs[g])
        torch.testing.assert_close(dense.couplings[g, :, :size], wanted, atol=2e-4, rtol=0)
        assert not dense.couplings[g, :, size:].any()
    torch.testing.assert_close(dense.energies(), model.energies(graphs), atol=5e-4, rtol=1e-3)


def test_pooled_by_each_base_is_the_pool_of_the_model(graphs):
    model = sharpened(SMALL, 5.0)
    found = dense_objectives.pool_degrees(
        dense_objectives.dense_couplings(model, graphs, 200), model
    )
    degree = graphs.degree.float()[:, None]
    wanted = model.pool_by_roles(graphs, degree)[2].log1p()[:, :, 0]
    got = found.view(len(graphs), 3 * 4, 4)[:, :, 0]
    torch.testing.assert_close(got, wanted, atol=2e-3, rtol=1e-3)


def test_refinement_lowers_the_energy_and_keeps_the_marginals(graphs):
    model = artlas.ART(SMALL)
    dense = dense_objectives.dense_couplings(model, graphs)
    found = dense_objectives.refine(dense)
    better = dataclasses.replace(dense, couplings=found)
    assert (better.energies() < dense.energies()).all()
    rows, columns = dense.measure[:, None].expand(-1, 3, -1), torch.full((4, 3, 4), 0.25)
    torch.testing.assert_close(found.sum(3), rows, atol=1e-2, rtol=0)  # ten iterations
    torch.testing.assert_close(found.sum(2), columns, atol=1e-5, rtol=0)  # the last half of one
    assert dense_objectives.distillation(dense) > 0
    assert dense_objectives.distillation(better) < dense_objectives.distillation(dense)


def test_a_view_loses_only_edges(graphs):
    view = dense_objectives.drop_edges(graphs, 0.5, torch.Generator().manual_seed(1))
    assert torch.equal(view.node_ptr, graphs.node_ptr)
    for g in range(len(graphs)):
        less, more = view.to_scipy(g).toarray(), graphs.to_scipy(g).toarray()
        assert (less == less.T).all()
        assert (less <= more).all()
    assert 0.3 < len(view.col) / len(graphs.col) < 0.7
    same = dense_objectives.drop_edges(graphs, 0.0, torch.Generator())
    assert torch.equal(same.col, graphs.col)


def test_the_contrastive_loss_is_lower_for_matching_views():
    torch.manual_seed(0)
    loss = dense_objectives.ContrastLoss(6).eval()
    first = torch.randn(8, 6)
    assert loss(first, first + 0.01) < loss(first, first.flip(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", [atlas_variants.Form(SMALL, 6), atlas_variants.Form(SMALL, 6, 0.1, 0.3)]
)
def test_training_is_repeated_by_its_seed_and_moves_the_weights(graphs, form):
    sources = {"one": graphs, "two": Graphs.concat([graphs, graphs])}
    losses = []
    first = atlas_variants.train_form(form, sources, 1, lambda step, loss: losses.append(loss))
    again, other = (
        atlas_variants.train_form(form, sources, 1),
        atlas_variants.train_form(form, sources, 2),
    )
    assert len(losses) == 6
    for a, b, c in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)
    assert not torch.equal(first.atlas.logits, artlas.ART(first.config).atlas.logits)


def test_views_of_distinct_graphs_are_found(graphs):
    found = atlas_variants.view_retrieval(artlas.ART(SMALL), {"four": graphs, "again": graphs})
    assert found.episodes.shape == (2,)
    assert 0.5 <= found.mean <= 1


def test_records_and_table(monkeypatch, raw, tmp_path):
    for name in THREE:
        root = raw(name)
    monkeypatch.setattr(folds, "sources_of", lambda level: THREE)
    monkeypatch.setattr(atlas_variants, "FORMS", {"tiny": atlas_variants.Form(SMALL, 2)})
    place = Folds("graph", root, tmp_path / "runs", artlas.PretrainConfig(), artlas.ArtConfig())
    made = [
        *atlas_variants.compare_on_target(place, "tiny", "BZR", [1, 2], [5]),
        *atlas_variants.score_on_sources(place, "tiny", [1]),
    ]
    rows = [(r["target"], r["variant"], r["seed"]) for r in made]
    assert rows == [
        ("BZR", "tiny-random-roles", None),
        ("BZR", "no-roles", None),
        ("BZR", "tiny", 1),
        ("BZR", "tiny-untrained", 1),
        ("BZR", "tiny", 2),
        ("BZR", "tiny-untrained", 2),
        ("sources", "no-roles", None),
        ("sources", "tiny", 1),
    ]
    trained = []
    monkeypatch.setattr(atlas_variants, "train_form", lambda *a: trained.append(a))
    list(atlas_variants.compare_on_target(place, "tiny", "BZR", [1], [5]))
    assert not trained
    table = atlas_variants.table(made, [5])
    assert "| tiny |" in table
    assert "over random roles" in table
