"""Episodes of a target are those of the library, in numbers of the members."""

from __future__ import annotations

import numpy as np

import artlas
from artlas_paper.transfer.episodes import Episodes


def test_episodes_are_renumbered_to_the_same_examples():
    labels = np.repeat([0, 1], [300, 40])
    episodes = Episodes.draw(labels, 5)
    drawn = artlas.evaluation.draw_episodes(labels)
    for ours, theirs in zip(episodes.drawn, drawn, strict=True):
        assert np.array_equal(episodes.members[ours.support], theirs.support)
        assert np.array_equal(episodes.members[ours.query], theirs.query)
    assert np.array_equal(episodes.labels, labels[episodes.members])
