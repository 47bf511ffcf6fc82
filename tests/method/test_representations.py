"""The representations of graphs: which is the default, and the names of their columns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import awkward, from_dense, random_dense

import artlas
from artlas import blocks
from artlas.method.representations import REPRESENTATIONS, WITHOUT_MODEL, feature_names

SMALL = {"bases": 3, "roles": 4, "hidden": 16}


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    made = from_dense(awkward(rng))
    return made.with_features(rng.normal(size=(made.num_nodes, 3)))


@pytest.fixture(scope="module")
def egos():
    rng = np.random.default_rng(1)
    network = from_dense([random_dense(50, 0.1, rng)], x=rng.normal(size=(50, 5)))
    return artlas.ego_graphs(network, [0, 5, 30], artlas.PprConfig(most_nodes=15))


@pytest.fixture(scope="module")
def model():
    return artlas.ART(artlas.ArtConfig(**SMALL))


def test_blocks_are_the_default_for_graphs_and_need_no_model(model, graphs):
    other = artlas.ART(artlas.ArtConfig(bases=2, roles=3, hidden=8, seed=9))
    for data in (graphs, graphs.with_features(None)):
        wanted = blocks.embed(data)
        for found in (model.embed(data), model.embed(data, "blocks"), other.embed(data)):
            assert torch.equal(found, wanted)
        assert torch.equal(model.embed_with_energies(data)[0], wanted)


def test_compact_is_the_short_form_of_blocks(model, graphs):
    found = model.embed(graphs, "compact")
    assert found.shape == (len(graphs), 244)
    assert torch.equal(found, blocks.embed(graphs, "compact"))


@pytest.mark.parametrize("representation", ["blocks", "compact"])
def test_any_budget_of_memory_gives_the_same_bits(model, graphs, representation):
    wanted = model.embed(graphs, representation)
    assert torch.equal(model.embed(graphs, representation, budget=1), wanted)


def test_means_without_roles_are_the_default_for_ego_graphs(model, egos):
    found = model.embed(egos)
    assert found.shape == (3, 3 * 5)
    assert torch.equal(found, model.embed(egos, "plus-no-roles"))
    assert torch.equal(model.embed(egos, "blocks"), blocks.embed(egos))


def test_nodes_of_a_network_have_the_default_of_ego_graphs(model):
    rng = np.random.default_rng(2)
    network = from_dense([random_dense(30, 0.2, rng)], x=rng.normal(size=(30, 4)))
    config = artlas.PprConfig(most_nodes=10)
    found = model.embed_nodes(network, [1, 7], config=config)
    assert torch.equal(found, model.embed(artlas.ego_graphs(network, [1, 7], config)))
    assert found.shape == (2, 3 * 4)


@pytest.mark.parametrize("representation", WITHOUT_MODEL)
def test_energies_come_beside_vectors_that_need_no_model(model, graphs, representation):
    vectors, energies, residuals = model.embed_with_energies(graphs, representation)
    assert torch.equal(vectors, model.embed(graphs, representation))
    for found, wanted in zip(
        (energies, residuals), model.energies_and_residuals(graphs), strict=True
    ):
        torch.testing.assert_close(found, wanted.detach())


@pytest.mark.parametrize("pooling", ["mixed", "each"])
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_every_column_has_a_name(graphs, representation, pooling):
    config = artlas.ArtConfig(**SMALL, pooling=pooling)
    for data in (graphs, graphs.with_features(None)):
        names = feature_names(config, representation, data.num_features)
        assert len(set(names)) == len(names)
        assert artlas.ART(config).embed(data, representation).shape == (len(data), len(names))


@pytest.mark.parametrize(("representation", "preset"), [("blocks", "full"), ("compact", "compact")])
def test_columns_of_blocks_are_those_of_the_layout(model, graphs, representation, preset):
    """Whatever the number of features."""
    for width in (0, 1, 50):
        names = feature_names(model.config, representation, width)
        assert names == list(blocks.layout(preset).columns)
    made = artlas.GraphEmbedder(model, representation).fit(graphs)
    assert list(made.get_feature_names_out()) == names
    np.testing.assert_array_equal(made.transform(graphs), blocks.embed(graphs, preset))


def test_an_embedder_gives_blocks_by_default(model, graphs):
    made = artlas.GraphEmbedder(model).fit(graphs)
    assert list(made.get_feature_names_out()) == list(blocks.layout().columns)
    np.testing.assert_array_equal(made.transform(graphs), blocks.embed(graphs))


def test_an_unknown_representation_has_no_names(model):
    with pytest.raises(ValueError, match="Unknown representation 'full'"):
        feature_names(model.config, "full", 3)
