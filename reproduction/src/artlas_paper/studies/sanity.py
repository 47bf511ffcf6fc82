"""Does training help each method, compared with its own untrained self?

Makes our table of sanity checks: every method of the comparison on four small tasks.

    artlas-paper study sanity --out DIR
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from artlas import evaluation
from artlas.datasets import Dataset, digits_as_graphs, relative_degree, synthetic_families
from artlas.evaluation import controls
from artlas.graphs.collection import Graphs
from artlas.method.config import ArtConfig
from artlas.method.model import ART
from artlas.nodes.ego import PprConfig, ego_graphs
from artlas.training.config import PretrainConfig
from artlas.training.coverage import pretrain
from artlas.training.loop import Progress
from artlas_paper import figures
from artlas_paper.methods.registry import METHODS, find
from artlas_paper.protocol import EPISODE_SEED, EPISODES, QUERIES, SEEDS, SHOTS
from artlas_paper.random_graphs import random_edges
from artlas_paper.studies.plots import finish_panel, legend_above, panel_row, plot_series
from artlas_paper.studies.study import Job, ReportProgress, Setting, Study
from artlas_paper.studies.tables import distinct, markdown_table, where
from artlas_paper.transfer.records import Record

EPOCHS, QUICK_EPOCHS = 20, 1
BATCH = 32
CONTROLS: dict[str, Callable[[Graphs], Any]] = {
    "sum pool": controls.sum_pool,
    "mean pool": controls.mean_pool,
    "degree histogram": controls.degree_histogram,
}
PROTOCOL = f"""\
Every task has two halves without a common graph: methods are trained on the first for {EPOCHS}
epochs in batches of {BATCH}, with the paper's optimiser and rate and a width of 64, and their
frozen vectors of the second are classified over 50 episodes at five shots by prototypes. GCN, GAT
and GIN learn from the labels of the first half, all others from none. "families": eight kinds of
random graphs, with relative degree as feature; "digits": handwritten digits, with ink and position
as features; "communities": ego-graphs of nodes of a network of six communities, whose features are
noise except for a shift by community; "density": random graphs of three densities, with noise as
features. The ego-graphs of both halves come from one network, and overlap. Values are percent
correct of the trained method; in brackets is its difference from the untrained one, with the
standard error over episodes. A star marks differences below two standard errors."""


def communities(seed: int = 0, size: int = 150, groups: int = 6) -> Dataset:
    """Generate ego-graphs of a stochastic block model with weak features."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(groups), size)
    chance = np.where(label[:, None] == label[None], 0.06, 0.006)
    upper = np.triu(rng.random(chance.shape) < chance, 1)
    x = rng.normal(size=(len(label), 8)) + 0.6 * rng.normal(size=(groups, 8))[label]
    network = Graphs.from_scipy([(upper | upper.T).astype(float)], [x])
    egos = ego_graphs(network, range(len(label)), PprConfig(most_nodes=40))
    return Dataset("communities", egos[:].with_labels(label), tuple(map(str, range(groups))))


