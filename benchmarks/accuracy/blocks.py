"""The study `blocks`: what every block of the vector is worth, on the development datasets."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from artlas import blocks
from benchmarks.accuracy import datasets, markdown
from benchmarks.accuracy.block_grams import BlockGrams
from benchmarks.accuracy.measure import Labels, say, splits_facts
from benchmarks.accuracy.records import Record, load_all
from benchmarks.accuracy.splits import Split, episodes, stratified_folds, stratified_sample
from benchmarks.accuracy.statistics import Estimate, difference, estimate, over_sets
from benchmarks.accuracy.study import Options

MOST = 1500  # graphs of a dataset
SHOTS, SPARE = 20, 10
WHOLE, WITHOUT, ALONE = "all blocks", "without ", "alone "
ABOUT = """What a block adds: the accuracy with all blocks minus that without it, paired by split,
in points ± standard error; and the accuracy of every block alone. At most 1,500 graphs a dataset (a
stratified sample); all labels: the folds of `development.md`; 20 shots: 20 episodes, datasets with
at least 30 graphs of every class. The same classifier as `artlas.GraphClassifier`, from kernels of
blocks that are computed once per split. A block that repeats what others say costs nothing to leave
out, however much it says alone."""


def settings_of(labels: Labels, seeds: Sequence[int]) -> dict[str, list[Split]]:
    """Make the folds and, where classes are large enough, the episodes."""
    settings = {"folds": stratified_folds(labels, seeds)}
    if int(np.bincount(labels).min()) >= SHOTS + SPARE:
        settings["20 shots"] = episodes(labels, SHOTS)
    return settings


def run(options: Options) -> None:
    """Measure all blocks, and write the page."""
    for name in options.chosen_datasets(datasets.DEVELOPMENT):
        graphs, labels = datasets.read(options.data, name)
        chosen = stratified_sample(labels, MOST)
        graphs, labels = graphs[chosen], labels[chosen]
        seeds = [0, 1, 2] if len(labels) < datasets.SMALL else [0]
        settings = settings_of(labels, seeds)
        record = Record(options.out, "blocks", name)
        about = {"seeds": seeds, "most": MOST}
        facts = {key: splits_facts(splits, labels, about) for key, splits in settings.items()}
        if not options.again and all(record.get(WHOLE, key, facts[key]["hash"]) for key in facts):
            continue
        record.rows.clear()  # of blocks that may not be there any more
        layout = blocks.layout()
        start = time.perf_counter()
        vectors = blocks.embed(graphs)
        embedding = time.perf_counter() - start
        for setting, splits in settings.items():
            for row, results in measure(vectors, layout, labels, splits).items():
                results["embed_seconds"] = embedding
                record.put(row, setting, facts[setting], results)
                if row == WHOLE:
                    say(name, row, setting, results)
    write(options)


def measure(
    vectors: torch.Tensor, layout: blocks.Layout, labels: Labels, splits: Sequence[Split]
) -> dict[str, dict[str, object]]:
    """Score all blocks, all but one, and one alone, on every split; by row."""
    choices = {WHOLE: layout.names}
    choices |= {WITHOUT + b: tuple(n for n in layout.names if n != b) for b in layout.names}
    choices |= {ALONE + b: (b,) for b in layout.names}
    accuracies: dict[str, list[float]] = {row: [] for row in choices}
    start = time.perf_counter()
    for split in splits:
        grams = BlockGrams.of(vectors, layout, split.train, split.test)
        for row, chosen in choices.items():
            found = grams.predict(labels[split.train], chosen)
            accuracies[row].append(float(np.mean(found == labels[split.test])))
    seconds = time.perf_counter() - start
    return {row: {"seconds": seconds, "accuracies": own} for row, own in accuracies.items()}


def write(options: Options) -> None:
    """Write the page of all records."""
    records = load_all(options.out, "blocks")
    sections = [ABOUT]
    for setting, title in (("folds", "All labels"), ("20 shots", "20 shots a class")):
        known = {r.dataset: r for r in records if setting in r.rows.get(WHOLE, {})}
        names = [name for name in datasets.DEVELOPMENT if name in known]
        if not names:
            continue
        kinds = {row for name in names for row in known[name].rows}
        found = [row[len(WITHOUT) :] for row in kinds if row.startswith(WITHOUT)]
        whole = {n: known[n].rows[WHOLE][setting]["accuracies"] for n in names}
        sections.append(f"## {title}")
        head = [f"{n} {100 * np.mean(whole[n]):.1f}" for n in names]
        mean = over_sets([estimate(whole[n]) for n in names])
        rows = []
        for block in found:
            cost: dict[str, Estimate] = {}
            alone: dict[str, Estimate] = {}
            for name in names:
                own = known[name].rows
                if setting in own.get(WITHOUT + block, {}):
                    without = own[WITHOUT + block][setting]["accuracies"]
                    cost[name] = difference(whole[name], without)
                    alone[name] = estimate(own[ALONE + block][setting]["accuracies"])
            cells = [cost[n].points(signed=True) if n in cost else "" for n in names]
            worth = over_sets(list(cost.values()))
            only = over_sets(list(alone.values()))
            row = [block, worth.points(signed=True), f"{100 * only.mean:.1f}", *cells]
            rows.append((worth.mean, row))
        rows.sort(key=lambda pair: -pair[0])
        columns = ["block", f"adds (all: {100 * mean.mean:.1f})", "alone", *head]
        sections.append(markdown.table(columns, [row for _, row in rows]))
    text = markdown.page("What every block is worth", options.command, records, sections)
    markdown.write(options.out / "blocks.md", text)
