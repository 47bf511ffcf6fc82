"""Baselines of every fold: trained without the target, and with an honest cost."""

from __future__ import annotations

import pytest

from artlas.files import stored
from artlas_paper import datasets
from artlas_paper.methods.registry import METHODS
from artlas_paper.transfer import baseline_folds


def test_a_pause_is_no_cost(small_baselines, tmp_path):
    entry = METHODS["gin"]
    (tmp_path / "log.jsonl").write_text("".join(f'{{"seconds": {s}}}\n' for s in (2, 2, 600)))
    small_baselines._write_cost(tmp_path, entry, small_baselines.training(entry, 1), 0)
    kept = stored.read_json(tmp_path / baseline_folds.COST)
    assert (kept["epochs"], kept["seconds"]) == (3, 6.0)


def test_the_target_is_not_among_the_sources(small_baselines, monkeypatch):
    assert set(small_baselines.domains("BZR")) == {"IMDB-BINARY", "PROTEINS"}
    small_baselines._featured._loaded["PROTEINS"] = datasets.load(
        "BZR", small_baselines.folds.root, "paper", verbose=False
    )
    with pytest.raises(datasets.DatasetError, match=r"BZR .* PROTEINS"):
        small_baselines.domains("BZR")
