"""Alignment schemes: agreement, the representation from couplings, and the quick command."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch

import artlas
from artlas import kernels
from artlas.datasets import real_networks
from artlas_paper.studies import alignment, alignment_report


def test_agreement_counts_orders_and_nearest_bases():
    reference = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    assert alignment.agreement(reference, reference) == (1.0, 1.0)
    other = np.array([[10.0, 20.0, 30.0], [1.0, 2.0, 3.0]])
    assert alignment.agreement(other, reference) == (0.0, 0.5)


def test_z_from_the_models_own_couplings_is_its_z():
    model, graphs = artlas.load("graph"), real_networks().graphs[:4]
    energies = model.align(graphs).energies.double().numpy()
    couplings = [model.couplings(graphs[g]) for g in range(len(graphs))]
    made = alignment.representation(model, graphs, energies, couplings)
    wanted = model.embed(graphs, "paper").double().numpy()
    np.testing.assert_allclose(made, wanted, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.skipif(not kernels.available(), reason="the solver is compiled code")
@pytest.mark.parametrize("name", ["alignment", "capacity", "components"])
def test_the_quick_commands(quick_study, tmp_path, name):
    call = partial(quick_study, name)
    torch.manual_seed(0)
    done = call()
    assert done.exit_code == 0, done.output
    file = tmp_path / "out" / f"{name}-quick.json"
    records = json.loads(file.read_text())
    if name == "alignment":
        (record,) = records
        schemes = record["schemes"]
        assert set(schemes) == set(alignment_report.SCHEMES)
        assert schemes["reference"]["rho"] == schemes["reference"]["top"] == 1
        refined = schemes["ART + 10 steps"]
        assert refined["raised"] <= 1e-6
        assert schemes["ART"]["energy"] > refined["energy"] >= schemes["from ART"]["energy"] - 1e-9
        assert schemes["from ART"]["energy"] >= schemes["reference"]["energy"]
        assert sum(record["wins"]) == pytest.approx(1, abs=1e-3)
        few, many = (schemes[name] for name in alignment_report.ENTROPIC)
        assert many["entropic_rho"] == many["entropic_top"] == 1
        assert few["entropic_rho"] > 0.99  # so strong that ten steps are enough
    else:
        assert len(records) == {"capacity": 4, "components": 3}[name]
        for record in records:
            assert set(record["accuracy"]) == {"q", "H", "z"}
            assert all(0 <= value <= 100 for value in record["accuracy"].values())
        assert len({record["episodes"] for record in records}) == 1
    before = file.read_bytes()
    assert call().exit_code == 0
    assert file.read_bytes() == before
