"""Cached vectors of a target: kept, recomputed when damaged, and never those of another model."""

from __future__ import annotations

import dataclasses

import numpy as np

import artlas
from artlas_paper import datasets
from artlas_paper.transfer.episodes import Episodes, labels_of
from artlas_paper.transfer.target import VARIANTS, Target


def test_embeddings_are_kept_and_stale_ones_are_not_used(small):
    labels = labels_of(small, "BZR")
    episodes = Episodes.draw(labels, 5)
    place = Target("BZR", small.root, "graph", small.runs / "e", episodes.members)
    model = artlas.ART(small.config)
    kinds = VARIANTS["graph"]
    first = place.embed(model, kinds["paper"])
    assert len(list((small.runs / "e").iterdir())) == 1
    (path,) = (small.runs / "e").iterdir()
    path.write_bytes(path.read_bytes()[:-20])  # damaged
    np.testing.assert_array_equal(place.embed(model, kinds["paper"]), first)
    other = artlas.ART(dataclasses.replace(small.config, seed=7))
    assert not np.array_equal(place.embed(other, kinds["paper"]), first)
    graphs = datasets.load("BZR", small.root, verbose=False)[episodes.members]
    np.testing.assert_array_equal(first, model.embed(graphs, "paper"))
    np.testing.assert_array_equal(place.embed(model, kinds["q"]), first[:, :4])
    np.testing.assert_array_equal(place.embed(model, kinds["H"]), first[:, 4:])
