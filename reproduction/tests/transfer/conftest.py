"""Small folds that the tests of transfer share."""

from __future__ import annotations

import pytest

import artlas
from artlas import PretrainConfig
from artlas_paper.transfer.baseline_folds import BaselineFolds
from artlas_paper.transfer.folds import Folds


@pytest.fixture
def small(three, tmp_path):
    """Folds of three small datasets, one epoch and a small atlas."""
    config = artlas.ArtConfig(bases=4, roles=6, hidden=16)
    return Folds("graph", three, tmp_path / "runs", PretrainConfig(epochs=1), config)


@pytest.fixture
def small_baselines(small):
    return BaselineFolds(small, 1)


@pytest.fixture
def episodes_of_bzr():
    """The hash of the published episodes of BZR, which is the same on every machine."""
    return "7d08fdeaa4de7ef042025fb7855695008405247f8082c2dd59973b61eab4483a"
