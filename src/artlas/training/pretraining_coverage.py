"""How far the pretraining graphs of a model lie from its bases, to compare new graphs with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas.errors import quoted, raise_read_error
from artlas.files import stored
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.method.model import ART
from artlas.nodes.ego import EgoGraphs

FILE = "reference.json"
EACH = 80  # number of graphs of each domain whose coordinates are kept


@dataclass(frozen=True, eq=False)
class PretrainingCoverage:
    """Distances and coordinates of the graphs that a model was pretrained on.

    distances [101]: percentiles 0 to 100 of the distance to the nearest base, with equal weight for
    every domain; domains: coordinates [n, K] of some graphs of each.
    """

    distances: NDArray[np.float64]
    domains: dict[str, NDArray[np.float64]]

    def percentile(self, distance: float) -> float:
        """The percentage of pretraining graphs that are closer to their nearest base."""
        return float(np.interp(distance, self.distances, np.arange(101), left=0, right=100))

    def outside(self, distance: float) -> bool:
        """Whether at most one pretraining graph in a hundred is this far from its nearest base."""
        return distance > self.distances[99]

    def unusual(self, distance: float) -> bool:
        """Whether at most one pretraining graph in a hundred is this close to its nearest base."""
        return distance < self.distances[1]


def measure(model: ART, sources: Mapping[str, Graphs | EgoGraphs]) -> PretrainingCoverage:
    """Align all graphs of the sources; every domain has equal weight, however large it is."""
    percentiles, domains = [], {}
    for name, graphs in sources.items():
        q = model.align(graphs).coordinates.cpu().double().numpy()
        percentiles.append(np.percentile(q.min(1), np.linspace(0, 100, 1001)))
        chosen = np.random.default_rng(0).permutation(len(q))[:EACH]
        domains[name] = q[np.sort(chosen)]
    distances = np.percentile(np.concatenate(percentiles), np.arange(101))
    return PretrainingCoverage(distances, domains)


def save(reference: PretrainingCoverage, folder: Path) -> None:
    """Write the pretraining coverage beside its model."""
    domains = {name: np.round(q, 5).tolist() for name, q in reference.domains.items()}
    content = {"distances": np.round(reference.distances, 6).tolist(), "domains": domains}
    stored.write_json(folder / FILE, content)


def load(which: Any) -> PretrainingCoverage | None:
    """Load the pretraining coverage of a model, by name or folder; None if it has none."""
    path = checkpoint.folder_of(which) / FILE
    if not path.exists():
        return None
    content = stored.read_json(path)
    try:
        domains = {name: np.array(q, dtype=np.float64) for name, q in content["domains"].items()}
        distances = np.array(content["distances"], dtype=np.float64)
        if distances.shape == (101,):
            return PretrainingCoverage(distances, domains)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise_read_error(path, "this is no reference of a model", quoted(content), "delete it")
