"""Where the named blocks of a vector lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from artlas.errors import raise_graph_error


class Block(NamedTuple):
    """A block: its name, names of its columns, and the least deviation to divide a column by.

    Standardising divides columns by their deviation. Counts of hashed colours have a floor:
    without it, colours that hardly ever occur would outweigh all others.
    """

    name: str
    columns: tuple[str, ...]
    floor: float = 0.0


@dataclass(frozen=True)
class Layout:
    """Consecutive blocks of columns.

    ``layout["quantiles"]`` is the slice of a block's columns, and ``layout.columns`` names them
    all, block by block.
    """

    blocks: tuple[Block, ...]

    @classmethod
    def of_widths(cls, widths: Mapping[str, int]) -> Layout:
        """Build from the width of every block; columns are numbered."""
        return cls(tuple(numbered(name, width) for name, width in widths.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The blocks' names, in order."""
        return tuple(block.name for block in self.blocks)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of every block."""
        return tuple(len(block.columns) for block in self.blocks)

    @property
    def width(self) -> int:
        """The number of columns of all blocks together."""
        return sum(self.widths)

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of every column: the block's, and the column's own."""
        return tuple(f"{block.name}_{column}" for block in self.blocks for column in block.columns)

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


def numbered(name: str, width: int, floor: float = 0.0) -> Block:
    """Make a block whose columns are numbered from 0."""
    return Block(name, tuple(map(str, range(width))), floor)
