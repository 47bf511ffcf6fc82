"""The sanity study: its tasks are what they say, and every method is in its records."""

from __future__ import annotations

import json

import numpy as np
import pytest

from artlas_paper.methods.registry import METHODS
from artlas_paper.studies import sanity


@pytest.mark.slow
def test_the_quick_study_of_sanity(quick_study, tmp_path):
    done = quick_study("sanity")
    assert done.exit_code == 0, done.output
    records = json.loads((tmp_path / "out" / "sanity-quick.json").read_text())
    assert {r["method"] for r in records} == {*METHODS, "art", *sanity.CONTROLS}
    for record in records:
        assert len(record["accuracies"]) == 50
        assert (record["untrained"] is None) == (record["method"] in sanity.CONTROLS)
        if record["method"] not in sanity.CONTROLS:
            assert record["accuracies"] != record["untrained"], record["method"]
    assert "| RiemannGFM | " in done.output
    assert "better than untrained" in done.output


@pytest.mark.slow
def test_tasks_are_what_they_say():
    for name, make in sanity.TASKS.items():
        made = make()
        assert set(made.labels) == set(range(len(made.names))), name
        assert made.graphs.num_features > 0
        first, second = made.halves(0)
        assert len(first.graphs) + len(second.graphs) == len(made.graphs)
    dense = sanity.density()
    degree = dense.graphs.degree.numpy()
    graph_of = np.repeat(np.arange(len(dense.graphs)), dense.graphs.sizes.numpy())
    means = np.bincount(graph_of, degree) / dense.graphs.sizes.numpy()
    found = [means[dense.labels == y].mean() for y in range(3)]
    assert found == pytest.approx([2, 4, 8], rel=0.05)
