"""Layouts, settings and presets of vectors of blocks."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pytest
from blocks.block_graphs import MOSTLY_NATIVE, collection, dense
from cases import from_dense

from artlas import GraphError, kernels
from artlas.blocks import Layout, VectorConfig, embed, layout

PRESETS = ["full", "compact", VectorConfig(rounds=1, buckets=3), VectorConfig(7, 20, True)]


@pytest.mark.parametrize("preset", PRESETS, ids=str)
@pytest.mark.parametrize("features", [0, 1, 7, 30])
def test_blocks_cover_the_columns_of_vectors_in_order(features, preset):
    where = layout(preset)
    graphs = from_dense([np.ones((3, 3)) - np.eye(3)] * 2)
    graphs = graphs.with_features(np.ones((6, features))) if features else graphs
    assert embed(graphs, preset).shape == (2, where.width)
    ends = [0]
    for (name, columns), known, width in zip(where, where.names, where.widths, strict=True):
        assert name == known
        assert where[name] == columns == slice(ends[-1], ends[-1] + width)
        assert columns.step is None
        ends.append(columns.stop)
    assert ends[-1] == where.width == len(where.columns)
    assert len(set(where.columns)) == where.width
    assert len(set(where.names)) == len(where.blocks)
    assert all(width > 0 for width in where.widths)
    for name, columns in where:
        assert all(column.startswith(f"{name}_") for column in where.columns[columns])


def test_the_blocks_of_the_full_preset():
    shapes = {f"shapes_{r}": 512 for r in range(4)}
    colours = {f"colours_{r}": 512 for r in range(1, 4)}
    wanted = {"quantiles": 72, "waves": 256, **colours, **shapes}
    where = layout()
    assert where.width == 3912
    assert layout("full") == layout(VectorConfig()) == where
    assert dict(zip(where.names, where.widths, strict=True)) == wanted
    assert list(where.names) == list(wanted)
    floors = {block.name: block.floor for block in where.blocks}
    assert {name for name, floor in floors.items() if floor} == {
        name for name in wanted if name.startswith(("colours", "shapes"))
    }


@pytest.mark.parametrize("which", MOSTLY_NATIVE)
@pytest.mark.parametrize("kind", ["none", "coded"])
def test_fewer_rounds_are_the_first_ones_of_more(kind, which):
    graphs = collection(kind)
    few, many = VectorConfig(rounds=2), VectorConfig(rounds=6)
    with kernels.use(which):
        a, b = embed(graphs, few), embed(graphs, many)
    for name, columns in layout(few):
        assert a[:, columns].equal(b[:, layout(many)[name]]), name


@pytest.mark.parametrize("which", MOSTLY_NATIVE)
def test_fewer_buckets_add_up_those_of_more(which):
    graphs, few, many = collection("coded"), VectorConfig(buckets=8), VectorConfig(buckets=64)
    with kernels.use(which):
        a, b = embed(graphs, few), embed(graphs, many)
    name = "shapes_2"
    folded = b[:, layout(many)[name]].view(len(graphs), 8, 8).sum(1)
    assert (a[:, layout(few)[name]] - folded).abs().max() < 1e-4
    assert a[:, layout(few)[name]].max() > 1


def test_one_bucket_holds_everything():
    graphs = from_dense([dense(nx.path_graph(5))])
    config = VectorConfig(buckets=1, rounds=2)
    vector, where = embed(graphs, config)[0], layout(config)
    counts = [2, 3]  # ends, and what lies between
    assert vector[where["colours_1"]].item() == pytest.approx(np.log1p(counts).sum(), rel=1e-6)


@pytest.mark.parametrize("preset", ["full", "compact"])
def test_an_unknown_block(preset):
    with pytest.raises(GraphError) as error:
        layout(preset)["features"]
    message = str(error.value)
    assert message.startswith("no block has this name; got 'features'. To fix this, choose one of ")
    assert "quantiles, waves, colours_1" in message


def test_a_layout_of_widths():
    where = Layout.of_widths({"a": 2, "b": 0, "c": 1})
    assert where.columns == ("a_0", "a_1", "c_0")
    assert where["c"] == slice(2, 3)
    assert where["b"] == slice(2, 2)
    assert list(Layout.of_widths({})) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "VectorConfig.rounds must be a whole number from 1 to 64, got 0."),
        ({"rounds": 65}, "VectorConfig.rounds must be a whole number from 1 to 64, got 65."),
        ({"rounds": 4.0}, "VectorConfig.rounds must be a whole number from 1 to 64, got 4.0."),
        ({"rounds": True}, "VectorConfig.rounds must be a whole number from 1 to 64, got True."),
        ({"buckets": 0}, "VectorConfig.buckets must be a whole number from 1 to 1048576, got 0."),
        (
            {"buckets": 1048577},
            "VectorConfig.buckets must be a whole number from 1 to 1048576, got 1048577.",
        ),
        (
            {"buckets": "512"},
            "VectorConfig.buckets must be a whole number from 1 to 1048576, got '512'.",
        ),
        ({"compact": 1}, "VectorConfig.compact must be one of False, True, got 1."),
        ({"compact": "yes"}, "VectorConfig.compact must be one of False, True, got 'yes'."),
        ({"compact": None}, "VectorConfig.compact must be one of False, True, got None."),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError, match="VectorConfig") as error:
        VectorConfig(**settings)
    assert str(error.value) == message


def test_the_outermost_settings_that_are_allowed():
    assert VectorConfig(rounds=64).rounds == 64
    assert VectorConfig(buckets=1 << 20, rounds=1).layout["shapes_0"].stop == 328 + (1 << 20)


def test_settings_are_values():
    assert VectorConfig(rounds=4, buckets=512) == VectorConfig()
    assert hash(VectorConfig()) == hash(VectorConfig(rounds=4))
    with pytest.raises(dataclasses.FrozenInstanceError):
        VectorConfig().rounds = 3


@pytest.mark.parametrize("preset", ["Full", "", None, 3, ["full"], {"full": 1}])
def test_an_unknown_preset(preset):
    graphs = from_dense([np.zeros((1, 1))])
    message = f"A preset is 'full' or 'compact', or a VectorConfig; got {preset!r}."
    for call in (lambda: embed(graphs, preset), lambda: layout(preset)):
        with pytest.raises(ValueError, match="preset") as error:
            call()
        assert str(error.value) == message
