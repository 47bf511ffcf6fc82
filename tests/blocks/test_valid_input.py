"""Valid input gives finite float32 vectors and is left alone; the work can be interrupted."""

from __future__ import annotations

import signal

import networkx as nx
import numpy as np
import pytest
import torch
from blocks.block_graphs import MOSTLY_NATIVE, collection, dense, each_kind, needs_native
from cases import dense_graphs, from_dense
from hypothesis import given, settings
from hypothesis import strategies as st

from artlas import GraphError, Graphs, kernels
from artlas.blocks import embed, layout, vector

PRESETS = ["full", "compact"]


@each_kind()
@pytest.mark.parametrize("preset", PRESETS)
def test_vectors_are_finite_float32_rows(kind, preset, which):
    graphs = collection(kind)
    with kernels.use(which):
        found = embed(graphs, preset)
    assert found.dtype == torch.float32
    assert found.is_contiguous()
    assert not found.requires_grad
    assert found.shape == (len(graphs), layout(preset).width)
    assert torch.isfinite(found).all()


@settings(max_examples=30, deadline=None)
@given(
    dense_graphs(most=10),
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
)
def test_any_finite_features(A, values):
    x = np.resize(np.array(values, dtype=np.float32), (len(A), 3))
    assert torch.isfinite(embed(from_dense([A], x=x))).all()


@pytest.mark.parametrize("which", MOSTLY_NATIVE)
@pytest.mark.parametrize("kind", ["none", "mixed"])
def test_the_input_is_left_as_it_was(kind, which):
    graphs = collection(kind)
    tensors = [graphs.node_ptr, graphs.row_ptr, graphs.col]
    tensors += [] if graphs.x is None else [graphs.x]
    before = [tensor.clone() for tensor in tensors]
    with kernels.use(which):
        first = embed(graphs, "compact")
        kept = first.clone()
        assert embed(graphs, "compact").data_ptr() != first.data_ptr()
    assert torch.equal(first, kept)
    assert all(map(torch.equal, before, tensors))


@pytest.mark.parametrize("which", MOSTLY_NATIVE)
def test_features_of_no_columns_are_no_features(which):
    plain = collection()
    empty = plain.with_features(np.zeros((plain.num_nodes, 0)))
    with kernels.use(which):
        assert torch.equal(embed(empty), embed(plain))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("preset", PRESETS)
def test_the_default_dtype_does_not_matter(preset, dtype):
    graphs, before = collection("mixed"), torch.get_default_dtype()
    wanted = embed(graphs, preset)
    torch.set_default_dtype(dtype)
    try:
        found = embed(graphs, preset)
    finally:
        torch.set_default_dtype(before)
    assert found.dtype == torch.float32
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("which", MOSTLY_NATIVE)
def test_zero_features_change_nothing(which):
    graphs = collection()
    with kernels.use(which):
        zero = embed(graphs.with_features(np.zeros((graphs.num_nodes, 2))))
        assert torch.equal(zero, embed(graphs))


@pytest.mark.parametrize("which", MOSTLY_NATIVE)
def test_anything_that_is_graphs(which):
    """NetworkX graphs, matrices, pairs of a size and edges."""
    wheel = nx.wheel_graph(6)
    with kernels.use(which):
        wanted = embed(Graphs.from_networkx(wheel))
        edges = np.array([*wheel.edges, *((j, i) for i, j in wheel.edges)]).T
        for other in (wheel, [wheel], nx.to_scipy_sparse_array(wheel), (6, edges), dense(wheel)):
            assert torch.equal(embed(other), wanted)
    with pytest.raises(GraphError):
        embed([])


@pytest.mark.parametrize("which", MOSTLY_NATIVE)
def test_an_interrupt_between_batches(which, monkeypatch):
    """Nothing is returned, and the next call is as ever."""
    graphs = collection("coded")
    with kernels.use(which):
        wanted = embed(graphs, "compact")
        real, calls = vector._full, []

        def interrupted(*arguments):
            calls.append(arguments)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return real(*arguments)

        monkeypatch.setattr(vector, "BATCH", 100)
        monkeypatch.setattr(vector, "_full", interrupted)
        with pytest.raises(KeyboardInterrupt):
            embed(graphs, "compact")
        assert len(calls) == 3
        monkeypatch.setattr(vector, "_full", real)
        assert torch.equal(embed(graphs, "compact"), wanted)


def test_ctrl_c_ends_the_work_after_the_batch(monkeypatch):
    graphs, real, calls = collection("coded"), vector._full, []

    def watched(*arguments):
        calls.append(arguments)
        found = real(*arguments)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(vector, "BATCH", 100)
    monkeypatch.setattr(vector, "_full", watched)
    with pytest.raises(KeyboardInterrupt):
        embed(graphs)
    assert len(calls) == 2
    assert len(list(graphs.batches(100))) > 3


@needs_native
def test_compiled_code_refuses_a_table_of_another_shape():
    graphs = collection("mixed")
    arrays = graphs.node_ptr, graphs.row_ptr, graphs.col, graphs.x
    for shape in ((len(graphs), 5), (1, layout().width)):
        with pytest.raises(ValueError, match=r"out must be \[graphs, columns\]"):
            kernels.native.write_blocks(*arrays, torch.empty(shape), 4, 512)
