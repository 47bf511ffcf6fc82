"""A target's examples, and their vectors by a frozen model, cached on disk."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import artlas
from artlas.errors import ReadError
from artlas.files.atomic import atomic
from artlas.files.untrusted import read_npz
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.method.config import ArtConfig
from artlas.method.model import ART
from artlas.nodes.ego import EgoGraphs, PprConfig
from artlas_paper import datasets
from artlas_paper.datasets.prepare import Features
from artlas_paper.protocol import PPR, Level
from artlas_paper.transfer.controls import CONTROLS, Matrix, wl_kernel
from artlas_paper.transfer.scaling import Scaling
from artlas_paper.transfer.structural_features import structural_features

CACHE_VERSION = 1  # to be raised when vectors of the same settings change


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to read a frozen model.

    features: how those of the dataset are prepared; released: read by the settings of the authors'
    code; filled: ego-graphs are filled up with nodes of score zero, as in their code; trained:
    False for the initial weights; scaling: of the support, see
    :func:`artlas_paper.transfer.scaling.scaled_head`.
    """

    features: Features = "paper"
    representation: str = "paper"
    released: bool = False
    filled: bool = False
    trained: bool = True
    scaling: Scaling = "double"


_BOTH_LEVELS = {
    "paper": Variant(),
    "paper-single": Variant(scaling="single"),
    "q": Variant(representation="coordinates"),
    "H": Variant(representation="features"),
}
VARIANTS: Mapping[Level, Mapping[str, Variant]] = {
    "graph": {
        **_BOTH_LEVELS,
        "released": Variant("released", released=True),
        "released-single": Variant("released", released=True, scaling="single"),
        "plus": Variant("released", "plus"),
        "plus-untrained": Variant("released", "plus", trained=False),
    },
    "node": {
        **_BOTH_LEVELS,
        "paper-filled": Variant(filled=True),
        "released": Variant(released=True, filled=True, scaling="single"),
        "plus": Variant(representation="plus"),
        "plus-untrained": Variant(representation="plus", trained=False),
    },
}


@dataclasses.dataclass(frozen=True)
class Target:
    """The examples of a dataset that the episodes use; their vectors are cached in ``cache``."""

    name: str
    root: Path | None
    level: Level
    cache: Path
    members: NDArray[np.int64]

    def data(self, features: Features, filled: bool = False) -> Graphs | EgoGraphs:
        """Load the members, with prepared features, and with filled ego-graphs if asked for."""
        config = PprConfig.released() if filled else PPR
        data = datasets.load_examples(self.name, self.root, features, config=config)
        if not isinstance(data, EgoGraphs):
            return data[self.members]
        if data.graph.x is None:
            data = dataclasses.replace(data, graph=structural_features(data.graph))
        return data.select(self.members)

    def control(self, name: str) -> Matrix:
        """Return the vectors of the members by a control, [n, d]."""
        return CONTROLS[self.level][name](
            self.data("released" if self.level == "graph" else "paper")
        )

    def blocks(self) -> Matrix:
        """Return the library's vectors of the members, of the dataset's own features, [n, D].

        Where there are none, none stand in: the relative degree depends on the whole dataset, and
        the blocks have the degrees of each graph.
        """
        return artlas.blocks.embed(self.data("raw")).numpy()

    def wl(self) -> Matrix:
        """Return vectors of the members of the Weisfeiler-Lehman kernel, cached for all graphs."""

        def compute() -> Matrix:
            return wl_kernel(datasets.load(self.name, self.root, "raw", verbose=False))

        key = {"version": CACHE_VERSION, "target": self.name, "wl": "whole"}
        return self._cached(key, compute)[self.members]

    def embed(self, model: ART, variant: Variant) -> Matrix:
        """Return the vectors of the members by a frozen model, [n, d], cached between calls."""
        if variant.released:
            model = as_released(model)
        if not variant.trained:
            model = ART(model.config)
        settings = dataclasses.asdict(variant)
        del settings["scaling"], settings["trained"]  # of the head, and seen by the weights
        key = {
            "version": CACHE_VERSION,
            "target": self.name,
            "members": _hash(self.members.tobytes()),
            **settings,
            "config": dataclasses.asdict(model.config),
            "weights": checkpoint.weights_hash(model),
        }

        def compute() -> Matrix:
            data = self.data(variant.features, variant.filled)
            return model.embed(data, variant.representation).numpy()

        return self._cached(key, compute)

    def _cached(self, key: dict[str, Any], compute: Callable[[], Matrix]) -> Matrix:
        name = _hash(json.dumps(key, sort_keys=True).encode())[:16]
        path = self.cache / f"{self.name}-{name}.npz"
        if path.exists():
            try:
                return read_npz(path)["z"]
            except ReadError:  # truncated or damaged: computed again
                path.unlink()
        vectors = compute()
        self.cache.mkdir(parents=True, exist_ok=True)
        with atomic(path) as out:
            np.savez(out, z=vectors)
        return vectors


def as_released(model: ART) -> ART:
    """Return a model of the same weights under the settings of the authors' code."""
    preset, own = ArtConfig.released(), model.config
    changes = {name: getattr(preset, name) for name in ("top_k", "logit_clamp", "featureless")}
    changes["top_k"] = min(preset.top_k or own.bases, own.bases)
    other = ART(dataclasses.replace(own, **changes))
    other.load_state_dict(model.state_dict())
    return other.eval()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
