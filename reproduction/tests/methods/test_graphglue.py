"""GraphGlue: links, frames and losses against definitions, and the prototypes' updates."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense

from artlas import Graphs
from artlas_paper.methods.batch import Batch
from artlas_paper.methods.domains import BatchBuilder
from artlas_paper.methods.graphglue import (
    GraphGlue,
    GraphGlueConfig,
    curvature,
    local_loss,
    log_metric,
    orthogonal,
)
from artlas_paper.methods.graphglue_links import top_shares

SMALL = GraphGlueConfig(features=2, hidden=6, virtual=4, neighbours=3, dropout=0.0, domains=(0, 0))


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    made = from_dense([random_dense(n, 0.4, rng) for n in (9, 6, 1, 2, 7)])
    return made.with_features(rng.normal(size=(made.num_nodes, 2)))


def test_a_virtual_node_has_its_best_nodes_and_shares_between_equals():
    scores = torch.tensor([[3.0, 1, 2, 1, 1], [5, 4, -torch.inf, -torch.inf, -torch.inf]])
    found = top_shares(scores[:, :, None], torch.tensor([5, 2]), 3)[:, :, 0]
    torch.testing.assert_close(found[0], torch.tensor([1, 1 / 3, 1, 1 / 3, 1 / 3]))
    torch.testing.assert_close(found[1], torch.tensor([1.0, 1, 0, 0, 0]))


def test_states_are_those_of_a_dense_network_with_virtual_nodes(graphs):
    model = GraphGlue(SMALL).eval()
    parameters = list(model.parameters())
    states, z, tangents = model.encode(Batch.of(graphs))
    weight, total = torch.randn_like(states), states.new_zeros(())
    for g, graph in enumerate(graphs):
        x, n = model.enter(graph.x), graph.num_nodes
        scores = model.compare(x) @ model.compare(model.nodes).T
        links = torch.zeros(n, 4)
        for m in range(4):
            best = scores[:, m].topk(min(n, 3)).indices
            links[best, m] = scores[best, m].sigmoid()
        a = torch.eye(n + 4)
        a[:n, :n] += torch.from_numpy(graph.to_scipy(0).toarray()).float()
        a[:n, n:], a[n:, :n] = links, links.T
        scale = a.sum(1).rsqrt()
        a = scale[:, None] * a * scale
        h = torch.cat([x, model.nodes])
        for i, layer in enumerate(model.convolutions):
            h = a @ layer.lin(h) + layer.bias
            h = torch.relu(h) if i < 2 else h
        begin = int(graphs.node_ptr[g])
        torch.testing.assert_close(states[begin : begin + n], h[:n], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(z[g], h[:n].mean(0), atol=1e-5, rtol=1e-4)
        lengths = (h[n:] - z[g]).norm(dim=1)
        torch.testing.assert_close(tangents[g].norm(dim=1), lengths, atol=1e-5, rtol=1e-3)
        total = total + (weight[begin : begin + n] * h[:n]).sum()
    found = torch.autograd.grad((weight * states).sum(), parameters)
    for one, other in zip(found, torch.autograd.grad(total, parameters), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_frames_are_those_of_all_states_with_their_gradients(graphs):
    model, batch = GraphGlue(SMALL).double(), Batch.of(graphs.with_features(graphs.x))
    batch = batch.with_features(batch.x.double())
    _, *wanted = model.encode(batch)
    found = model.frames(batch)
    weight = [torch.randn_like(part) for part in wanted]
    gradients = []
    for parts in (found, wanted):
        total = sum((w * part).sum() for w, part in zip(weight, parts, strict=True))
        gradients.append(torch.autograd.grad(total, list(model.parameters())))
    for one, other in zip((*found, *gradients[0]), (*wanted, *gradients[1]), strict=True):
        torch.testing.assert_close(one, other)
    assert all(grad.any() for grad in gradients[0])


def test_frames_are_orthogonal_with_their_lengths_and_dependent_ones_have_a_gradient():
    torch.manual_seed(0)
    vectors = torch.randn(3, 4, 8)
    made = orthogonal(vectors)
    torch.testing.assert_close(made.norm(dim=2), vectors.norm(dim=2))
    gram = made @ made.transpose(1, 2)
    off = gram - torch.diag_embed(gram.diagonal(dim1=1, dim2=2))
    assert off.abs().max() < 0.05 * float(gram.max())
    torch.testing.assert_close(made[:, 0], vectors[:, 0], atol=1e-4, rtol=1e-3)
    same = torch.ones(1, 4, 8, requires_grad=True)
    orthogonal(same).sum().backward()
    assert torch.isfinite(same.grad).all()
    zero = torch.zeros(1, 4, 8, requires_grad=True)
    log_metric(orthogonal(zero)).sum().backward()
    assert torch.isfinite(zero.grad).all()


def test_the_local_loss_is_as_written():
    torch.manual_seed(1)
    z, tangents = torch.randn(5, 3), torch.randn(5, 2, 3)
    expected = []
    for i in range(5):
        for m in range(2):
            units = [v / v.norm() for v in z]
            moved = z[i] + tangents[i, m]
            own = torch.exp(-(units[i] - moved / moved.norm()).square().sum())
            rest = sum(torch.exp(-(units[i] - units[j]).square().sum()) for j in range(5) if j != i)
            expected.append(-torch.log(own / (rest + own)))
    assert float(local_loss(z, tangents, 1.0)) == pytest.approx(float(torch.stack(expected).mean()))
    assert float(local_loss(z[:1], tangents[:1], 1.0)) == pytest.approx(0.0, abs=1e-6)


def test_curvature_is_zero_only_where_volumes_are_linear():
    place = torch.arange(6.0)
    near = (place[:, None] - place).abs()
    allowed = torch.ones(6, 6, dtype=torch.bool)
    assert float(curvature(torch.full((6,), 2.0), near, allowed, 1)) == 0
    torch.manual_seed(0)
    assert float(curvature(place**2, near, allowed, 2)) > 0
    assert float(curvature(place, near, torch.eye(6, dtype=torch.bool), 2)) == 0
    # one neighbour each, 0 - 1 - 2: the turn is 4 - 2 * 1 + 0, and the ways back do not count
    chain = torch.tensor([[9.0, 1, 5], [5, 9, 1], [5, 1, 9]])
    turn = curvature(torch.tensor([0.0, 1, 4]), chain, allowed[:3, :3], 1)
    assert float(turn) == pytest.approx(4.0)


def test_prototypes_follow_their_sources_and_count_after_an_epoch(graphs):
    domains = {"a": graphs[:3], "b": graphs[3:]}
    model = GraphGlue(dataclasses.replace(SMALL, glue=0.0))
    model.prepare(domains)
    batch = BatchBuilder(domains).build([("b", 0), ("a", 1), ("a", 0), ("b", 1), ("a", 2)])
    with torch.no_grad():
        _, z, tangents = model.encode(batch)
        first = model.loss(batch)
        torch.testing.assert_close(first, local_loss(z, tangents, 1.0))
        torch.testing.assert_close(model.prototypes[0], z[:3].mean(0))
        torch.testing.assert_close(model.metrics[1], log_metric(tangents)[3:].mean(0))
        assert model.seen.tolist() == [3, 2]
        second = model.loss(batch)
    units = torch.nn.functional.normalize(z, dim=1)
    logits = units @ torch.nn.functional.normalize(model.prototypes, dim=1).T
    own = torch.nn.functional.cross_entropy(logits, torch.tensor([0, 0, 0, 1, 1]))
    torch.testing.assert_close(second - first, own)
    torch.testing.assert_close(model.prototypes[0], z[:3].mean(0))  # the mean has not moved


def test_equal_nodes_may_be_renumbered():
    rng = np.random.default_rng(4)
    dense = random_dense(20, 0.2, rng)
    x = np.eye(2)[rng.integers(0, 2, 20)]
    order = rng.permutation(20)
    one = Graphs.from_scipy([dense.astype(float)], [x])
    other = Graphs.from_scipy([dense[np.ix_(order, order)].astype(float)], [x[order]])
    model = GraphGlue(SMALL)
    torch.testing.assert_close(model.embed(one), model.embed(other), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("wrong", [{"virtual": 0}, {"momentum": 1.0}, {"temperature": 0.0}])
def test_options_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GraphGlueConfig(**wrong)
