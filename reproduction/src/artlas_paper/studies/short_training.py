"""Train models briefly and score them, for studies that compare many of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artlas import evaluation
from artlas.method.config import ArtConfig
from artlas.method.model import ART
from artlas.training.config import PretrainConfig
from artlas.training.loop import Progress
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import ART_CONFIG, HEAD, SHOTS, Level
from artlas_paper.studies.study import ReportProgress, Setting
from artlas_paper.transfer.episodes import Episodes, labels_of
from artlas_paper.transfer.folds import Folds
from artlas_paper.transfer.scaling import Scaling, scaled_head
from artlas_paper.transfer.target import Target, Variant

# A model of the main tables trains for ten minutes on two threads, and these studies need a hundred
# models. The loss falls most in the first epochs, so all models of a level get the same few.
EPOCHS: dict[Level, int] = {"graph": 6, "node": 2}
PARTS = {
    "q": Variant(representation="coordinates"),
    "H": Variant(representation="features"),
    "z": Variant(representation="paper"),
}


def short_folds(setting: Setting, level: Level, name: str, config: ArtConfig) -> Folds:
    """Return the briefly trained models of a level with a configuration, stored under ``name``."""
    training = PretrainConfig(epochs=1 if setting.quick else EPOCHS[level], checkpoint_every=100)
    runs = (setting.runs / "quick" if setting.quick else setting.runs) / "short" / name
    folds = setting.cached(
        ("short", level, name), lambda: Folds(level, setting.root, runs, training, config)
    )
    # the graphs do not depend on the configuration: read them once for all
    folds.__dict__["_loaded"] = setting.cached(("graphs", level), dict)
    return folds


def train_briefly(
    setting: Setting, target: str, name: str, config: ArtConfig, seed: int, report: ReportProgress
) -> ART:
    """Return a model that never saw the target; train it briefly now if it is not stored."""

    def show(at: Progress) -> None:
        report(at.step, at.steps)

    return short_folds(setting, find(target).level, name, config).model(target, seed, show)


def score_parts(setting: Setting, target: str, model: ART) -> Mapping[str, Any]:
    """Score q, vec H and z of a model over the 50 episodes at five shots, in percent correct."""
    level = find(target).level
    folds = short_folds(setting, level, "learned", ART_CONFIG)
    labels = setting.cached(("labels", target), lambda: labels_of(folds, target))
    episodes = setting.cached(("episodes", target), lambda: Episodes.draw(labels, SHOTS))
    place = Target(
        find(target).name, setting.root, level, setting.runs / "embeddings", episodes.members
    )
    scores = {
        part: episode_accuracy(
            place.embed(model, how), episodes.labels, episodes.drawn, level, how.scaling
        )
        for part, how in PARTS.items()
    }
    return {"episodes": episodes.sha256, "accuracy": scores}


def episode_accuracy(
    values: NDArray[Any],
    labels: NDArray[np.int64],
    drawn: list[evaluation.Episode],
    level: Level,
    scaling: Scaling = "double",
) -> float:
    """Average percent correct over episodes, with the head of the level."""
    head = scaled_head(HEAD[level], scaling)
    return round(100 * evaluation.evaluate(values, labels, drawn, head).mean, 4)


def level_of(target: str) -> Level:
    """Return whether the graphs or the nodes of a dataset are classified."""
    return find(target).level


def config_with_atlas(kind: Any) -> ArtConfig:
    """Return the paper's configuration with another parameterisation of the atlas."""
    return dataclasses.replace(ART_CONFIG, atlas=kind)
