"""The datasets of the studies, and how they are read."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import artlas
from artlas import Graphs

DEVELOPMENT = (
    "MUTAG",
    "PTC_MR",
    "DHFR",
    "BZR",
    "MSRC_9",
    "PROTEINS",
    "IMDB-BINARY",
    "NCI1",
    "NCI109",
    "Mutagenicity",
    "COLLAB",
)
PUBLISHED = (
    "ENZYMES",
    "PROTEINS",
    "DD",
    "NCI1",
    "IMDB-BINARY",
    "IMDB-MULTI",
    "REDDIT-BINARY",
    "COLLAB",
)
UNSEEN = ("ENZYMES", "DD", "IMDB-MULTI", "REDDIT-BINARY")  # took no part in any choice
SMALL = 1000  # graphs: smaller datasets are cut into folds by several seeds


def read(data: Path, name: str) -> tuple[Graphs, NDArray[np.int64]]:
    """Read the graphs of a dataset and their classes, 0 to C - 1, [G]."""
    folder = data / "TUDataset" / name / "raw"
    if not folder.is_dir():
        sys.exit(f"There is no {folder}. To fix this: lay the dataset {name} out there.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", artlas.GraphCleaningWarning)
        graphs = artlas.read(folder, verbose=False)
    assert graphs.y is not None
    return graphs, np.unique(graphs.y.numpy(), return_inverse=True)[1].astype(np.int64)
