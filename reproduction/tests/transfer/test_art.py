"""Records of SCGFM-ART and of the controls on one target."""

from __future__ import annotations

import numpy as np
import pytest

from artlas_paper.transfer.art import evaluate_art


@pytest.mark.slow
def test_records_of_one_target(small, episodes_of_bzr):
    made = list(evaluate_art(small, "bzr", [1, 2], [5]))
    rows = {(r["method"], r["variant"], r["seed"]) for r in made}
    assert len(rows) == len(made) == 8 + 2 + 2 * 8  # controls, beyond the paper, two models
    assert {("art", "paper", 1), ("art", "plus", 2), ("control", "sum", None)} <= rows
    keys = "target method variant seed shots episodes mean std stderr paper seconds commit"
    for record in made:
        assert set(keys.split()) <= set(record)
        assert record["target"] == "BZR"
        assert len(record["accuracies"]) == 50
        assert record["mean"] == pytest.approx(100 * np.mean(record["accuracies"]), abs=1e-2)
        assert record["stderr"] == pytest.approx(record["std"] / 50**0.5, abs=1e-3)
    # the published episodes of BZR's labels: the same on every machine
    assert {r["episodes"] for r in made} == {made[0]["episodes"]}
    assert made[0]["episodes"] == episodes_of_bzr
    assert {r["paper"] for r in made if r["variant"] == "paper"} == {62.36}
    assert {r["paper"] for r in made if r["variant"] != "paper"} == {None}


def test_only_some_variants(small):
    made = evaluate_art(small, "BZR", [1], [5], only=["plus", "sum"])
    assert [(r["method"], r["variant"]) for r in made] == [("control", "sum"), ("art", "plus")]
    with pytest.raises(ValueError, match=r"no variant 'plux'.*plus-no-roles"):
        list(evaluate_art(small, "BZR", [1], [5], only=["plux"]))
