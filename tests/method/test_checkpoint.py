"""Models and training states on disk: read whole or refused, and nothing is executed."""

from __future__ import annotations

import hashlib
import json

import pytest
import torch

import artlas
from artlas.errors import ReadError
from artlas.method import checkpoint
from artlas.training import states


def test_a_model_comes_back_with_its_settings(tmp_path):
    model = artlas.ART(artlas.ArtConfig(bases=3, roles=5, hidden=8, seed=9))
    checkpoint.save(model, tmp_path / "m", {"note": "small"})
    again = artlas.load(tmp_path / "m")
    assert again.config == model.config
    assert not again.training
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    assert json.loads((tmp_path / "m" / "config.json").read_text())["note"] == "small"


def test_invalid_models_are_refused(tmp_path):
    with pytest.raises(ReadError, match="there is no model here"):
        artlas.load(tmp_path)
    model = artlas.ART(artlas.ArtConfig(bases=3, roles=5, hidden=8))
    checkpoint.save(model, tmp_path)
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-9])
    with pytest.raises(ReadError, match="not a whole safetensors file"):
        artlas.load(tmp_path)
    checkpoint.save(artlas.ART(artlas.ArtConfig(bases=4, roles=5, hidden=8)), tmp_path / "other")
    (tmp_path / "model.safetensors").write_bytes(
        (tmp_path / "other" / "model.safetensors").read_bytes()
    )
    with pytest.raises(ReadError, match="do not fit the settings"):
        artlas.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(whole)
    (tmp_path / "config.json").write_text('{"model": {"surprise": 1}}')
    with pytest.raises(ReadError, match="not a model's settings"):
        artlas.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ReadError, match="not a JSON file"):
        artlas.load(tmp_path)


def test_weights_that_are_not_finite_are_refused(tmp_path):
    model = artlas.ART(artlas.ArtConfig(bases=3, roles=5, hidden=8))
    with torch.no_grad():
        model.atlas.logits[0, 0, 0] = float("nan")
    checkpoint.save(model, tmp_path)
    with pytest.raises(ReadError, match=r"not finite; got atlas\.logits"):
        artlas.load(tmp_path)


def test_two_states_are_kept_and_partial_ones_are_deleted(tmp_path):
    (tmp_path / ".step-000000007.part").mkdir()
    for step in (1, 2, 30):
        states.write_state(tmp_path, step, {"a": torch.full((2,), float(step))}, {"step": step})
    assert [p.name for p in states.states(tmp_path)] == ["step-000000002", "step-000000030"]
    assert not list(tmp_path.glob(".*"))
    tensors, facts = states.read_state(states.states(tmp_path)[-1])
    assert tensors["a"].tolist() == [30.0, 30.0]
    assert facts == {"step": 30}


@pytest.mark.parametrize("name", checkpoint.names())
def test_shipped_models_load_and_are_what_their_cards_say(name):
    folder = checkpoint.SHIPPED / name
    model = artlas.load(name)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    card = checkpoint.card(name)
    assert card["weights"]["sha256"] == digest
    assert card["weights"]["numbers"] == sum(p.numel() for p in model.parameters())
    settings = json.loads((folder / "config.json").read_text())
    assert card["data"]["sources"] == {k: v["graphs"] for k, v in settings["sources"].items()}
    assert {"title", "settings", "commit", "loss", "largest_residual", "limits"} <= set(card)
    presets = {"graph-few-roles": artlas.ArtConfig.few_roles()}
    assert model.config == presets.get(name, artlas.ArtConfig())
    assert (folder / "model.safetensors").stat().st_size < 300_000


def test_both_levels_are_shipped():
    assert {"graph", "node"} <= set(checkpoint.names())
