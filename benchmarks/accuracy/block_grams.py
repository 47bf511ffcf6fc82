"""The classifier with any of its blocks, from kernels that are computed once per split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas.blocks import Layout
from artlas.learning import block_weights, kernel_ridge
from artlas.learning.block_kernel import BlockKernel, spread_out

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BlockGrams:
    """The kernels of every block, of the training graphs and of the test graphs with them.

    within: float32 [B, n, n]; across: float32 [B, m, n]; names: of blocks that vary on training.
    """

    names: tuple[str, ...]
    within: Tensor
    across: Tensor

    @classmethod
    def of(cls, vectors: Tensor, layout: Layout, train: Numbers, test: Numbers) -> BlockGrams:
        """Compare the training graphs of a split, and the test graphs with them."""
        kernel = BlockKernel.fit(vectors[torch.from_numpy(train)], layout)
        equal = replace(kernel, weights=(1.0,) * len(kernel.names))
        rows = equal.scaled(vectors[torch.from_numpy(test)])
        across = torch.stack([term for _, term in equal.by_block(rows)])
        return cls(kernel.names, block_weights.grams_of(kernel, torch.arange(len(train))), across)

    def predict(self, labels: Numbers, chosen: Sequence[str]) -> Numbers:
        """Learn from the training graphs' labels by these blocks alone, and predict the others.

        Without any block that varies, this is the most frequent class.
        """
        places = [self.names.index(name) for name in chosen if name in self.names]
        classes, own = np.unique(labels, return_inverse=True)
        if not places:
            most = classes[np.bincount(own).argmax()]
            return np.full(self.across.shape[1], most)
        targets = torch.eye(len(classes), dtype=torch.float64)[torch.from_numpy(own)]
        weights = torch.ones(len(labels), dtype=torch.float64)
        part = spread_out(len(labels), block_weights.SAMPLE)
        sample = self.within[places][:, part][:, :, part]
        shares = block_weights.choose(sample, targets[part], weights[part])
        found = kernel_ridge.fit(self._mix(self.within, places, shares), targets, weights)
        across = self._mix(self.across, places, shares).double()
        scores = across @ found.coefficients + found.intercept
        return np.asarray(classes[scores.argmax(1).numpy()])

    def _mix(self, grams: Tensor, places: list[int], shares: Sequence[float]) -> Tensor:
        total = torch.zeros_like(grams[0])
        for place, share in zip(places, shares, strict=True):
            total += share * grams[place]
        return total
