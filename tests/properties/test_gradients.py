"""Gradients of the whole model, three ways: gradcheck, finite differences, double precision."""

import numpy as np
import pytest
import torch
from cases import awkward, from_dense, random_dense, sharpened

from artlas import ArtConfig, coverage, kernels

SMALL = ArtConfig(bases=3, roles=6, hidden=8, steps=7)


def graphs():
    return from_dense(awkward(np.random.default_rng(0))[1:6])


@pytest.mark.slow
def test_gradcheck_through_atlas_encoder_and_sinkhorn():
    """Z, W_G and W_B in float64; the oracle of every comparison below."""
    model, batch = sharpened(SMALL, 5.0).double(), graphs()
    names = ["atlas.logits", "node_projection.weight", "role_projection.weight"]

    def energies(*values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (batch,))

    inputs = [model.get_parameter(n).detach().clone().requires_grad_() for n in names]
    assert torch.autograd.gradcheck(energies, inputs, eps=1e-6, atol=1e-7, rtol=1e-4)


@pytest.mark.skipif(not kernels.available(), reason="no compiled kernels in this install")
def test_native_gradient_of_z_against_finite_differences():
    """A central difference of the float64 loss along a random direction of Z."""
    batch = graphs()
    model, wide = sharpened(SMALL, 5.0), sharpened(SMALL, 5.0).double()
    model(batch).backward()
    gen = torch.Generator().manual_seed(1)
    step = torch.randn(wide.atlas.logits.shape, generator=gen, dtype=torch.float64)
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            wide.atlas.logits += sign * 1e-5 * step
            ends.append(wide(batch))
            wide.atlas.logits -= sign * 1e-5 * step
    slope = ((ends[0] - ends[1]) / 2e-5).item()
    found = (model.atlas.logits.grad.double() * step).sum().item()
    assert found == pytest.approx(slope, rel=1e-4)


@pytest.mark.skipif(not kernels.available(), reason="no compiled kernels in this install")
@pytest.mark.parametrize("preset", [ArtConfig(), ArtConfig.released()], ids=["paper", "released"])
def test_native_gradients_of_every_parameter_against_double_precision(preset):
    rng = np.random.default_rng(2)
    batch = from_dense([*awkward(rng), random_dense(60, 0.1, rng)])
    model, wide = sharpened(preset, 20.0), sharpened(preset, 20.0).double()
    for one in (model, wide):
        coverage(one.energies(batch), 0.1).sum().backward()
    exact = {n: p.grad for n, p in wide.named_parameters()}
    overall = max(g.abs().max() for g in exact.values())
    for name, parameter in model.named_parameters():
        error = (parameter.grad - exact[name]).abs().max()
        # the last term: some gradients are zero in exact arithmetic, see test_model.py
        assert error < 2e-3 * exact[name].abs().max() + 2e-4 * overall, name
