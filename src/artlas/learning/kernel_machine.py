"""Fit the block kernel and its ridge regression together, and score rows with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from artlas.blocks.layout import Layout
from artlas.learning import block_weights, kernel_ridge, nystroem
from artlas.learning.block_kernel import BlockKernel, spread_out

_ROUNDING = 1e-5  # of a kernel in float32
_CHUNK = 2048
_SAMPLE = 500  # anchors that stand for all of them
_EQUAL = 64  # rows of every product where bits matter


class Settings(NamedTuple):
    """How to fit: see :class:`artlas.GraphClassifier`."""

    weights: Mapping[str, float] | None = None
    ridge: float | None = None
    exact_up_to: int = 5000
    landmarks: int = 4000
    random_state: int = 0


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """A fitted kernel with the regression's coefficients.

    coefficients: float64 [m, C], by anchor; intercept: [C]; anchors: int64 [m], which training
    rows the kernel's anchors are; familiar: float32, ascending, the largest kernel of a training
    row with another one that is an anchor.
    """

    kernel: BlockKernel
    coefficients: Tensor
    intercept: Tensor
    ridge: float
    anchors: Tensor
    familiar: Tensor

    def scores(self, rows: Tensor) -> Tensor:
        """Score rows [q, D], float64 [q, C]."""
        parts = [self.kernel.cross(part).double() for part in rows.split(_CHUNK)]
        return torch.cat([part @ self.coefficients for part in parts]) + self.intercept

    def novelty(self, rows: Tensor) -> Tensor:
        """Compute the share of training rows that had a nearer neighbour than rows [q, D] have."""
        return self._novelty(
            torch.cat([self.kernel.cross(part).amax(1) for part in rows.split(_CHUNK)])
        )

    def judge(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the scores [q, C] and novelty [q] of rows; a row's bits depend on it alone.

        In a matrix product they depend on its shape: here all have the same, filled up by zeros.
        """
        scores, near = [], []
        for part in rows.split(_EQUAL):
            filled = rows.new_zeros(_EQUAL, rows.shape[1])
            filled[: len(part)] = part
            cross = self.kernel.cross(filled)
            terms = [(cross.double() * column).sum(1) for column in self.coefficients.T]
            scores.append(torch.stack(terms, 1)[: len(part)])
            near.append(cross.amax(1)[: len(part)])
        return torch.cat(scores) + self.intercept, self._novelty(torch.cat(near))

    def _novelty(self, near: Tensor) -> Tensor:
        place = torch.searchsorted(self.familiar, near + _ROUNDING, right=True)
        return 1 - place.double() / len(self.familiar)

    def nearest(self, row: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Find the anchors most similar to a row [1, D]: their kernels, and their places."""
        near = self.kernel.cross(row)[0]
        return near.topk(min(count, len(near)))

    def contributions(self, row: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Split the scores of a row [1, D] by block, each [C], and what no block adds, [C].

        A block's part is relative to its mean over anchors, so that the rest is the scores of an
        average one: the classes' frequencies. Together they sum to the scores.
        """
        scaled, rest = self.kernel.scaled(row), self.intercept.clone()
        average = self.kernel.anchors[spread_out(len(self.anchors), _SAMPLE)]
        terms, found = self.kernel.by_block(scaled), {}
        for (name, term), (_, other) in zip(terms, self.kernel.by_block(average), strict=True):
            base = other.double().mean(0) @ self.coefficients
            found[name] = term[0].double() @ self.coefficients - base
            rest += base
        return found, rest


def fit(
    rows: Tensor, layout: Layout, targets: Tensor, sample_weights: Tensor, settings: Settings
) -> tuple[KernelMachine, Tensor]:
    """Fit to rows [n, D], targets [n, C] and positive weights [n].

    Returns the scores [n, C] too that every row gets from a regression fitted to all other rows.
    """
    if len(rows) <= settings.exact_up_to:
        anchors = torch.arange(len(rows))
        kernel = BlockKernel.fit(rows, layout, settings.weights)
        if settings.weights is None:
            kernel = block_weights.learned(kernel, targets, sample_weights)
        gram = kernel.gram()
        found = kernel_ridge.fit(gram, targets, sample_weights, settings.ridge)
        familiar = gram.fill_diagonal_(-1).amax(1)
    else:
        count = min(settings.landmarks, len(rows))
        random = np.random.default_rng(settings.random_state)
        anchors = torch.from_numpy(np.sort(random.choice(len(rows), count, replace=False)))
        kernel = BlockKernel.fit(rows, layout, settings.weights, anchors)
        if settings.weights is None:
            kernel = block_weights.learned(kernel, targets[anchors], sample_weights[anchors])
        found, nearest = nystroem.fit(kernel, rows, targets, sample_weights, settings.ridge)
        others = torch.ones(len(rows), dtype=torch.bool)
        others[anchors] = count == len(rows)  # without others, nothing is known to be far away
        familiar = nearest[others]
    familiar = familiar.sort().values
    # In the order in which a file keeps them: products then have the same bits after a load.
    coefficients = found.coefficients.contiguous()
    machine = KernelMachine(kernel, coefficients, found.intercept, found.ridge, anchors, familiar)
    return machine, found.left_out
