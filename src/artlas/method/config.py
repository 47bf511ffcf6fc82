"""The settings of the model, checked when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from artlas import checks

UNIFORM = 1e9  # a measure_epsilon beside which no degree counts


@dataclass(frozen=True)
class ArtConfig:
    r"""Settings of SCGFM-ART; the defaults are the paper's.

    Where the paper is silent (temperatures, :math:`\epsilon_u`, widths, seed) they are those of the
    authors' published runs; :meth:`released` is their behaviour where it differs from the paper.

    bases: K; roles: M of each base; hidden: :math:`D_h`; layers: GIN layers;
    steps: Sinkhorn iterations; temperature: :math:`\tau_{sk}` that divides the logits;
    coverage_temperature: :math:`\tau_m`; responsibility_temperature: :math:`\tau_E`;
    measure_epsilon: :math:`\epsilon_u`; atlas: ``learned``, ``frozen`` (random, never trained) or
    ``tied`` (one relation in all K slots); top_k: bases mixed, ``None`` for all;
    logit_clamp: bound on \|logit / temperature\|, ``None`` for none;
    featureless: what stands in for absent node features, a ``constant`` one or the normalised
    ``degree``; seed: of the initial weights.

    Past the paper, and as it has it by default: diagonal, whether a role may be related to itself;
    pooling of z+, ``mixed`` by the one mixed coupling or ``each`` base by its own. A large
    ``measure_epsilon`` makes the measure uniform.
    """

    bases: int = 16
    roles: int = 32
    hidden: int = 64
    layers: int = 2
    steps: int = 20
    temperature: float = 0.1
    coverage_temperature: float = 0.1
    responsibility_temperature: float = 0.1
    measure_epsilon: float = 1e-8
    atlas: Literal["learned", "frozen", "tied"] = "learned"
    top_k: int | None = None
    logit_clamp: float | None = None
    featureless: Literal["constant", "degree"] = "constant"
    seed: int = 42
    diagonal: bool = False
    pooling: Literal["mixed", "each"] = "mixed"

    def __post_init__(self) -> None:
        # The upper ends are what the compiled kernels hold in registers and on the stack.
        for name, most in (("bases", 4096), ("roles", 128), ("hidden", 1024), ("layers", 16)):
            checks.integer(self, name, most=most)
        checks.integer(self, "steps", most=10_000)
        checks.integer(self, "seed", least=0)
        checks.positive(
            self,
            "temperature",
            "coverage_temperature",
            "responsibility_temperature",
            "measure_epsilon",
        )
        if self.top_k is not None:
            checks.integer(self, "top_k", most=self.bases)
        if self.logit_clamp is not None:
            checks.positive(self, "logit_clamp")
        checks.one_of(self, "atlas", ("learned", "frozen", "tied"))
        checks.one_of(self, "featureless", ("constant", "degree"))
        checks.one_of(self, "diagonal", (False, True))
        checks.one_of(self, "pooling", ("mixed", "each"))

    @classmethod
    def released(cls, **changes: Any) -> ArtConfig:
        """The published code's behaviour: top 8 bases mixed, logits clamped, degree as feature."""
        preset = cls(top_k=8, logit_clamp=20.0, featureless="degree")
        return replace(preset, **changes)

    @classmethod
    def few_roles(cls, **changes: Any) -> ArtConfig:
        """Eight bases of four roles of equal mass, each pooled for itself: see docs/atlas.md."""
        preset = cls(bases=8, roles=4, measure_epsilon=UNIFORM, diagonal=True, pooling="each")
        return replace(preset, **changes)

    @property
    def logit_scale(self) -> float:
        r""":math:`1 / (\sqrt{D_h}\,\tau_{sk})`."""
        return 1.0 / (math.sqrt(self.hidden) * self.temperature)
