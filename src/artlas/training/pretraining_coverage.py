"""Where the graphs that a model was pretrained on lie: what a new graph is compared with."""

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
EACH = 80  # graphs of a domain whose coordinates are kept


@dataclass(frozen=True, eq=False)
class Reference:
    """The pretraining graphs of a model.

    distances [101]: percentiles 0 to 100 of the distance to the nearest base, all domains alike;
    domains: coordinates [n, K] of some graphs of each.
    """

    distances: NDArray[np.float64]
    domains: dict[str, NDArray[np.float64]]

    def percentile(self, distance: float) -> float:
        """The share of the pretraining graphs, in percent, that lie nearer to their base."""
        return float(np.interp(distance, self.distances, np.arange(101), left=0, right=100))

    def outside(self, distance: float) -> bool:
        """Whether no pretraining graph, but for the farthest in a hundred, is as far away."""
        return distance > self.distances[99]

    def unusual(self, distance: float) -> bool:
        """Whether hardly any pretraining graph is as near to a base."""
        return distance < self.distances[1]

    def to_json(self) -> dict[str, Any]:
        """As plain numbers."""
        domains = {name: np.round(q, 5).tolist() for name, q in self.domains.items()}
        return {"distances": np.round(self.distances, 6).tolist(), "domains": domains}


def make(model: ART, sources: Mapping[str, Graphs | EgoGraphs]) -> Reference:
    """Align all graphs of the sources; every domain counts alike, however large."""
    grid, percentiles, domains = np.arange(101), [], {}
    for name, graphs in sources.items():
        q = model.align(graphs).coordinates.cpu().double().numpy()
        percentiles.append(np.percentile(q.min(1), np.linspace(0, 100, 1001)))
        chosen = np.random.default_rng(0).permutation(len(q))[:EACH]
        domains[name] = q[np.sort(chosen)]
    return Reference(np.percentile(np.concatenate(percentiles), grid), domains)


def save(reference: Reference, folder: Path) -> None:
    """Write it beside a model."""
    stored.write_json(folder / FILE, reference.to_json())


def load(which: Any) -> Reference | None:
    """The reference of a model, by name or folder; None where it has none."""
    path = checkpoint.folder_of(which) / FILE
    if not path.exists():
        return None
    given = stored.read_json(path)
    try:
        domains = {name: np.array(q, dtype=np.float64) for name, q in given["domains"].items()}
        found = Reference(np.array(given["distances"], dtype=np.float64), domains)
    except (KeyError, TypeError, ValueError, AttributeError):
        found = None
    if found is None or found.distances.shape != (101,):
        raise_read_error(
            path, "this is no reference of a model", quoted(str(given)[:80]), "delete it"
        )
    return found
