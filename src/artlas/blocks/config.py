"""The forms of the vector of blocks: the full one, a compact one, and other widths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from artlas import checks
from artlas.blocks.layout import Block, Layout, numbered
from artlas.errors import quoted

VERSION = 1  # of the definition of the vector: raise it when any value changes
DESCRIPTORS = (
    "degree",
    "neighbour_degree_mean",
    "neighbour_degree_sum",
    "triangles",
    "clustering",
    "core",
    "return_2",
    "return_3",
    "return_4",
)
QUANTILES = 8
WAVES = 256
FLOOR = 0.5  # of the deviation of counts of colours, chosen on the development sets
# Columns of a block of a compact vector, at most: 244 in all with four rounds.
COMPACT = {"quantiles": 40, "waves": 64}
COMPACT_COLOURS = 20


@dataclass(frozen=True)
class VectorConfig:
    """Settings of a vector of blocks.

    rounds: of colour refinement, counting the start; buckets: into which the colours of a round
    are hashed; compact: project every block to a few columns, 244 in all with four rounds.
    """

    rounds: int = 4
    buckets: int = 512
    compact: bool = False

    def __post_init__(self) -> None:
        checks.integer(self, "rounds", most=64)
        checks.integer(self, "buckets", most=1 << 20)
        checks.one_of(self, "compact", (False, True))

    @property
    def full_layout(self) -> Layout:
        """The blocks before projection."""
        return _full_layout(self.rounds, self.buckets)

    @property
    def layout(self) -> Layout:
        """The blocks of vectors."""
        full = self.full_layout
        return Layout(tuple(map(_compact, full.blocks))) if self.compact else full


@lru_cache(maxsize=4)  # as naming thousands of columns takes longer than embedding a small graph
def _full_layout(rounds: int, buckets: int) -> Layout:
    quantiles = (f"{name}_{q}" for name in DESCRIPTORS for q in range(QUANTILES))
    blocks = [Block("quantiles", tuple(quantiles)), numbered("waves", WAVES)]
    for name, first in (("colours", 1), ("shapes", 0)):
        for r in range(first, rounds):
            blocks.append(numbered(f"{name}_{r}", buckets, FLOOR))
    return Layout(tuple(blocks))


def _compact(block: Block) -> Block:
    most = COMPACT_COLOURS if block.floor else COMPACT.get(block.name, len(block.columns))
    return block if len(block.columns) <= most else numbered(block.name, most)


PRESETS = {"full": VectorConfig(), "compact": VectorConfig(compact=True)}


def as_config(preset: str | VectorConfig) -> VectorConfig:
    """Return the settings that a preset's name stands for; settings stay as they are."""
    if isinstance(preset, VectorConfig):
        return preset
    if not isinstance(preset, str) or preset not in PRESETS:
        known = " or ".join(map(repr, PRESETS))
        raise ValueError(f"A preset is {known}, or a VectorConfig; got {quoted(preset)}.")
    return PRESETS[preset]


def as_preset(config: VectorConfig) -> str | VectorConfig:
    """Return the name of these settings, or the settings where they have none."""
    return next((name for name, known in PRESETS.items() if known == config), config)
