"""Results do not depend on node order, batch, memory budget or threads."""

import numpy as np
import pytest
import torch
from cases import awkward, dense_graphs, from_dense, random_dense, sharpened
from hypothesis import given, settings
from hypothesis import strategies as st

from artlas import ART, ArtConfig, Graphs, PprConfig, ego_graphs, kernels
from artlas.method.representations import REPRESENTATIONS

MODEL = sharpened(factor=20.0)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(dense_graphs(), st.integers(0, 2**31))
def test_relabelling_permutes_couplings_and_nothing_else(matrix, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(matrix))
    x = rng.standard_normal((len(matrix), 3)).astype(np.float32)
    graph = from_dense([matrix], x=x)
    moved = from_dense([matrix[np.ix_(order, order)]], x=x[order])
    a, b = MODEL.align(graph), MODEL.align(moved)
    assert (a.energies - b.energies).abs().max() < 1e-6
    assert (a.coordinates - b.coordinates).abs().max() < 2e-6
    assert (a.couplings(0)[:, order] - b.couplings(0)).abs().max() < 1e-6
    z, other = MODEL.embed(graph, "paper"), MODEL.embed(moved, "paper")
    assert (z - other).abs().max() < 2e-5 * max(1.0, z.abs().max().item())


@settings(max_examples=50, deadline=None)
@given(dense_graphs(most=12), st.integers(0, 2**31))
def test_relabelling_in_float64_is_exact_to_rounding(matrix, seed):
    """The float32 tolerances above hide nothing: in double precision the error falls with it."""
    order = np.random.default_rng(seed).permutation(len(matrix))
    model = sharpened(factor=20.0).double()
    a = model.align(from_dense([matrix])).energies
    b = model.align(from_dense([matrix[np.ix_(order, order)]])).energies
    assert (a - b).abs().max() < 1e-13


def collection(count=64, seed=0, features=3):
    rng = np.random.default_rng(seed)
    dense = [*awkward(rng), *(random_dense(n, 0.15, rng) for n in rng.integers(2, 120, count - 8))]
    x = rng.standard_normal((sum(map(len, dense)), features)).astype(np.float32)
    return from_dense(dense, x=x)


def outputs(model, graphs):
    a = model.align(graphs)
    return a.energies, a.residuals, model.embed(graphs, "paper")


needs_native = pytest.mark.skipif(
    not kernels.available(), reason="bit equality is promised by the compiled kernels"
)


@needs_native
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_the_memory_budget_changes_no_bit(representation):
    model, graphs = sharpened(ArtConfig(bases=4, roles=8, hidden=16), 60.0), collection()
    egos = ego_graphs(collection(9, 3)[8], None, PprConfig(most_nodes=15))
    for data in (graphs, egos):
        whole = model.embed(data, representation, 1 << 30)
        for budget in (1, 100_000):
            assert torch.equal(model.embed(data, representation, budget), whole)
    assert torch.equal(
        model.embed_nodes(egos.graph, [5, 0], representation, egos.config), whole[[5, 0]]
    )


@needs_native
@pytest.mark.parametrize("factor", [1.0, 60.0, 1000.0])
@pytest.mark.parametrize("preset", [ArtConfig(), ArtConfig.released()], ids=["paper", "released"])
def test_the_batch_of_a_graph_changes_no_bit(factor, preset):
    """Alone, in 64, reversed: the same bits."""
    model, graphs = sharpened(preset, factor), collection()
    together = outputs(model, graphs)
    backwards = outputs(model, graphs[list(reversed(range(len(graphs))))])
    for i in range(0, len(graphs), 7):
        alone = outputs(model, graphs[i])
        for one, all_, back in zip(alone, together, backwards, strict=True):
            assert torch.equal(one[0], all_[i])
            assert torch.equal(one[0], back[len(graphs) - 1 - i])
        in_batch = model.align(graphs).couplings(i)
        assert torch.equal(model.align(graphs[i]).couplings(0), in_batch)


def sparse_graph(n, degree, seed, features=2):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n, (2, n * degree // 2))
    pairs = np.unique(np.sort(pairs[:, pairs[0] != pairs[1]], axis=0), axis=1)
    both = np.concatenate([pairs, pairs[::-1]], axis=1)
    x = rng.standard_normal((n, features)).astype(np.float32)
    return Graphs.from_edges([(n, both)], x=x)


@needs_native
@pytest.mark.parametrize("factor", [1.0, 1000.0])
def test_the_number_of_threads_changes_no_bit(factor):
    model = sharpened(factor=factor)
    # one graph large enough to be shared between threads, and many that are not
    graphs = Graphs.concat([sparse_graph(9_000, 6, 0), collection(features=2)])
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(outputs(model, graphs))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert torch.equal(a, b)


@needs_native
def test_a_large_graph_beside_small_ones_keeps_its_bits():
    model, large = sharpened(), sparse_graph(6_000, 8, 1, features=3)
    alone = outputs(model, large)
    beside = outputs(model, Graphs.concat([collection(), large, collection(seed=5)]))
    for one, many in zip(alone, beside, strict=True):
        assert torch.equal(one[0], many[64])


def test_batch_composition_on_the_twin():
    """Sums are taken in another order there, so equality is to rounding."""
    model, graphs = sharpened(), collection(24)
    with kernels.use("twin"):
        together = outputs(model, graphs)
        for i in (0, 5, 11, 23):
            alone = outputs(model, graphs[i])
            assert (alone[0][0] - together[0][i]).abs().max() < 2e-6
            scale = max(1.0, together[2][i].abs().max().item())
            assert (alone[2][0] - together[2][i]).abs().max() < 1e-4 * scale


def test_repeated_calls_are_equal():
    model, graphs = ART(), collection(16)
    assert torch.equal(model.embed(graphs, "paper"), model.embed(graphs, "paper"))
