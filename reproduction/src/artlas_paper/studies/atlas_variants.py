"""Which other forms of the atlas make learned roles matter more?

Makes our table of forms (docs/atlas.md). Each form is trained briefly on the same folds, scored on
its sources without labels, and compared on the targets with z+ without roles and with random roles
of the same numbers.

    artlas-paper study forms --root ROOT
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from artlas import evaluation
from artlas.files import stored
from artlas.graphs.collection import Graphs
from artlas.method import checkpoint
from artlas.method.config import UNIFORM, ArtConfig
from artlas.method.energy import coverage
from artlas.method.model import ART
from artlas.training.config import PretrainConfig
from artlas.training.loop import Objective, Progress, train
from artlas.training.sources import Member, Sources, gather
from artlas_paper.datasets.registry import find
from artlas_paper.protocol import SEED
from artlas_paper.studies.dense_objectives import (
    ContrastLoss,
    dense_couplings,
    distillation,
    drop_edges,
    pool_degrees,
)
from artlas_paper.studies.tables import markdown_table
from artlas_paper.tables.accuracies import accuracies, averaged, difference
from artlas_paper.transfer.control_roles import random_balanced
from artlas_paper.transfer.controls import z_plus_by
from artlas_paper.transfer.episodes import Episodes, labels_of
from artlas_paper.transfer.folds import Folds, targets_of
from artlas_paper.transfer.records import Record, record
from artlas_paper.transfer.target import Target, Variant

PADDED = 40  # largest number of nodes for the dense objectives
DROPPED = 0.2  # share of the edges removed from a view


@dataclass(frozen=True)
class Form:
    """An atlas configuration, its training steps, and the weights of objectives beside coverage."""

    config: ArtConfig
    steps: int = 1500
    contrast: float = 0.0
    distil: float = 0.0


def _uniform_config(
    bases: int, roles: int, pooling: Literal["mixed", "each"] = "each"
) -> ArtConfig:
    return ArtConfig(
        bases=bases, roles=roles, measure_epsilon=UNIFORM, diagonal=True, pooling=pooling
    )


FORMS = {
    "uniform-16x32": Form(_uniform_config(16, 32, "mixed")),
    "uniform-8x4-each": Form(ArtConfig.few_roles()),
    "contrast-4x8": Form(_uniform_config(4, 8, "mixed"), 150, 0.1, 0.3),
    "contrast-8x4-each": Form(_uniform_config(8, 4), 150, 0.1, 0.3),
}


class _FormObjective(Objective):
    """Coverage, and the contrastive and distillation losses of a form."""

    watched, maxima = "loss", slice(0, 0)

    def __init__(self, form: Form, model: ART, sources: Sources, seed: int) -> None:
        self.form, self.model, self.sources = form, model, sources
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            bases = form.config.bases if form.config.pooling == "each" else 1
            self.contrast = ContrastLoss(4 * form.config.roles * bases)
        self.module = nn.ModuleList([model, self.contrast])

    def settings(self) -> Mapping[str, Any]:
        return dataclasses.asdict(self.form)

    def loss(self, members: list[Member], whole: int) -> tuple[Tensor, Tensor]:
        form, model, graphs = self.form, self.model, gather(self.sources, members)
        loss = coverage(model.energies(graphs), form.config.coverage_temperature).mean()
        small = torch.nonzero(graphs.sizes <= PADDED)[:, 0].tolist()
        if len(small) > 1 and form.contrast:
            views = (drop_edges(graphs[small], DROPPED, self.generator) for _ in range(2))
            parts = [pool_degrees(dense_couplings(model, view), model) for view in views]
            loss = loss + form.contrast * self.contrast(*parts)
        if len(small) > 1 and form.distil:
            loss = loss + form.distil * distillation(dense_couplings(model, graphs[small]))
        return loss, torch.tensor([1.0, float(loss.detach())], dtype=torch.float64)

    def record(self, counts: list[float]) -> dict[str, float]:
        batches, loss = counts
        return {"loss": loss / batches}


def train_form(
    form: Form,
    sources: dict[str, Graphs],
    seed: int = SEED,
    report: Callable[[int, float], None] | None = None,
) -> ART:
    """Train a form with the default settings, but for its own number of steps."""
    model = ART(dataclasses.replace(form.config, seed=seed))
    objective = _FormObjective(form, model, sources, seed)

    def show(at: Progress) -> None:
        if report is not None:
            report(at.step, at.loss)

    train(objective, sources, PretrainConfig(seed=seed), report=show, steps=form.steps)
    return model.eval()


def view_retrieval(
    model: ART | None, sources: dict[str, Graphs], each: int = 200
) -> evaluation.Accuracy:
    """Measure by source how often a view, without a fifth of the edges, is nearest to its graph.

    Compares z+ by the model's roles, or without roles, of ``each`` graphs per source, standardised
    over them.
    """
    generator = torch.Generator().manual_seed(0)
    hits = []
    for graphs in sources.values():
        chosen = torch.randperm(len(graphs), generator=generator)[:each].tolist()
        whole = graphs[chosen]
        views = drop_edges(whole, DROPPED, generator)
        known, asked = (
            z_plus_by(part) if model is None else model.embed(part).numpy()
            for part in (whole, views)
        )
        found = evaluation.nearest_rows(asked, known, 1)[:, 0]
        # graphs that are equal in z+ count as found: they cannot be told apart
        same = (np.abs(known[found] - known) < 1e-6).all(1)
        hits.append(same.mean())
    return evaluation.Accuracy(np.array(hits))


def fold_model(
    folds: Folds,
    name: str,
    target: str,
    seed: int,
    report: Callable[[int, float], None] | None = None,
) -> ART:
    """Return the form's model for a target; train it now unless an identical one is stored."""
    form = FORMS[name]
    folder = folds.runs / "forms" / name / f"{folds.name(target)}-seed{seed}"
    sources = source_structures(folds, target)
    identity = {
        "form": dataclasses.asdict(form) | {"config": None},
        "sources": {source: len(graphs) for source, graphs in sources.items()},
    }
    config = dataclasses.replace(form.config, seed=seed)
    if (folder / checkpoint.MODEL).exists():
        kept, model = stored.read_json(folder / checkpoint.CONFIG), checkpoint.load(folder)
        if model.config == config and all(
            kept.get(key) == value for key, value in identity.items()
        ):
            return model
    model = train_form(form, sources, seed, report)
    checkpoint.save(model, folder, identity)
    return model


