"""Labelled vectors of two blocks, shared by the tests of the block kernel's estimators."""

from __future__ import annotations

import numpy as np

BLOCKS = {"shape": 4, "noise": 7}


def vectors(count, classes=2, seed=0, spread=0.6):
    """Make vectors float32 [count, 11] and classes [count] that four of the columns tell."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    centres = np.random.default_rng(99).normal(size=(classes, 4))
    X = rng.normal(size=(count, 11))
    X[:, :4] = centres[labels] + spread * rng.normal(size=(count, 4))
    return (X * 10.0 ** np.arange(-5, 6)).astype(np.float32), labels
