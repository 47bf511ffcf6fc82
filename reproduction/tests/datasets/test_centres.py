"""The choice of centre nodes: the published procedure, step by step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import artlas
from artlas_paper.datasets.centres import choose_centres


def test_centres_are_capped_per_class_and_repeatable():
    labels = np.repeat([2, 0, 1, -1], [500, 4, 301, 50])
    chosen = choose_centres(labels)
    assert np.bincount(labels[chosen]).tolist() == [4, 300, 300]
    assert len(set(chosen.tolist())) == 604
    assert np.array_equal(chosen, choose_centres(torch.from_numpy(labels)))
    assert not np.array_equal(chosen, choose_centres(labels, seed=43))
    # the published procedure, step by step
    rng, wanted = np.random.default_rng(42), []
    wanted += np.arange(500, 504).tolist()
    wanted += rng.choice(np.arange(504, 805), 300, replace=False).tolist()
    wanted += rng.choice(np.arange(500), 300, replace=False).tolist()
    rng.shuffle(wanted)
    assert chosen.tolist() == wanted
    assert choose_centres(labels, None).tolist() == list(range(805))
    with pytest.raises(artlas.GraphError, match="one integer per node"):
        choose_centres(labels.astype(float))
