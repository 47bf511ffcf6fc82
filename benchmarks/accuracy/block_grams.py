"""The classifier with any of its blocks, from kernels that are computed once per split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas.blocks import Layout
from artlas.learning import kernel_ridge
from artlas.learning.block_kernel import BlockKernel

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
        within = torch.stack([term for _, term in equal.by_block(equal.anchors)])
        within = (within + within.transpose(1, 2)) / 2
        within.diagonal(dim1=1, dim2=2).fill_(1)
        across = torch.stack([term for _, term in equal.by_block(rows)])
        return cls(kernel.names, within, across)

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
        found = kernel_ridge.fit(self._mean(self.within, places), targets, weights)
        scores = self._mean(self.across, places).double() @ found.coefficients + found.intercept
        return np.asarray(classes[scores.argmax(1).numpy()])

    def _mean(self, grams: Tensor, places: list[int]) -> Tensor:
        total = torch.zeros_like(grams[0])
        for place in places:
            total += grams[place]
        return total / len(places)
