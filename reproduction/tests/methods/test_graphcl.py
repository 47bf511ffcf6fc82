"""GraphCL: its loss against loops, its read-out, and batches without negatives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense

from artlas_paper.methods.batch import Batch
from artlas_paper.methods.graphcl import GraphCL, GraphCLConfig
from artlas_paper.methods.losses import contrast_views


@pytest.fixture
def graphs():
    rng = np.random.default_rng(0)
    made = from_dense([random_dense(n, 0.4, rng) for n in (7, 1, 12)])
    return made.with_features(rng.normal(size=(20, 3)))


def test_the_loss_is_what_loops_give():
    torch.manual_seed(0)
    one, other = torch.randn(5, 4), torch.randn(5, 4)
    one[3] = 0
    total = 0.0
    for i in range(5):
        like = [float(torch.cosine_similarity(one[i], z, dim=0)) / 0.5 for z in other]
        rest = sum(np.exp(s) for j, s in enumerate(like) if j != i)
        total -= np.log(np.exp(like[i]) / rest)
    assert float(contrast_views(one, other, 0.5)) == pytest.approx(total / 5, rel=1e-5)


def test_equal_views_can_make_it_negative():
    z = torch.eye(4)
    assert float(contrast_views(z, z, 0.5)) == pytest.approx(np.log(3) - 2)


def test_the_read_out_joins_sums_of_all_layers(graphs):
    model = GraphCL(GraphCLConfig(features=3, hidden=4)).eval()
    batch = Batch.of(graphs)
    layers = model.encoder(batch.x, batch)
    expected = torch.cat([torch.stack([h[:7].sum(0), h[7], h[8:].sum(0)]) for h in layers], 1)
    torch.testing.assert_close(model.embed(graphs), expected)
    torch.testing.assert_close(model.embed(graphs, "centre"), torch.cat(layers, 1)[[0, 7, 8]])


def test_a_single_graph_has_no_loss_but_a_gradient_of_zero(graphs):
    model = GraphCL(GraphCLConfig(features=3, hidden=4))
    loss = model.loss(Batch.of(graphs[1:2]))
    loss.backward()
    assert float(loss.detach()) == 0
    assert all(float(p.grad.abs().max()) == 0 for p in model.parameters())


@pytest.mark.parametrize("views", [("subgraph", "perturb_edges"), ("mask_features", "subgraph")])
def test_other_views_have_finite_gradients(graphs, views):
    model = GraphCL(GraphCLConfig(features=3, hidden=4, views=views))
    model.loss(Batch.of(graphs)).backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize(
    "wrong", [{"temperature": 0.0}, {"ratio": 1.0}, {"views": ("subgraph",)}, {"views": ("a", "b")}]
)
def test_options_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GraphCLConfig(**wrong)
