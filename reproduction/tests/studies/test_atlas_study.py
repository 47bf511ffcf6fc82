"""The study of the atlas: measures on small cases with known values, and the quick command."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch

import artlas
from artlas_paper.studies import atlas

THREE = ["BZR", "IMDB-BINARY", "PROTEINS"]


def test_effective_number_of_bases():
    assert atlas.effective_bases(np.full(16, 1 / 16)) == pytest.approx(16)
    assert atlas.effective_bases(np.array([0.5, 0.5, 0.0])) == pytest.approx(2)
    assert atlas.effective_bases(np.array([1.0, 0.0])) == pytest.approx(1)


def test_top_sets_and_their_overlap():
    weights = np.array([[0.9, 0.1, 0.4], [0.8, 0.1, 0.4], [0.1, 0.7, 0.4], [0.0, 0.6, 0.4]])
    sets = atlas.top_sets(weights, 2)
    assert sets == [{0, 1}, {2, 3}, {0, 1}]
    assert atlas.mean_jaccard(sets) == pytest.approx(1 / 3)
    assert atlas.mean_jaccard([{0, 1, 2}, {2, 3, 4}]) == pytest.approx(1 / 5)


def test_chance_is_what_random_sets_give():
    rng = np.random.default_rng(0)
    jaccard, union = [], []
    for _ in range(300):
        sets = atlas.top_sets(rng.random((40, 5)), 8)
        jaccard.append(atlas.mean_jaccard(sets))
        union.append(len(set().union(*sets)))
    expected = atlas.overlap_by_chance(40, 5)
    assert np.mean(jaccard) == pytest.approx(expected[0], abs=0.01)
    assert np.mean(union) == pytest.approx(expected[1], abs=0.4)


def test_shift_of_classes():
    labels = np.array([0, 0, 1, 1])
    even = np.full((4, 3), 1 / 3)
    assert atlas.largest_class_shift(even, labels) == pytest.approx(0)
    split = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert atlas.largest_class_shift(split, labels) == pytest.approx(0.5)
    uneven = np.array([[0.75, 0.25], [0.25, 0.75], [0.25, 0.75], [0.25, 0.75]])
    assert atlas.largest_class_shift(uneven, labels) == pytest.approx(1 / 1.5 - 0.5)


def test_variants_change_what_they_say():
    config = artlas.ArtConfig(bases=3, roles=4, hidden=16)
    model = artlas.ART(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1)
    assert atlas.variant_of(model, "learned") is model
    first, again = (atlas.variant_of(model, "random-bases") for _ in range(2))
    untrained = atlas.variant_of(model, "untrained").state_dict()
    for name, weight in model.state_dict().items():
        assert torch.equal(first.state_dict()[name], weight) == (name != "atlas.logits")
        assert torch.equal(first.state_dict()[name], again.state_dict()[name])
        assert torch.equal(untrained[name], artlas.ART(config).state_dict()[name])
    assert not torch.equal(first.atlas.logits, untrained["atlas.logits"])


def test_the_quick_command(quick_study, tmp_path):
    call = partial(quick_study, "atlas")
    done = call()
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    files = {path.name for path in out.iterdir()}
    assert files == {f"atlas-quick.{kind}" for kind in ("json", "md", "png", "svg")}
    assert "| BZR | paper | 16.000 | 0.053 | 73 | 0.0004 | - | - |" in done.output
    records = json.loads((out / "atlas-quick.json").read_text())
    assert [(r["target"], r["variant"], r["seed"]) for r in records] == [
        ("BZR", "learned", 42),
        ("BZR", "random-bases", 42),
        ("BZR", "untrained", 42),
    ]
    for record in records:
        assert record["objects"] == 16
        assert sum(record["mean"]) == pytest.approx(1, abs=1e-6)
        assert 1 <= record["effective"] <= 16
        assert 8 <= record["unique"] <= 16
        assert 0 <= record["jaccard"] <= 1
        assert len(record["density"]) == 16
        assert 0 < min(record["density"]) < max(record["density"]) < 1
    assert len({r["weights"] for r in records}) == 3
    before = (out / "atlas-quick.json").read_bytes()
    assert call().exit_code == 0
    assert (out / "atlas-quick.json").read_bytes() == before
    wrong = call("--targets", "BZR,nothing")
    assert wrong.exit_code == 2
    assert "nothing" in wrong.output
