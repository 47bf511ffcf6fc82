"""The forms of the vector of blocks: the full one, a compact one, and other widths."""

from __future__ import annotations

from dataclasses import dataclass

from artlas import checks
from artlas.blocks.layout import Block, Layout, numbered
from artlas.errors import quoted

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
# Columns of a compact vector, at most; 256 in all, of graphs with features.
COMPACT = {"quantiles": 24, "features": 24, "waves_sum": 24, "waves_mean": 24}
COMPACT_COLOURS = 16


@dataclass(frozen=True)
class VectorConfig:
    """Settings of a vector of blocks.

    rounds: of colour refinement, counting the start; buckets: into which the colours of a round
    are hashed; compact: project every block to a few columns, at most 256 in all with four rounds.
    """

    rounds: int = 4
    buckets: int = 512
    compact: bool = False

    def __post_init__(self) -> None:
        checks.integer(self, "rounds", most=64)
        checks.integer(self, "buckets", most=1 << 20)
        checks.one_of(self, "compact", (False, True))

    def full_layout(self, num_features: int) -> Layout:
        """Return the blocks before projection, of graphs whose nodes have so many features."""
        names = DESCRIPTORS
        blocks = [
            Block("extent", ("nodes", "edges", "density", *(f"sum_{name}" for name in names))),
            Block("profile", (*(f"mean_{n}" for n in names), *(f"deviation_{n}" for n in names))),
            Block("quantiles", tuple(f"{n}_{q}" for n in names for q in range(QUANTILES))),
        ]
        if num_features:
            kinds = ("x", "ax", "x_ax", "x_lx")
            columns = (f"{kind}_{j}" for kind in kinds for j in range(num_features))
            blocks.append(Block("features", tuple(columns)))
        blocks += [numbered("waves_sum", WAVES), numbered("waves_mean", WAVES)]
        for name in ("colours", "shapes"):
            first = 0 if num_features or name == "shapes" else 1  # without features: one colour
            for r in range(first, self.rounds):
                blocks.append(numbered(f"{name}_{r}", self.buckets, FLOOR))
        return Layout(tuple(blocks))

    def layout(self, num_features: int) -> Layout:
        """Return the blocks of vectors of graphs whose nodes have so many features."""
        full = self.full_layout(num_features)
        if not self.compact:
            return full
        return Layout(tuple(map(_compact, full.blocks)))


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
