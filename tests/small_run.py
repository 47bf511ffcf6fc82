"""A small training run for tests, which a process that is killed can resume."""

from __future__ import annotations

import numpy as np
import torch
from cases import random_dense

import artlas
from artlas import PretrainConfig, pretrain

SMALL = artlas.ArtConfig(bases=4, roles=6, hidden=16)
LONG = PretrainConfig(epochs=60, batch=8, checkpoint_every=3)


def domains(seed=0):
    rng = np.random.default_rng(seed)

    def some(count, low, high, p):
        return artlas.Graphs.from_scipy(
            [random_dense(int(rng.integers(low, high)), p, rng).astype(float) for _ in range(count)]
        )

    return {"sparse": some(30, 8, 20, 0.15), "dense": some(12, 5, 12, 0.7)}


def train_and_resume(out):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # PyTorch's sums depend on the number
    try:
        return pretrain(domains(), SMALL, LONG, out, resume=out is not None)
    finally:
        torch.set_num_threads(threads)