def source_structures(folds: Folds, target: str) -> dict[str, Graphs]:
    """Return the source graphs of a target's fold, without features and labels."""
    sources = {}
    for name in folds.sources(target):
        graphs = folds.graphs(name)
        assert isinstance(graphs, Graphs)
        sources[name] = Graphs(graphs.node_ptr, graphs.row_ptr, graphs.col)
    return sources


def compare_on_target(
    folds: Folds,
    name: str,
    target: str,
    seeds: Sequence[int],
    shots: Sequence[int],
    report: Callable[[int, float], None] | None = None,
) -> Iterable[Record]:
    """Score a form on a target: trained, untrained, with random roles and without roles."""
    form, labels = FORMS[name], labels_of(folds, target)
    bases = form.config.bases if form.config.pooling == "each" else 1
    target = find(target).name
    trained = Variant("released", "plus")
    untrained = dataclasses.replace(trained, trained=False)
    models = {seed: fold_model(folds, name, target, seed, report) for seed in seeds}
    for count in shots:
        episodes = Episodes.draw(labels, count)
        place = Target(target, folds.root, "graph", folds.runs / "embeddings", episodes.members)
        data = place.data("released")
        assert isinstance(data, Graphs)

        def score(values: np.ndarray, episodes: Episodes = episodes) -> evaluation.Accuracy:
            return evaluation.evaluate(values, episodes.labels, episodes.drawn)

        began = time.perf_counter()
        parts = [z_plus_by(data, _random_roles(form.config.roles, k)) for k in range(bases)]
        random = score(np.concatenate(parts, 1))
        yield record(target, "form", f"{name}-random-roles", None, episodes, random, began)
        began = time.perf_counter()
        yield record(target, "form", "no-roles", None, episodes, score(z_plus_by(data)), began)
        for seed, model in models.items():
            for variant, how in ((name, trained), (f"{name}-untrained", untrained)):
                began = time.perf_counter()
                accuracy = score(place.embed(model, how))
                yield record(target, "form", variant, seed, episodes, accuracy, began)


def score_on_sources(folds: Folds, name: str, seeds: Sequence[int]) -> Iterable[Record]:
    """Score view retrieval on the sources, by the model of all of them and without roles."""
    unseen = next(target for target in targets_of("graph") if folds.name(target) == "all")
    sources = source_structures(folds, unseen)
    for seed in (None, *seeds):
        began = time.perf_counter()
        model = None if seed is None else fold_model(folds, name, unseen, seed)
        accuracy = view_retrieval(model, sources)
        variant = "no-roles" if model is None else name
        yield record("sources", "form", variant, seed, None, accuracy, began)


def table(records: Sequence[Record], shots: Sequence[int]) -> str:
    """Compare every form with no roles, its random roles and its untrained self."""
    present = {r["target"] for r in records}
    targets = averaged([target for target in targets_of("graph") if target in present])
    columns = ["form", "views found"]
    for count in shots:
        columns += [f"{count} shots", "over no roles", "over random roles", "over untrained"]
    body = []
    for name in ("no-roles", *FORMS):
        if not any(r["variant"] == name for r in records):
            continue
        views = accuracies(records, ("form", name), "sources", "views")
        cells = [name, "-" if views is None else f"{views.mean():.1f}"]
        for count in shots:
            parts = [accuracies(records, ("form", name), target, count) for target in targets]
            means = [part.mean() for part in parts if part is not None]
            cells.append(f"{np.mean(means):.2f}" if len(means) == len(targets) else "-")
            for other in ("no-roles", f"{name}-random-roles", f"{name}-untrained"):
                cells.append(_difference(records, name, other, targets, count))
        body.append(cells)
    seeds = sorted({r["seed"] for r in records if r["seed"] is not None})
    commits = ", ".join(sorted({r["commit"] for r in records}))
    return (
        f"Percent correct, averages over {', '.join(targets)}; paired differences (standard "
        f"errors); seeds {seeds}, commits {commits}.\n\n{markdown_table(columns, body)}\n"
    )


def _difference(
    records: Sequence[Record], name: str, other: str, targets: Sequence[str], shots: int
) -> str:
    try:
        mean, error = difference(records, ("form", name), ("form", other), targets, shots)
    except ValueError:
        return "-"
    return f"{mean:+.2f} ({error:.2f})"


def _random_roles(roles: int, k: int) -> Callable[[Graphs], Tensor]:
    return lambda graphs: random_balanced(graphs, roles, seed=SEED + k)
