"""Select records and format them as Markdown tables; shared by all studies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from artlas_paper.transfer.records import Record


def markdown_table(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """Format a header and rows of cells as a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in body)])


def where(records: Iterable[Record], **values: Any) -> list[Record]:
    """Return the records whose fields have the values given."""
    return [r for r in records if all(r[key] == value for key, value in values.items())]


def distinct(records: Sequence[Record], key: str, order: Sequence[Any] = ()) -> list[Any]:
    """Return the distinct values of a field: those in ``order`` first, the others sorted."""
    found = {record[key] for record in records}
    return [v for v in order if v in found] + sorted(found - set(order), key=str)


def mean_deviation(values: Sequence[float], form: str = ".2f") -> str:
    """Format the mean of values, one per seed, with their standard deviation in brackets."""
    mean = f"{np.mean(values):{form}}"
    return mean if len(values) == 1 else f"{mean} ({np.std(values, ddof=1):{form}})"
