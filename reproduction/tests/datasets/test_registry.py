"""What is known of the datasets, and that wrong counts are named."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_datasets import TINY, TINY_SENTENCE

from artlas import Graphs
from artlas_paper.datasets.registry import REGISTRY, DatasetError, Statistics, check, counts, find


def tiny(y=(0, 1, 0), width=2):
    pairs = [
        (3, np.array([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])),
        (2, np.array([[0, 1], [1, 0]])),
        (3, np.array([[0, 1, 1, 2], [1, 0, 2, 1]])),
    ]
    return Graphs.from_edges(pairs, x=np.ones((8, width)), y=np.array(y))


def test_names():
    assert list(REGISTRY) == [
        "NCI1",
        "BZR",
        "COLLAB",
        "IMDB-BINARY",
        "PROTEINS",
        "COLORS-3",
        "COLORS-3-clean",
        "ogbg-molhiv",
        "Cora",
        "CiteSeer",
        "PubMed",
        "Computers",
        "Photo",
        "Reddit",
        "ogbn-arxiv",
        "digits",
        "families",
        "networks",
    ]


def test_every_entry_says_where_it_is_from_and_on_what_terms():
    for entry in REGISTRY.values():
        assert entry.licence
        assert entry.source
        assert bool(entry.files) == (entry.role != "built-in")
    assert REGISTRY["ogbg-molhiv"].licence == "MIT"
    assert REGISTRY["ogbn-arxiv"].licence == "ODC-BY"
    assert REGISTRY["NCI1"].licence == "no licence stated by the collection"


def test_arxiv_knows_citations_and_pairs():
    numbers = REGISTRY["ogbn-arxiv"].statistics
    assert (numbers.citations, numbers.edges) == (1_166_243, 2 * 1_157_799)


def test_reddit_is_as_in_the_paper():
    assert REGISTRY["Reddit"].statistics == Statistics(1, 41, 232_965, 114_615_892, 602)


@pytest.mark.parametrize("name", ["cora", "CORA", " Cora "])
def test_the_case_of_a_name_does_not_matter(name):
    assert find(name).name == "Cora"


def test_an_unknown_name_is_answered_by_the_closest_and_all():
    with pytest.raises(DatasetError, match=r"no dataset 'PROTEIN'.*mean PROTEINS\?") as caught:
        find("PROTEIN")
    assert all(name in str(caught.value) for name in REGISTRY)
    with pytest.raises(DatasetError, match=r"no dataset 'zzzzzz'\. Known are"):
        find("zzzzzz")


def test_check_tells_the_counts():
    assert check(TINY, tiny()) == TINY_SENTENCE
    assert counts(tiny()) == {"graphs": 3, "classes": 2, "nodes": 8, "edges": 6, "features": 2}


def test_check_names_every_count_that_differs():
    wrong = Statistics(4, 3, 2.67, 2.5, 5)
    with pytest.raises(DatasetError) as caught:
        check(dataclasses.replace(TINY, statistics=wrong), tiny())
    for part in (
        "3 graphs instead of 4",
        "2 classes instead of 3",
        "2.00 edges on average instead",
        "2 features instead of 5",
        "TUDataset/TINY/raw",
    ):
        assert part in str(caught.value)


def test_check_refuses_labels_with_gaps():
    with pytest.raises(DatasetError, match="labels up to 5 in 2 classes"):
        check(TINY, tiny(y=(0, 5, 0)))


def test_check_refuses_several_graphs_at_node_level():
    numbers = Statistics(1, 2, 8, 12, 2)
    entry = dataclasses.replace(TINY, level="node", statistics=numbers)
    with pytest.raises(DatasetError, match="3 graphs instead of 1"):
        check(entry, tiny())


def test_features_may_be_missing_only_where_their_file_is_optional():
    bare = tiny().with_features(None)
    with pytest.raises(DatasetError, match="0 features instead of 2"):
        check(TINY, bare)
    entry = dataclasses.replace(TINY, features_file="TINY_node_labels.txt")
    assert check(entry, bare).endswith(
        "as in the paper; the 2 features of TUDataset/TINY/raw/TINY_node_labels.txt are missing"
    )
