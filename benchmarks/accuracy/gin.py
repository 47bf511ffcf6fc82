"""The study `gin`: train GIN on the published folds on this machine, to compare its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.accuracy import datasets, markdown
from benchmarks.accuracy.gin_network import Training, fit_and_predict
from benchmarks.accuracy.measure import say, splits_facts
from benchmarks.accuracy.published import PUBLISHED
from benchmarks.accuracy.records import Record, load_all
from benchmarks.accuracy.splits import published_folds
from benchmarks.accuracy.study import Options

ROW, SETTING, TARGET = "GIN", "published", 50.0
OURS = "artlas"
# One configuration a dataset, in the range of the fair comparison's grid; the mean read-out where
# the sum overfits to size.
TRAINING = {
    "ENZYMES": Training(hidden=64, layers=4, rate=0.005),
    "DD": Training(batch=64, read_out="mean"),
    "IMDB-BINARY": Training(read_out="mean"),
    "IMDB-MULTI": Training(read_out="mean"),
    "COLLAB": Training(read_out="mean"),
}
ABOUT = """GIN (Xu et al., 2019) trained with one configuration on this machine, on the training
graphs of a published fold, stopped by its validation graphs and asked for its test graphs: Adam at
0.01 (ENZYMES 0.005), halved every 50 epochs, batches of 128 (DD 64), 5 layers of 32 (ENZYMES 4 of
64), at most 500 epochs, stopped 100 epochs after the highest validation accuracy. The fair
comparison waits for up to 500 epochs, tries many configurations within every fold and then trains
three networks with the best: its time is a multiple of this one, and its accuracy is the one to
compare with (column "published"). The seconds of a fold include training and prediction, not
reading; artlas' include a tenth of the embedding of the dataset, fit and prediction, from the
records of `fair`. CPU seconds, of all threads together, compare runs on a machine that others use
too. Where fewer than ten folds were trained, ten times the mean is an extrapolation, marked "~"."""


def run(options: Options) -> None:
    """Train on the first folds of every dataset, one record a fold, and write the page."""
    for name in options.chosen_datasets(datasets.PUBLISHED):
        graphs, labels = datasets.read(options.data, name)
        folds = published_folds(options.data / "arena" / "folds" / f"{name}.json")
        settings = TRAINING.get(name, Training())
        facts = splits_facts(folds, labels, {"seeds": "published"})
        record = Record(options.out, "gin", name)
        known = record.get(ROW, SETTING, facts["hash"])
        if known is None or options.again or known["training"] != asdict(settings):
            known = {"training": asdict(settings), "accuracies": [], "fold_seconds": []}
            known |= {"fold_cpu_seconds": [], "epochs": [], "embed_seconds": 0.0}
        done: dict[str, Any] = {
            key: value for key, value in known.items() if key not in ("commit", "threads")
        }
        for fold in folds[len(done["accuracies"]) : options.folds]:
            assert fold.validation is not None
            train = np.setdiff1d(fold.train, fold.validation)
            known_labels = labels.copy()
            known_labels[fold.test] = 0  # read only to score
            parts = train, fold.validation, fold.test
            found = fit_and_predict(graphs, known_labels, parts, settings)
            done["accuracies"].append(float(np.mean(found.classes == labels[fold.test])))
            done["fold_seconds"].append(found.seconds)
            done["fold_cpu_seconds"].append(found.cpu_seconds)
            done["epochs"].append(found.epochs)
            done["seconds"] = float(np.sum(done["fold_seconds"]))
            record.put(ROW, SETTING, facts, done)
            say(name, ROW, f"fold {len(done['accuracies'])}", done)
    write(options)


def write(options: Options) -> None:
    """Write the page of all records."""
    records = {record.dataset: record for record in load_all(options.out, "gin")}
    fair = {record.dataset: record for record in load_all(options.out, "fair")}
    rows = []
    for name in datasets.PUBLISHED:
        if name in records:
            own = records[name].rows[ROW][SETTING]
            artlas = fair[name].rows.get(OURS, {}).get(SETTING) if name in fair else None
            rows.append(_line(name, own, artlas))
    head = [
        "dataset",
        "folds",
        "epochs",
        "GIN, s a fold",
        "CPU s a fold",
        "s for ten",
        "accuracy here",
        "published",
        "artlas, s a fold",
        "CPU s a fold",
        f"GIN / artlas (asked: {TARGET:g})",
        "in CPU s",
    ]
    used = list(records.values())
    text = markdown.page(
        "The time of a trained network", options.command, used, [ABOUT, markdown.table(head, rows)]
    )
    markdown.write(options.out / "gin.md", text)


def _line(name: str, own: dict[str, Any], artlas: dict[str, Any] | None) -> Sequence[str]:
    count = len(own["fold_seconds"])
    theirs = [float(np.mean(own[key])) for key in ("fold_seconds", "fold_cpu_seconds")]
    ours, ratios = ["", ""], ["", ""]
    if artlas is not None:
        whole = [artlas["embed_" + key] + artlas[key] for key in ("seconds", "cpu_seconds")]
        each = [value / len(artlas["accuracies"]) for value in whole]
        ours = [f"{value:.2f}" for value in each]
        found = [a / b for a, b in zip(theirs, each, strict=True)]
        ratios = [f"{r:.0f}{'' if r >= TARGET else ', **missed**'}" for r in found]
    return [
        name,
        str(count),
        f"{np.mean(own['epochs']):.0f}",
        *(f"{value:.1f}" for value in theirs),
        f"{'~' if count < 10 else ''}{10 * theirs[0]:.0f}",
        f"{100 * np.mean(own['accuracies']):.1f}",
        str(PUBLISHED["GIN"][name]),
        *ours,
        *ratios,
    ]
