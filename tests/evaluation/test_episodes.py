"""Episodes equal those of the published protocol."""

from __future__ import annotations

import numpy as np
import pytest

from artlas.evaluation import Episode, draw_episodes, hash_episodes
from artlas.evaluation.episodes import draw_episode

# sha256(struct.pack("<8q", 2, 0, 1, 4, 2, 3, 4, 5)): each part's length, then its indices
STABLE = "8af9211735526c9ea11cb40ffbe48dee5011749673a1a3e968f9d517c00d4348"
LABELS = np.random.default_rng(0).permutation(np.repeat([3, 0, 7], [70, 55, 12]))


def published(labels, r, shots=5, queries=50):
    """Section 2.6 of the notes on the authors' code, as a plain loop over a list."""
    rng = np.random.default_rng(42 + r)
    support, query = [], []
    for label in sorted(set(labels.tolist())):
        members = [i for i, value in enumerate(labels.tolist()) if value == label]
        rng.shuffle(members)
        cut = max(1, len(members) - 1) if len(members) < shots else shots
        support += members[:cut]
        query += members[cut:][:queries]
    return support, query


def test_same_numbers_as_the_published_loop():
    episodes = draw_episodes(LABELS)
    assert len(episodes) == 50
    for r, episode in enumerate(episodes):
        support, query = published(LABELS, r)
        assert episode.support.tolist() == support
        assert episode.query.tolist() == query


def test_first_episode_as_numpy_draws_it():
    # default_rng(42).shuffle(arange(6)), then the same generator on 6 ... 11
    episode = draw_episode([0] * 6 + [1] * 6, seed=42)
    assert episode.support.tolist() == [3, 2, 5, 4, 1, 8, 10, 6, 7, 9]
    assert episode.query.tolist() == [0, 11]


@pytest.mark.parametrize("r", range(5))
def test_support_and_query_are_disjoint_and_of_the_requested_size(r):
    episode = draw_episodes(LABELS)[r]
    support, query = LABELS[episode.support], LABELS[episode.query]
    assert not set(episode.support) & set(episode.query)
    assert len(set(episode.support)) == len(episode.support)
    assert len(set(episode.query)) == len(episode.query)
    assert {c: int((support == c).sum()) for c in (0, 3, 7)} == {0: 5, 3: 5, 7: 5}
    assert {c: int((query == c).sum()) for c in (0, 3, 7)} == {0: 50, 3: 50, 7: 7}


def test_deterministic_whatever_numpy_did_before():
    before = hash_episodes(draw_episodes(LABELS))
    np.random.default_rng().random(10)
    assert hash_episodes(draw_episodes(LABELS)) == before
    assert hash_episodes(draw_episodes(LABELS, seed=43)) != before


@pytest.mark.parametrize(
    ("members", "support", "query"), [(1, 1, 0), (2, 1, 1), (4, 3, 1), (5, 5, 0), (6, 5, 1)]
)
def test_small_classes(members, support, query):
    labels = np.repeat([0, 1], [20, members])
    episode = draw_episode(labels, seed=42)
    assert int((labels[episode.support] == 1).sum()) == support
    assert int((labels[episode.query] == 1).sum()) == query


def test_episodes_without_a_query_are_left_out_and_none_at_all_is_an_error():
    with pytest.raises(ValueError, match=r"No episode has a query.*lower shots"):
        draw_episodes([0] * 5 + [1] * 5)
    assert len(draw_episodes([0] * 5 + [1] * 6)) == 50


def test_hash_is_stable_and_sees_the_border_between_support_and_query():
    ids = np.arange(6)
    one = [Episode(ids[:2], ids[2:])]
    assert hash_episodes(one) == STABLE
    assert hash_episodes([Episode(ids[:2].astype(np.int32), ids[2:])]) == STABLE
    assert hash_episodes([Episode(ids[:3], ids[3:])]) != STABLE
    assert hash_episodes([Episode(ids[1::-1], ids[2:])]) != STABLE


def test_malformed_input():
    with pytest.raises(ValueError, match=r"one label per example; got shape \[2, 2\]"):
        draw_episodes([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="at least one shot"):
        draw_episodes(LABELS, shots=0)
