"""Folds of SCGFM-ART: the target is left out, and kept models are reused only where they fit."""

from __future__ import annotations

import dataclasses

import pytest

from artlas.method import checkpoint
from artlas_paper import datasets
from artlas_paper.transfer import folds


def test_the_target_is_not_among_what_is_pretrained_on(small, monkeypatch):
    seen = {}
    monkeypatch.setattr(folds, "pretrain", lambda sources, *a, **k: seen.update(sources) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        small.model("BZR", 1)
    assert set(seen) == {"IMDB-BINARY", "PROTEINS"}
    assert small.name("BZR") == "without-BZR"
    assert small.name("COLORS-3") == "all"
    # whatever it is called: the structure itself is compared
    small._loaded["PROTEINS"] = datasets.load("BZR", small.root, "raw", verbose=False)
    with pytest.raises(datasets.DatasetError, match=r"BZR .* PROTEINS"):
        small.model("BZR", 1)


def test_what_is_kept_is_used_again_only_for_the_same_settings(small, monkeypatch):
    first = small.model("BZR", 3)
    trained = []
    real = folds.pretrain
    monkeypatch.setattr(folds, "pretrain", lambda *a, **k: trained.append(a) or real(*a, **k))
    again = small.model("BZR", 3)
    assert not trained
    assert checkpoint.weights_hash(first) == checkpoint.weights_hash(again)
    other = dataclasses.replace(small, config=dataclasses.replace(small.config, bases=5))
    with pytest.raises(ValueError, match="other settings"):
        other.model("BZR", 3)
