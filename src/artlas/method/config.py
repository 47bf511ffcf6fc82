"""The settings of the model, validated on construction."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from artlas import checks
from artlas.kernels.structure import Mixing, Sinkhorn

UNIFORM = 1e9  # a measure_epsilon so large that degrees no longer matter


@dataclass(frozen=True)
class ArtConfig:
    r"""Settings of SCGFM-ART; the defaults are the paper's.

    Where the paper is silent (temperatures, :math:`\epsilon_u`, widths, seed) the defaults are
    those of the authors' published runs. :meth:`released` has their code's behaviour where it
    differs from the paper.

    bases: K; roles: M of each base; hidden: :math:`D_h`; layers: number of GIN layers; steps:
    number of Sinkhorn iterations; temperature: :math:`\tau_{sk}`, which divides the logits;
    coverage_temperature: :math:`\tau_m`; responsibility_temperature: :math:`\tau_E`;
    measure_epsilon: :math:`\epsilon_u`, which makes the measure uniform if it is large; atlas:
    ``learned``, ``frozen`` (random, never trained) or ``tied`` (all bases share one relation);
    top_k: number of bases that are mixed, ``None`` for all; logit_clamp: bound on
    \|logit / temperature\|, ``None`` for no bound; featureless: node feature of graphs that have
    none, a ``constant`` 1 or the normalised ``degree``; seed: of the initial weights.

    Not in the paper: diagonal, whether a role may be related to itself; pooling, whether z+ is
    pooled by the ``mixed`` coupling or by ``each`` base's own.
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
        # The compiled kernels keep this much in registers and on the stack.
        for name, most in (("bases", 4096), ("roles", 128), ("hidden", 1024), ("layers", 16)):
            checks.integer(self, name, most=most)
        checks.integer(self, "steps", most=10_000)
        checks.integer(self, "seed", least=0)
        checks.positive(self, "temperature", "coverage_temperature")
        checks.positive(self, "responsibility_temperature", "measure_epsilon")
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
        """Return the published code's settings: 8 bases mixed, clamped logits, degree feature."""
        preset = cls(top_k=8, logit_clamp=20.0, featureless="degree")
        return replace(preset, **changes)

    @classmethod
    def few_roles(cls, **changes: Any) -> ArtConfig:
        """Return settings with 8 bases of 4 equal-mass roles, pooled separately: docs/atlas.md."""
        preset = cls(bases=8, roles=4, measure_epsilon=UNIFORM, diagonal=True, pooling="each")
        return replace(preset, **changes)

    @property
    def sinkhorn_options(self) -> Sinkhorn:
        r"""The options of every kernel that computes couplings.

        scale: :math:`1 / (\sqrt{D_h}\,\tau_{sk})`.
        """
        scale = 1.0 / (math.sqrt(self.hidden) * self.temperature)
        return {"scale": scale, "clamp": self.logit_clamp, "steps": self.steps}

    @property
    def mixing_options(self) -> Mixing:
        """The options of every kernel that mixes the couplings of several bases."""
        return {
            **self.sinkhorn_options,
            "temperature": self.responsibility_temperature,
            "top_k": self.top_k,
        }
