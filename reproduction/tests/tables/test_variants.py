"""Tables of variants: averages, the paper's row, and paired differences."""

from __future__ import annotations

import pytest

from artlas_paper.tables import variants
from artlas_paper.tables.accuracies import difference


def record(target, variant, values, seed=1, method="art"):
    return {
        "target": target,
        "method": method,
        "variant": variant,
        "seed": seed,
        "shots": 5,
        "accuracies": values,
    }


def test_tables_average_and_pair():
    records = [
        record("BZR", "q", [0.5, 0.7], 1),
        record("BZR", "q", [0.7, 0.9], 2),
        record("BZR", "sum", [0.4, 0.8], None, "control"),
    ]
    text = variants.table(records, ["BZR"])
    assert "| paper | 62.36 | 62.36 |" in text
    assert "| art q | 70.00 (7.07) | 70.00 |" in text
    mean, error = difference(records, ("art", "q"), ("control", "sum"), ["BZR"])
    assert mean == pytest.approx(10)
    assert error == pytest.approx(10 / 2**0.5)
