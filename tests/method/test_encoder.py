"""The encoder's compiled forward pass against its PyTorch form, and both against a plain loop."""

import numpy as np
import pytest
import torch
from cases import awkward, from_dense, oracle_graphs

from artlas import ART, ArtConfig, kernels
from artlas.graphs.measure import normalised_degree, prepare_structure


def test_input_is_the_normalised_degree():
    path = np.zeros((4, 4), dtype=bool)
    path[0, 1] = path[1, 0] = path[1, 2] = path[2, 1] = True
    graphs = from_dense([path, np.zeros((2, 2))])
    assert normalised_degree(graphs.degree, graphs.node_ptr).tolist() == [
        0.5,
        1.0,
        0.5,
        0.0,
        0.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("hidden", "layers"), [(64, 2), (16, 1), (20, 3), (33, 4)], ids=lambda v: str(v)
)
def test_embeddings_follow_the_formula(hidden, layers):
    model = ART(ArtConfig(hidden=hidden, layers=layers)).double()
    graphs = from_dense(awkward(np.random.default_rng(0)))
    with torch.no_grad():
        for layer in model.encoder.layers:  # make every parameter matter
            layer.epsilon += 0.3
            layer.norm.weight += 0.1 * torch.arange(hidden)
            layer.norm.bias += 0.05
        encoder, found = model.encoder, model.encoder(model.prepare(graphs))
        start = 0
        for A, _ in oracle_graphs(graphs):
            degree = A.sum(1)
            x = degree / max(1.0, degree.max().item())
            h = torch.relu(x[:, None] * encoder.lift.weight[:, 0] + encoder.lift.bias)
            for layer in encoder.layers:
                inner = torch.relu(layer.inner((1 + layer.epsilon) * h + A @ h))
                raw = h + layer.outer(inner)
                centred = raw - raw.mean(1, keepdim=True)
                scaled = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()
                h = scaled * layer.norm.weight + layer.norm.bias
            assert (found[start : start + len(A)] - h).abs().max() < 1e-10
            start += len(A)
        single = model.float().encoder.project(
            prepare_structure(graphs, 1e-8), model.node_projection.weight
        )
        wide = found @ model.node_projection.weight.double().T
        assert (single - wide).abs().max() < 2e-5 * max(1.0, wide.abs().max().item())


@pytest.mark.skipif(not kernels.available(), reason="no compiled kernels in this install")
def test_compiled_and_twin_agree():
    model = ART()
    graphs = from_dense(awkward(np.random.default_rng(1)))
    structure, weight = prepare_structure(graphs, 1e-8), model.node_projection.weight
    with torch.no_grad():
        native = model.encoder.project(structure, weight)
        with kernels.use("twin"):
            twin = model.encoder.project(structure, weight)
    assert not torch.equal(native, torch.zeros_like(native))
    assert (native - twin).abs().max() < 1e-5