def density(seed: int = 0, count: int = 120) -> Dataset:
    """Generate random graphs of mean degree 2, 4 and 8, with noise as features."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(3), count)
    sizes = rng.integers(20, 60, size=len(label)).tolist()
    edges = [
        (n, torch.from_numpy(random_edges(rng, n, 2.0 ** (1 + y))))
        for n, y in zip(sizes, label, strict=True)
    ]
    graphs = Graphs.from_edges(edges, rng.normal(size=(sum(sizes), 4)), label)
    return Dataset("density", graphs, ("2", "4", "8"))


def families() -> Dataset:
    """Generate the built-in families, with the relative degree as feature."""
    data = synthetic_families()
    return dataclasses.replace(data, graphs=data.graphs.with_features(relative_degree(data.graphs)))


TASKS: dict[str, Callable[[], Dataset]] = {
    "families": families,
    "digits": digits_as_graphs,
    "communities": communities,
    "density": density,
}


def jobs(setting: Setting) -> Iterable[Job]:
    """List a job for every task, seed and method, and for the controls."""
    for task, seed in itertools.product(setting.targets, setting.seeds):
        for method in (*METHODS, "art"):
            identity = {"task": task, "method": method, "seed": seed}
            yield Job(identity, partial(_measure, setting, task, method, seed))
        for name in CONTROLS:
            identity = {"task": task, "method": name, "seed": seed}
            yield Job(identity, partial(_control, setting, task, name))


def _halves(setting: Setting, task: str) -> tuple[Dataset, Dataset]:
    return setting.cached(("halves", task), lambda: TASKS[task]().halves(0))


def _accuracies(z: Any, data: Dataset) -> list[float]:
    drawn = evaluation.draw_episodes(data.labels, EPISODES, SHOTS, QUERIES, EPISODE_SEED)
    accuracy = evaluation.evaluate(np.asarray(z), data.labels, drawn)
    return [round(100 * float(v), 4) for v in accuracy.episodes]


def _measure(
    setting: Setting, task: str, method: str, seed: int, report: ReportProgress
) -> Mapping[str, Any]:
    first, second = _halves(setting, task)
    epochs = QUICK_EPOCHS if setting.quick else EPOCHS

    def show(at: Progress) -> None:
        report(at.step, at.steps)

    if method == "art":
        config = ArtConfig(seed=seed)
        training = PretrainConfig(epochs=epochs, batch=BATCH, seed=seed)
        models = [ART(config), pretrain({task: first.graphs}, config, training, report=show)]
        vectors = [model.embed(second.graphs, "paper") for model in models]
    else:
        entry = find(method)
        training = dataclasses.replace(
            entry.training["graph"], epochs=epochs, batch=BATCH, seed=seed
        )
        model = entry.make("graph", {task: first.graphs}, seed)
        vectors = [model.embed(second.graphs)]
        model.pretrain({task: first.graphs}, training, report=show)
        vectors.append(model.embed(second.graphs))
    untrained, trained = (_accuracies(z, second) for z in vectors)
    return {"accuracies": trained, "untrained": untrained}


def _control(setting: Setting, task: str, name: str, report: ReportProgress) -> Mapping[str, Any]:
    _, second = _halves(setting, task)
    return {"accuracies": _accuracies(CONTROLS[name](second.graphs), second), "untrained": None}


def table(records: Sequence[Record]) -> str:
    """Compare methods by task, and count the tasks on which training helps."""
    tasks = distinct(records, "task", list(TASKS))
    body = []
    for method in distinct(records, "method", [*METHODS, "art", *CONTROLS]):
        cells, better, compared = [], 0, 0
        for task in tasks:
            own = where(records, method=method, task=task)
            if not own:
                cells.append("-")
                continue
            trained = np.mean([r["accuracies"] for r in own], axis=0)
            text = f"{trained.mean():.1f}"
            if own[0]["untrained"] is not None:
                gain = trained - np.mean([r["untrained"] for r in own], axis=0)
                error = gain.std() / len(gain) ** 0.5
                sure = abs(gain.mean()) > 2 * error
                better, compared = better + (sure and gain.mean() > 0), compared + 1
                text += f" [{gain.mean():+.1f} ({error:.1f}){'' if sure else '*'}]"
            cells.append(text)
        title = METHODS[method].title if method in METHODS else method.replace("art", "ART")
        body.append([title, *cells, f"{better} of {compared}" if compared else "-"])
    return markdown_table(["", *tasks, "better than untrained"], body)


def _training_gain(records: Sequence[Record], task: str, method: str) -> float:
    """Compute by how many points training changed the accuracy."""
    own = where(records, method=method, task=task)
    gains = [float(np.mean(r["accuracies"]) - np.mean(r["untrained"])) for r in own]
    return float(np.mean(gains)) if gains else float("nan")


def figure(records: Sequence[Record]) -> Any:
    """Plot by how many points training changed the accuracy, by method and task."""
    tasks = distinct(records, "task", list(TASKS))
    methods = [m for m in distinct(records, "method", [*METHODS, "art"]) if m not in CONTROLS]
    drawing, (panel,) = panel_row(1, 10, 3.4)
    for i, task in enumerate(tasks):
        gains = [_training_gain(records, task, method) for method in methods]
        plot_series(panel, i, range(len(methods)), gains, ms=6, ls="none", label=task)
    panel.axhline(0, color=figures.INK, lw=0.8)
    names = [METHODS[m].title if m in METHODS else m.upper() for m in methods]
    panel.set_xticks(range(len(methods)), names, fontsize=8, rotation=20)
    panel.set_ylabel("trained - untrained, points", fontsize=9)
    finish_panel(panel)
    legend_above(drawing, 4)
    return drawing


STUDY = Study(
    name="sanity",
    title="Every method against its untrained self",
    protocol=PROTOCOL,
    keys=("task", "method", "seed"),
    targets=tuple(TASKS),
    seeds=SEEDS[:3],
    jobs=jobs,
    table=table,
    figure=figure,
    quick_targets=("density",),
)
