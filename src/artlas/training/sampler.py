"""Assign graphs to batches, as a pure function of seed, epoch and domain sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Member = tuple[str, int]  # a domain, and the number of a graph in it


@dataclass(frozen=True)
class BalancedSampler:
    """Batches with equally many graphs of every domain; an epoch has as many graphs as all domains.

    In every round the domains take turns in a new order and give one graph each. A domain without
    graphs left is shuffled and starts again. So small domains repeat, large ones are cut short,
    and no graph comes twice within one pass through its domain.
    """

    sizes: Mapping[str, int]
    batch: int = 64
    seed: int = 42

    @property
    def batches(self) -> int:
        """The number of batches in an epoch; the last may be smaller."""
        return -(-sum(self.sizes.values()) // self.batch)

    def epoch(self, number: int) -> Iterator[list[Member]]:
        """Yield the batches of an epoch, counted from 1."""
        rng, total = random.Random(self.seed + number), sum(self.sizes.values())
        names = list(self.sizes)
        pools: dict[str, list[int]] = {}
        for name in names:
            pools[name] = list(range(self.sizes[name]))
            rng.shuffle(pools[name])
        left, drawn = {name: list(pools[name]) for name in names}, list[Member]()
        while len(drawn) < total:
            rng.shuffle(names)
            for name in names[: total - len(drawn)]:
                if not left[name]:
                    rng.shuffle(pools[name])
                    left[name] = list(pools[name])
                drawn.append((name, left[name].pop()))
        return (drawn[i : i + self.batch] for i in range(0, total, self.batch))
