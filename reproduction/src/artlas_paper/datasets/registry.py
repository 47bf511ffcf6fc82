"""Datasets by name: where their files lie, and the counts that the paper states."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from artlas.errors import GraphError
from artlas.graphs.collection import Graphs
from artlas_paper.protocol import SOURCES, Level

Role = Literal["source", "target", "built-in"]
Family = Literal["TU", "Planetoid", "Amazon", "OGB", "Reddit", "built-in"]

UNSTATED = "no licence stated by the collection"
RESEARCH = "no licence stated; handed out for research"


class DatasetError(GraphError):
    """A dataset is absent, incomplete or not the paper's; the message says how to fix it."""


@dataclass(frozen=True)
class Statistics:
    """Counts in the paper's dataset tables; nodes and edges are None where nothing is compared.

    At graph level, ``nodes`` and ``edges`` are means to two decimals, an edge counted once; at node
    level they are the nodes and the stored entries, an edge counted in both directions.
    ``citations`` is the paper's number where it does not count stored entries.
    """

    graphs: int
    classes: int
    nodes: float | None
    edges: float | None
    features: int
    citations: int | None = None


@dataclass(frozen=True)
class Entry:
    """One dataset: ``files`` and ``optional`` lie in ``folder`` below the data root.

    ``archive`` is the zip that its files come in, ``features_file`` the optional file without
    which it has no features, ``base`` the dataset from which it is made by dropping column 0.
    """

    name: str
    level: Level
    family: Family
    folder: str
    files: tuple[str, ...]
    optional: tuple[str, ...]
    licence: str
    source: str
    statistics: Statistics
    archive: str | None = None
    features_file: str | None = None
    base: str | None = None

    @property
    def role(self) -> Role:
        """Whether the paper pretrains on it, only evaluates on it, or does not have it."""
        if self.family == "built-in":
            return "built-in"
        return "source" if self.name in SOURCES[self.level] else "target"


def _tu(name: str, numbers: Statistics, *extra: str, base: str | None = None) -> Entry:
    stem = base or name
    parts = ("A", "graph_indicator", "graph_labels", *extra)
    return Entry(
        name,
        "graph",
        "TU",
        f"TUDataset/{stem}/raw",
        tuple(f"{stem}_{part}.txt" for part in parts),
        (),
        UNSTATED,
        "TUDataset collection (Morris et al. 2020)",
        numbers,
        f"{stem}.zip",
        base=base,
    )


def _planetoid(name: str, numbers: Statistics) -> Entry:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    return Entry(
        name,
        "node",
        "Planetoid",
        f"Planetoid/{name}/raw",
        tuple(f"ind.{name.lower()}.{part}" for part in parts),
        (),
        RESEARCH,
        "Planetoid (Yang et al. 2016)",
        numbers,
    )


def _amazon(name: str, numbers: Statistics) -> Entry:
    return Entry(
        name,
        "node",
        "Amazon",
        f"Amazon/{name}/raw",
        (f"amazon_electronics_{name.lower()}.npz",),
        (),
        RESEARCH,
        "Amazon co-purchases (Shchur et al. 2018)",
        numbers,
    )


def _built_in(name: str, level: Level, source: str, licence: str, numbers: Statistics) -> Entry:
    return Entry(name, level, "built-in", "", (), (), licence, source, numbers)


_ENTRIES = (
    _tu("NCI1", Statistics(4_110, 2, 29.87, 32.30, 37), "node_labels"),
    _tu("BZR", Statistics(405, 2, 35.75, 38.36, 56), "node_labels", "node_attributes"),
    _tu("COLLAB", Statistics(5_000, 3, 74.49, 2_457.22, 0)),
    _tu("IMDB-BINARY", Statistics(1_000, 2, 19.77, 96.53, 0)),
    _tu("PROTEINS", Statistics(1_113, 2, 39.06, 72.82, 4), "node_labels", "node_attributes"),
    _tu("COLORS-3", Statistics(10_500, 11, 61.31, 91.03, 5), "node_attributes"),
    # Column 0 of COLORS-3 is the ground truth of its attention: its sum is the label.
    _tu(
        "COLORS-3-clean",
        Statistics(10_500, 11, 61.31, 91.03, 4),
        "node_attributes",
        base="COLORS-3",
    ),
    Entry(
        "ogbg-molhiv",
        "graph",
        "OGB",
        "ogbg_molhiv/raw",
        (
            "edge.csv.gz",
            "num-node-list.csv.gz",
            "num-edge-list.csv.gz",
            "node-feat.csv.gz",
            "graph-label.csv.gz",
        ),
        (),
        "MIT",
        "Open Graph Benchmark (Hu et al. 2020), from MoleculeNet",
        Statistics(41_127, 2, 25.51, 27.47, 9),
        "hiv.zip",
    ),
    _planetoid("Cora", Statistics(1, 7, 2_708, 10_556, 1_433)),
    _planetoid("CiteSeer", Statistics(1, 6, 3_327, 9_104, 3_703)),
    _planetoid("PubMed", Statistics(1, 3, 19_717, 88_648, 500)),
    _amazon("Computers", Statistics(1, 10, 13_752, 491_722, 767)),
    _amazon("Photo", Statistics(1, 8, 7_650, 238_162, 745)),
    Entry(
        "Reddit",
        "node",
        "Reddit",
        "Reddit/raw",
        ("reddit_data.npz", "reddit_graph.npz"),
        (),
        RESEARCH,
        "GraphSAGE (Hamilton et al. 2017)",
        Statistics(1, 41, 232_965, 114_615_892, 602),
        "reddit.zip",
    ),
    # 1,157,799 pairs cite each other in one direction or both.
    Entry(
        "ogbn-arxiv",
        "node",
        "OGB",
        "ogbn_arxiv/raw",
        ("edge.csv.gz", "node-label.csv.gz", "node_year.csv.gz"),
        ("node-feat.csv.gz",),
        "ODC-BY",
        "Open Graph Benchmark (Hu et al. 2020), from the Microsoft Academic Graph",
        Statistics(1, 40, 169_343, 2 * 1_157_799, 128, citations=1_166_243),
        "arxiv.zip",
        features_file="node-feat.csv.gz",
    ),
    _built_in(
        "digits",
        "graph",
        "handwritten digits of scikit-learn",
        "BSD-3-Clause",
        Statistics(1_200, 10, None, None, 3),
    ),
    _built_in(
        "families",
        "graph",
        "random graphs of eight kinds",
        "MIT",
        Statistics(960, 8, None, None, 1),
    ),
    _built_in(
        "networks",
        "graph",
        "observed networks of NetworkX",
        "BSD-3-Clause",
        Statistics(6, 6, None, None, 0),
    ),
)

