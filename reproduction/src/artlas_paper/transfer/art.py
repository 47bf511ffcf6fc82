"""Evaluate SCGFM-ART, its variants, the controls and rows beyond the paper on one target."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence

from artlas import evaluation
from artlas.training.loop import Progress
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import HEAD, SHOTS
from artlas_paper.transfer import beyond
from artlas_paper.transfer.controls import CONTROLS
from artlas_paper.transfer.episodes import Episodes, Shots, labels_of, shown_name
from artlas_paper.transfer.folds import Folds
from artlas_paper.transfer.records import Record, record
from artlas_paper.transfer.scaling import scaled_head
from artlas_paper.transfer.target import VARIANTS, Target


def evaluate_art(
    folds: Folds,
    target: str,
    seeds: Sequence[int],
    shots: Sequence[Shots] = (SHOTS,),
    report: Callable[[Progress], None] | None = None,
    wl: bool = False,
    only: Collection[str] | None = None,
) -> Iterable[Record]:
    """Yield records of every control, row beyond the paper and variant of the model on one target.

    wl: the Weisfeiler-Lehman kernel too; only: the rows to evaluate, if not all. Without variants
    among them, no model is pretrained.
    """
    folds.sources(target)  # refuses a dataset of the other level before anything is read
    name, shown, labels = find(target).name, shown_name(folds, target), labels_of(folds, target)
    known = [*CONTROLS[folds.level], *beyond.BEYOND[folds.level], *VARIANTS[folds.level]]
    wanted = set(known if only is None else only)
    if unknown := wanted - set(known):
        choice = ", ".join(known)
        raise ValueError(f"There is no variant {min(unknown)!r}. Choose from {choice}.")
    controls = [control for control in CONTROLS[folds.level] if control in wanted]
    heads = {row: own for row, own in beyond.BEYOND[folds.level].items() if row in wanted}
    variants = {row: how for row, how in VARIANTS[folds.level].items() if row in wanted}
    models = {seed: folds.model(name, seed, report) for seed in seeds} if variants else {}
    for count in shots:
        episodes = Episodes.draw(labels, count)
        head = "linear" if count == "all" else HEAD[folds.level]
        place = Target(name, folds.root, folds.level, folds.runs / "embeddings", episodes.members)
        for control in controls:
            began = time.perf_counter()
            vectors = place.control(control)
            accuracy = evaluation.evaluate(vectors, episodes.labels, episodes.drawn, head)
            yield record(shown, "control", control, None, episodes, accuracy, began)
        for row, own in heads.items():
            began = time.perf_counter()
            vectors = place.blocks()
            accuracy = evaluation.evaluate(vectors, episodes.labels, episodes.drawn, own or head)
            yield record(shown, beyond.METHOD, row, None, episodes, accuracy, began)
        if wl:
            began = time.perf_counter()
            vectors = place.wl()
            unscaled = scaled_head(head, "none")
            accuracy = evaluation.evaluate(vectors, episodes.labels, episodes.drawn, unscaled)
            yield record(shown, "wl", "kernel", None, episodes, accuracy, began)
        for seed, model in models.items():
            for variant, how in variants.items():
                began = time.perf_counter()
                vectors, scaled = place.embed(model, how), scaled_head(head, how.scaling)
                accuracy = evaluation.evaluate(vectors, episodes.labels, episodes.drawn, scaled)
                yield record(shown, "art", variant, seed, episodes, accuracy, began)
