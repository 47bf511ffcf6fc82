"""Attention over neighbours against dense softmaxes in float64, with gradients."""

import numpy as np
import pytest
import torch
from cases import awkward, from_dense, random_dense, star

from artlas_paper.kernels import additive_attention, normalised_sums, product_attention, self_sums

HEADS_AND_WIDTHS = [(1, 1), (1, 33), (3, 5), (4, 16), (4, 32)]


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    return from_dense([*awkward(rng), star(70), random_dense(40, 0.5, rng)])


def adjacency(graphs):
    row = torch.repeat_interleave(graphs.row_ptr.diff())
    made = torch.zeros(graphs.num_nodes, graphs.num_nodes, dtype=torch.bool)
    made[row, graphs.col.long()] = True
    return made


def dense_means(scores, values, pattern):
    """By softmaxes over the entries of a pattern of scores [N, N]; rows without any are 0."""
    some = pattern.any(1, keepdim=True)
    weights = scores.masked_fill(~pattern & some, -torch.inf).softmax(1)
    return (weights * some) @ values


def check(found_by, expected_by, inputs, tolerance):
    """Results and gradients in float32."""
    exact = [t.double().requires_grad_() for t in inputs]
    expected = expected_by(*exact)
    grad = torch.randn(expected.shape, generator=torch.Generator().manual_seed(5))
    grads = torch.autograd.grad((expected * grad).sum(), exact)
    given = [t.clone().requires_grad_() for t in inputs]
    found = found_by(*given)
    made = torch.autograd.grad((found * grad).sum(), given)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    for a, b in zip(made, grads, strict=True):
        reach = tolerance * max(1.0, float(b.abs().max()))
        torch.testing.assert_close(a.double(), b, rtol=tolerance, atol=reach)


@pytest.mark.parametrize("size", [1.0, 300.0])  # of scores: exp(300) is no float32
@pytest.mark.parametrize(("heads", "width"), HEADS_AND_WIDTHS)
def test_additive_attention_is_a_dense_softmax(graphs, heads, width, size):
    pattern = adjacency(graphs) | torch.eye(graphs.num_nodes, dtype=torch.bool)
    torch.manual_seed(1)
    values = torch.randn(graphs.num_nodes, heads * width)
    sent, met = size * torch.randn(2, graphs.num_nodes, heads)

    def found(values, sent, met):
        return additive_attention(values, sent, met, graphs.row_ptr, graphs.col, 0.2)

    def expected(values, sent, met):
        scores = torch.nn.functional.leaky_relu(sent[None] + met[:, None], 0.2)
        parts = values.split(width, 1)
        return torch.cat(
            [dense_means(scores[..., h], part, pattern) for h, part in enumerate(parts)], 1
        )

    check(found, expected, [values, sent, met], 3e-5 * size**0.5)


@pytest.mark.parametrize("size", [1.0, 20.0])
@pytest.mark.parametrize(("depth", "width"), HEADS_AND_WIDTHS)
def test_product_attention_is_a_dense_softmax(graphs, depth, width, size):
    pattern = adjacency(graphs)
    assert not pattern.any(1).all()  # some node has no neighbour
    torch.manual_seed(2)
    query, key = size * torch.randn(2, graphs.num_nodes, depth)
    value = torch.randn(graphs.num_nodes, width)

    def found(query, key, value):
        return product_attention(query, key, value, graphs.row_ptr, graphs.col)

    def expected(query, key, value):
        return dense_means(query @ key.T, value, pattern)

    check(found, expected, [query, key, value], 3e-5 * size)


def test_no_edges_at_all():
    graphs = from_dense([np.zeros((3, 3))])
    values, ones = torch.randn(3, 4), torch.ones(3, 2)
    place = graphs.row_ptr, graphs.col
    torch.testing.assert_close(additive_attention(values, ones, ones, *place, 0.2), values)
    assert not product_attention(ones, ones, values, *place).any()


@pytest.mark.parametrize("width", [1, 33, 64, 128])  # the last two are kept in registers
def test_normalised_sums_are_a_dense_product(graphs, width):
    nodes = graphs.num_nodes
    torch.manual_seed(3)
    scale, bias = torch.rand(nodes) + 0.1, torch.randn(width)
    loops = adjacency(graphs).double() + torch.eye(nodes)
    dense = scale[:, None].double() * loops * scale.double()
    place = scale, graphs.row_ptr, graphs.col
    values = torch.randn(nodes, width)
    check(
        lambda v, b: normalised_sums(v, b, *place), lambda v, b: dense @ v + b, [values, bias], 1e-5
    )
    check(lambda v: normalised_sums(v, None, *place), lambda v: dense @ v, [values], 1e-5)
    check(
        lambda v, b, s: normalised_sums(v, b, s, *place[1:]),
        lambda v, b, s: s[:, None] * (loops @ (s[:, None] * v)) + b,
        [values, bias, scale],
        2e-5,
    )
    torch.testing.assert_close(  # whatever the layout
        normalised_sums(values.T.contiguous().T, None, *place),
        normalised_sums(values, None, *place),
    )
    values[-1] = torch.nan
    assert torch.equal(normalised_sums(values, bias, *place).isnan().all(1), loops[:, -1] > 0)


@pytest.mark.parametrize("width", [1, 33, 64, 128])
def test_self_sums_are_a_dense_product(graphs, width):
    nodes = graphs.num_nodes
    torch.manual_seed(6)
    values, eps, bias = torch.randn(nodes, width), torch.tensor([0.3]), torch.randn(width)
    dense, own = adjacency(graphs).double(), torch.eye(nodes)
    check(
        lambda v, e, b: self_sums(v, e, b, graphs.row_ptr, graphs.col),
        lambda v, e, b: (dense + (1 + e) * own) @ v + b,
        [values, eps, bias],
        1e-5,
    )
    values[-1] = torch.nan
    found = self_sums(values, eps, bias, graphs.row_ptr, graphs.col)
    assert torch.equal(found.isnan().all(1), (dense + own)[:, -1] > 0)


@pytest.mark.parametrize(("heads", "width"), [(3, 5), (4, 16)])
def test_what_is_no_number_is_not_hidden(graphs, heads, width):
    """A diverged model must not look sound: each row that sees a nan is nan."""
    place, nodes = (graphs.row_ptr, graphs.col), graphs.num_nodes
    values, scores = torch.randn(nodes, heads * width), torch.randn(nodes, heads)
    seen = adjacency(graphs)[:, -1]
    assert 1 < seen.sum() < nodes
    wrong = scores.clone()
    wrong[-1] = torch.nan
    for sent, met, rows in (
        (wrong, scores, seen | (torch.arange(nodes) == nodes - 1)),
        (scores, wrong, torch.arange(nodes) == nodes - 1),
    ):
        found = additive_attention(values, sent, met, *place, 0.2)
        assert torch.equal(found.isnan().all(1), rows)
        assert torch.equal(found.isnan().any(1), rows)
    found = product_attention(scores, wrong, values, *place)
    assert torch.equal(found.isnan().all(1), seen)
    assert torch.equal(found.isnan().any(1), seen)
