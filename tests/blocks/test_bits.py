"""A graph's vector has the same bits in any batch, order, thread and copy."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from blocks.block_graphs import collection, needs_native, sparse_graph
from cases import from_dense, random_dense

from artlas import Graphs, PprConfig, ego_graphs, kernels
from artlas.blocks import VectorConfig, embed, vector

pytestmark = needs_native
PRESETS = ["full", "compact", VectorConfig(rounds=2, buckets=100)]
every_preset = pytest.mark.parametrize("preset", PRESETS, ids=["full", "compact", "small"])
every_kind = pytest.mark.parametrize(
    "kind", ["coded", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("none", "wide"))]
)


@pytest.fixture
def threads():
    """``threads(count)`` sets PyTorch's threads until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@every_preset
@every_kind
def test_alone_reversed_repeated_and_in_any_batch(kind, preset, monkeypatch):
    graphs = collection(kind)
    together, count = embed(graphs, preset), len(graphs)
    assert torch.equal(embed(graphs, preset), together)
    for g in range(count):
        assert torch.equal(embed(graphs[g], preset)[0], together[g])
    assert torch.equal(embed(graphs[list(range(count))[::-1]], preset), together.flip(0))
    assert torch.equal(embed(graphs[[3, 3, 9]], preset), together[[3, 3, 9]])
    assert torch.equal(embed(graphs[5:17], preset), together[5:17])
    for batch in (1, 60, 500):
        monkeypatch.setattr(vector, "BATCH", batch)
        assert torch.equal(embed(graphs, preset), together)


@every_preset
@every_kind
def test_any_number_of_threads(kind, preset, threads):
    graphs, found = collection(kind), []
    for count in (1, 2, 3):
        threads(count)
        found.append((embed(graphs, preset), embed(graphs[20], preset)))
    for many, one in found:
        assert torch.equal(many, found[0][0])
        assert torch.equal(one, many[20:21])


@every_preset
def test_calls_from_many_threads_at_once(preset):
    graphs = [collection(kind, seed=seed) for kind in ("coded", "none") for seed in range(3)]
    alone = [embed(part, preset) for part in graphs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: embed(part, preset), graphs * 2))
    for a, b in zip(alone * 2, found, strict=True):
        assert torch.equal(a, b)


@every_preset
def test_copies_and_views(preset):
    graphs = collection("mixed")
    together = embed(graphs, preset)
    assert torch.equal(embed(pickle.loads(pickle.dumps(graphs)), preset), together)
    part = graphs[4:20][3:][[2, 7]]  # a range of a range, and a choice of it
    assert torch.equal(embed(part, preset), together[[9, 14]])
    assert torch.equal(embed(pickle.loads(pickle.dumps(part)), preset), together[[9, 14]])
    assert torch.equal(embed(Graphs.concat([graphs[9:], graphs[:9]]), preset), together.roll(-9, 0))
    labelled = graphs.with_labels(np.arange(len(graphs)))
    assert torch.equal(embed(labelled, preset), together)


def test_features_that_lie_in_memory_otherwise():
    """Columns of a wider table, and a table stored column by column."""
    plain, rng = collection(), np.random.default_rng(0)
    table = torch.from_numpy(rng.normal(size=(plain.num_nodes, 6)).astype(np.float32))
    csr = plain.node_ptr, plain.row_ptr, plain.col
    for x in (table[:, ::2], table[:, 1:4], table.T.contiguous().T[:, :3]):
        assert not x.is_contiguous()
        wanted = embed(Graphs(*csr, x.contiguous()))
        assert torch.equal(embed(Graphs(*csr, x)), wanted)
        assert torch.equal(embed(Graphs(*csr, x)[7]), wanted[7:8])
        with kernels.use("twin"):
            one = Graphs(*csr, x)[7:9]
            assert torch.equal(embed(one), embed(Graphs(*csr, x.contiguous())[7:9]))


def test_ego_graphs_are_graphs():
    network = from_dense([random_dense(60, 0.1, np.random.default_rng(0))], x=np.eye(60)[:, :4])
    egos = ego_graphs(network, [0, 5, 30], PprConfig(most_nodes=15))
    found = embed(egos)
    assert len(found) == 3
    plain = [Graphs.from_scipy([egos[g].to_scipy(0)], x=egos[g].x) for g in range(3)]
    assert torch.equal(embed(Graphs.concat(plain)), found)


@pytest.mark.slow
@every_preset
@pytest.mark.parametrize("nodes", [(1 << 16) - 1, 1 << 16])
def test_a_graph_that_gets_all_threads_alone_and_beside_others(nodes, preset, threads):
    large, small = sparse_graph(nodes, 5), collection("coded")
    small = small.with_features(small.x[:, :2])
    beside = Graphs.concat([small, large, small[:5], large])
    found = []
    for count in (1, 2, 3):
        threads(count)
        alone = embed(large, preset)
        many = embed(beside, preset)
        at = len(small)
        assert torch.equal(many[at], alone[0])
        assert torch.equal(many[-1], alone[0])
        assert torch.equal(many[:at], embed(small, preset))
        found.append(many)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.slow
def test_many_buckets_of_a_compact_vector(threads):
    """A sum of 30,000 rows is long enough for PyTorch to share it between threads."""
    graphs, found = sparse_graph(2000, 4), []
    for count in (1, 2, 3):
        threads(count)
        found.append(embed(graphs, VectorConfig(buckets=30_000, compact=True)))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