REGISTRY: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find(name: str) -> Entry:
    """Return the entry of a dataset; the case of its name does not matter."""
    known = {entry.lower(): entry for entry in REGISTRY}
    wanted = str(name).strip().lower()
    if wanted in known:
        return REGISTRY[known[wanted]]
    close = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
    hint = f" Did you mean {known[close[0]]}?" if close else ""
    raise DatasetError(f"there is no dataset {name!r}.{hint} Known are {', '.join(REGISTRY)}.")


def counts(graphs: Graphs) -> dict[str, int]:
    """Count graphs, classes, nodes, undirected edges and features."""
    return {
        "graphs": graphs.num_graphs,
        "classes": 0 if graphs.y is None else len(np.unique(graphs.y.numpy())),
        "nodes": graphs.num_nodes,
        "edges": graphs.num_edges,
        "features": graphs.num_features,
    }


def _in_words(entry: Entry, numbers: Statistics) -> list[str]:
    """Return the counts in words, in the same order for both sides of a comparison."""
    words = [f"{numbers.classes:,} classes", f"{numbers.features:,} features"]
    if entry.level == "node":
        return [f"{numbers.nodes:,} nodes", f"{numbers.edges:,} stored entries", *words]
    if numbers.nodes is not None:
        words.insert(1, f"{numbers.nodes:,.2f} nodes and {numbers.edges:,.2f} edges on average")
    return [f"{numbers.graphs:,} graphs", *words]


def _measured(entry: Entry, graphs: Graphs) -> Statistics:
    numbers = counts(graphs)
    nodes: float | None = numbers["nodes"]
    edges: float | None = 2 * numbers["edges"]
    if entry.level == "graph":
        nodes = round(numbers["nodes"] / numbers["graphs"], 2)
        edges = round(numbers["edges"] / numbers["graphs"], 2)
    nodes, edges = (None, None) if entry.statistics.nodes is None else (nodes, edges)
    return Statistics(numbers["graphs"], numbers["classes"], nodes, edges, numbers["features"])


def missing(entry: Entry, graphs: Graphs) -> list[str]:
    """Return a phrase for each optional part that a dataset lacks."""
    if entry.features_file is None or graphs.x is not None:
        return []
    width = entry.statistics.features
    return [f"the {width} features of {entry.folder}/{entry.features_file} are missing"]


def check(entry: Entry, graphs: Graphs) -> str:
    """Compare the counts with the paper's; return them as a sentence, or name all that differ."""
    measured, absent = _measured(entry, graphs), missing(entry, graphs)
    expected, got = _in_words(entry, entry.statistics), _in_words(entry, measured)
    if absent:
        expected, got = expected[:-1], got[:-1]
    wrong = [f"{b} instead of {a}" for a, b in zip(expected, got, strict=True) if a != b]
    if entry.level == "node" and measured.graphs != 1:
        wrong.insert(0, f"{measured.graphs:,} graphs instead of 1")
    if graphs.y is not None and int(graphs.y.max()) != measured.classes - 1:
        wrong.append(f"labels up to {int(graphs.y.max())} in {measured.classes:,} classes")
    if wrong:
        raise DatasetError(
            f"{entry.name} is not the dataset of the paper: it has {'; '.join(wrong)}. "
            f"To fix this, replace the files in {entry.folder} by the original ones."
        )
    sentence = ", ".join(got)
    if entry.statistics.citations is not None:
        sentence += f" (the paper counts {entry.statistics.citations:,} directed citations)"
    source = "as in the paper" if entry.role != "built-in" else "as built in"
    return f"{sentence}: {source}" + "".join(f"; {phrase}" for phrase in absent)
