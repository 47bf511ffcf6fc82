"""Maps of manifolds and their gradients against PyTorch's in float64."""

import pytest
import torch

from artlas_paper.kernels import hyperbolic, manifold_map, unit

WIDTHS = [1, 4, 16, 33]
ROWS = 300
MAPS = ["from_origin", "to_origin", "mean", "walk", "carried"]


def inputs(name, curvature, width):
    """Points and vectors; among them the origin, its neighbourhood, and tangents that are cut."""
    torch.manual_seed(width)
    tangent = torch.randn(ROWS, width)
    tangent[0] = 0
    tangent[1:9] *= 1e-4
    if name == "from_origin":
        tangent[9:19] *= 8 / tangent[9:19].norm(dim=1, keepdim=True)
        return [tangent]
    # far out on the hyperboloid, inner products in float32 are differences of large numbers
    reach = max(1, width**0.5 / 2) * (4 if curvature < 0 else 1)
    points = hyperbolic.from_origin(curvature, tangent / reach)
    if name == "to_origin":
        return [points]
    if name == "mean":
        return [points, points.roll(1, 0)]
    if name == "walk":
        return [points, points.roll(1, 0) + 0.1 * torch.randn(ROWS, 1 + width)]
    return [points, torch.randn(ROWS, width)]


def check(found_by, expected_by, given, tolerance=2e-5):
    """Of float32, with gradients."""
    exact = [t.double().requires_grad_() for t in given]
    expected = expected_by(*exact)
    grad = torch.randn(expected.shape, generator=torch.Generator().manual_seed(5))
    grads = torch.autograd.grad((expected * grad).sum(), exact)
    given = [t.clone().requires_grad_() for t in given]
    found = found_by(*given)
    made = torch.autograd.grad((found * grad).sum(), given)
    for a, b in zip([found, *made], [expected, *grads], strict=True):
        row = b.abs().amax(-1, keepdim=True).clamp(min=1)
        assert ((a - b).abs() / row).max() < tolerance


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("curvature", [-1, 1])
@pytest.mark.parametrize("name", MAPS)
def test_maps_and_gradients_are_those_in_double_precision(name, curvature, width):
    given = inputs(name, curvature, width)
    check(
        lambda *rows: manifold_map(name, curvature, *rows),
        lambda *rows: getattr(hyperbolic, name)(curvature, *rows),
        given,
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_units_are_those_in_double_precision(width):
    torch.manual_seed(0)
    given = torch.randn(7, 5, width)
    check(unit, lambda x: x / x.norm(dim=-1, keepdim=True), [given])
    zeros = torch.zeros(2, width)
    assert torch.equal(unit(zeros), zeros)


@pytest.mark.parametrize("curvature", [-1, 1])
@pytest.mark.parametrize("name", MAPS)
def test_what_is_no_number_is_not_hidden(name, curvature):
    given = [t.clone() for t in inputs(name, curvature, 16)]
    for t in given:
        t[3, 2] = torch.nan
    rows = [t.requires_grad_() for t in given]
    found = manifold_map(name, curvature, *rows)
    assert found[3].isnan().any()
    assert not found[[2, 4]].isnan().any()
    for grad in torch.autograd.grad(found.sum(), rows):
        assert grad[3].isnan().any()
        assert not grad[[2, 4]].isnan().any()
