"""The table of all methods: ranks as the paper's, choices without the target, honest records."""

from __future__ import annotations

import numpy as np
import pytest

from artlas.baselines.registry import METHODS
from artlas.studies import method_tables, published


@pytest.mark.parametrize("level", ["graph", "node"])
def test_ranks_and_averages_are_computed_as_the_paper_does(level):
    table, ends = published.accuracies(level), published.averages(level)
    assert list(table) == [*METHODS, "art"]
    means = {name: [cell[0] for cell in row.values()] for name, row in table.items()}
    ranks = method_tables.average_ranks(means)
    for name, (average, rank) in ends.items():
        assert np.mean(means[name]) == pytest.approx(average, abs=0.011)
        assert ranks[name] == pytest.approx(rank, abs=0.006), name
