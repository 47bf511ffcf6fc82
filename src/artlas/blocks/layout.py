"""Where the named blocks of a vector lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from artlas.errors import raise_graph_error


@dataclass(frozen=True)
class Layout:
    """Consecutive blocks of columns, each with a name and names for its columns.

    ``layout["degree"]`` is the slice of a block's columns, and ``layout.columns`` names them all,
    block by block. A layout is built from the names of each block's columns.
    """

    blocks: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of_widths(cls, widths: Mapping[str, int]) -> Layout:
        """Build from the width of every block; columns are numbered."""
        return cls(tuple((name, tuple(map(str, range(n)))) for name, n in widths.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The blocks' names, in order."""
        return tuple(name for name, _ in self.blocks)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of every block."""
        return tuple(len(columns) for _, columns in self.blocks)

    @property
    def width(self) -> int:
        """The number of columns of all blocks together."""
        return sum(self.widths)

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of every column: the block's, and the column's own."""
        return tuple(f"{name}_{column}" for name, columns in self.blocks for column in columns)

    def __iter__(self) -> Iterator[tuple[str, slice]]:
        """Iterate over the blocks: name, slice of columns."""
        ends = list(accumulate(self.widths))
        starts = [0, *ends[:-1]]
        return zip(self.names, map(slice, starts, ends), strict=True)

    def __getitem__(self, name: str) -> slice:
        """Return the columns of a block."""
        for known, columns in self:
            if known == name:
                return columns
        fix = f"choose one of {', '.join(self.names)}"
        raise_graph_error("no block has this name", f"{name!r}", fix)
