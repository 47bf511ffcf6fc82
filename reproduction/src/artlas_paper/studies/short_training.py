"""Models that are trained briefly, all alike, for studies that compare many of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas import evaluation
from artlas.evaluation.accuracy import Scaling
from artlas.method.config import ArtConfig
from artlas.method.model import ART
from artlas.training.config import PretrainConfig
from artlas.training.loop import Progress
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import ART_CONFIG, HEAD, SHOTS, Level
from artlas_paper.studies.study import Report, Setting
from artlas_paper.transfer.episodes import Episodes, labels_of
from artlas_paper.transfer.folds import Folds
from artlas_paper.transfer.target import Target, Variant

# A model of the main tables takes ten minutes on two threads, and these studies need a hundred. The
# loss falls most in the first epochs; every model of a level is trained for as many.
EPOCHS: dict[Level, int] = {"graph": 6, "node": 2}
PARTS = {
    "q": Variant(representation="coordinates"),
    "H": Variant(representation="features"),
    "z": Variant(representation="paper"),
}


def folds_of(setting: Setting, level: Level, name: str, config: ArtConfig) -> Folds:
    """The models of a level with some settings, in a folder of that name."""
    training = PretrainConfig(epochs=1 if setting.quick else EPOCHS[level], checkpoint_every=100)
    runs = (setting.runs / "quick" if setting.quick else setting.runs) / "short" / name
    made = setting.once(
        ("short", level, name), lambda: Folds(level, setting.root, runs, training, config)
    )
    # graphs are the same for all settings: read once
    made.__dict__["_loaded"] = setting.once(("graphs", level), dict)
    return made


def train(
    setting: Setting, target: str, name: str, config: ArtConfig, seed: int, report: Report
) -> ART:
    """A model that never saw the target, trained briefly now if it is not kept."""

    def show(at: Progress) -> None:
        report(at.step, at.steps)

    return folds_of(setting, find(target).level, name, config).model(target, seed, show)


def accuracies(setting: Setting, target: str, model: ART) -> Mapping[str, Any]:
    """Percent correct of q, vec H and z over the 50 episodes at five shots, by part."""
    level = find(target).level
    folds = folds_of(setting, level, "learned", ART_CONFIG)
    labels = setting.once(("labels", target), lambda: labels_of(folds, target))
    episodes = setting.once(("episodes", target), lambda: Episodes.draw(labels, SHOTS))
    place = Target(
        find(target).name, setting.root, level, setting.runs / "embeddings", episodes.members
    )
    scores = {
        part: score(place.embed(model, how), episodes.labels, episodes.drawn, level, how.scaling)
        for part, how in PARTS.items()
    }
    return {"episodes": episodes.sha256, "accuracy": scores}


def score(
    values: NDArray[Any],
    labels: NDArray[np.int64],
    drawn: list[evaluation.Episode],
    level: Level,
    scaling: Scaling = "double",
) -> float:
    """Percent correct over episodes with the head of a level."""
    return round(100 * evaluation.evaluate(values, labels, drawn, HEAD[level], scaling).mean, 4)


def spread(values: list[float]) -> str:
    """Mean (standard deviation over seeds)."""
    found = np.array(values)
    if len(found) == 1:
        return f"{found[0]:.2f}"
    return f"{found.mean():.2f} ({found.std(ddof=1):.2f})"


def level_of(target: str) -> Level:
    """Whether graphs or nodes of a dataset are classified."""
    return find(target).level


def with_atlas(kind: Any) -> ArtConfig:
    """The paper's settings with another parameterisation of the atlas."""
    return dataclasses.replace(ART_CONFIG, atlas=kind)
