"""Columns of an Arrow table as NumPy arrays: lists as their lengths and one flat array."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from artlas.errors import raise_read_error


@dataclass(frozen=True)
class Lists:
    """One list a row: their lengths, int64 [rows], and what they hold, one after the other."""

    lengths: NDArray[np.int64]
    inner: Lists | None
    flat: NDArray[Any]

    @property
    def depth(self) -> int:
        return 1 if self.inner is None else 1 + self.inner.depth


class Table:
    """The columns of a file, taken apart; errors name the row."""

    def __init__(self, path: Path, table: Any, arrow: Any) -> None:
        self.path, self.table, self.arrow = path, table, arrow
        self.rows: int = table.num_rows

    def raise_read_error(self, row: int, wrong: str, got: str, fix: str) -> NoReturn:
        raise_read_error(self.path, f"row {row}: {wrong}", got, fix)

    def has(self, name: str) -> bool:
        return name in self.table.column_names

    def scalars(self, name: str) -> NDArray[Any]:
        """A column of one number a row."""
        return self._numbers(self.table[name].chunks, name, np.arange(self.rows))

    def lists(self, name: str, text: bool = False) -> Lists:
        """A column of lists of numbers, or of lists of lists."""
        return self._lists(self.table[name].chunks, name, np.arange(self.rows), text)

    def is_list(self, name: str) -> bool:
        return self._is_list(self.table.schema.field(name).type)

    def _is_list(self, kind: Any) -> bool:
        types = self.arrow.types
        return bool(
            types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        )

    def _lists(self, chunks: list[Any], name: str, owner: Any, text: bool) -> Lists:
        self._check_nulls(chunks, name, owner)
        kind = chunks[0].type
        if not self._is_list(kind):
            raise_read_error(
                self.path, f"{name} is not a list in every row", str(kind), "store lists"
            )
        if self.arrow.types.is_fixed_size_list(kind):
            lengths = np.full(sum(map(len, chunks)), kind.list_size, dtype=np.int64)
        else:
            parts = [np.diff(chunk.offsets.to_numpy()) for chunk in chunks]
            lengths = np.concatenate(parts).astype(np.int64)
        owner, inner = np.repeat(owner, lengths), [chunk.flatten() for chunk in chunks]
        if self._is_list(kind.value_type):
            lists = self._lists(inner, name, owner, text)
            return Lists(lengths, lists, lists.flat)
        return Lists(lengths, None, self._numbers(inner, name, owner, text))

    def _check_nulls(self, chunks: list[Any], name: str, owner: Any) -> None:
        if any(chunk.null_count for chunk in chunks):
            nulls = np.concatenate([c.is_null().to_numpy(zero_copy_only=False) for c in chunks])
            fix = "fill the gaps or leave the row out"
            self.raise_read_error(int(owner[nulls.argmax()]), f"{name} has a null", "null", fix)

    def _numbers(self, chunks: list[Any], name: str, owner: Any, text: bool = False) -> Any:
        self._check_nulls(chunks, name, owner)
        kind, types = chunks[0].type, self.arrow.types
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        string = text and (types.is_string(kind) or types.is_large_string(kind))
        if not (number or string):
            if types.is_null(kind) and len(owner) == 0:
                return np.empty(0, dtype=np.int64)
            raise_read_error(self.path, f"{name} does not hold numbers", str(kind), "store numbers")
        return np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in chunks])
