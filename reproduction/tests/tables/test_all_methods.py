"""The table of all methods: ranks and averages as the paper computes them."""

from __future__ import annotations

import numpy as np
import pytest

from artlas_paper import published_results
from artlas_paper.methods.registry import METHODS
from artlas_paper.tables import all_methods


@pytest.mark.parametrize("level", ["graph", "node"])
def test_ranks_and_averages_are_computed_as_the_paper_does(level):
    table, ends = published_results.accuracies(level), published_results.averages(level)
    assert list(table) == [*METHODS, "art"]
    means = {name: [cell[0] for cell in row.values()] for name, row in table.items()}
    ranks = all_methods.average_ranks(means)
    for name, (average, rank) in ends.items():
        assert np.mean(means[name]) == pytest.approx(average, abs=0.011)
        assert ranks[name] == pytest.approx(rank, abs=0.006), name


def test_one_art_stands_among_the_methods_at_a_time():
    z, plus = all_methods.ART.values()
    ranks = all_methods._ranks({"a": [3.0, 1.0], z: [2.0, 2.0], plus: [1.0, 3.0]})
    assert ranks == {"a": 1.5, z: 1.5, plus: 1.5}
    assert all_methods._ranks({"a": [1.0], plus: [2.0]}) == {"a": 1.0, plus: 1.0}
    assert all_methods._ranks({}) == {}


def test_rows_beyond_the_paper_come_last_and_have_no_rank():
    def record(method, variant, accuracy):
        keys = ("method", "variant", "accuracies")
        return {**dict(zip(keys, (method, variant, [accuracy]), strict=True)), **cell}

    cell = {"target": "BZR", "shots": 5}
    paper = [record("gin", "chosen", 0.5), record("art", "paper", 0.6), record("art", "plus", 0.7)]
    before = all_methods._accuracy_table(paper, "graph", ["BZR"]).splitlines()
    more = [record("beyond-paper", "blocks", 0.8), record("beyond-paper", "blocks-kernel", 0.9)]
    after = all_methods._accuracy_table([*paper, *more], "graph", ["BZR"]).splitlines()
    assert after[: len(before)] == before
    assert after[len(before) :] == [
        "| beyond the paper: blocks, prototype head | 80.00 ± 0.00 | 80.00 | - |",
        "| beyond the paper: blocks, kernel head | 90.00 ± 0.00 | 90.00 | - |",
    ]
