"""Evaluate a baseline on one target, by the protocol of SCGFM-ART's own tables."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence

from artlas import evaluation
from artlas.nodes.ego import EgoGraphs
from artlas.training.loop import Progress
from artlas_paper.datasets import registry
from artlas_paper.datasets.features import project
from artlas_paper.methods.base import Baseline, ReadOut
from artlas_paper.methods.registry import find
from artlas_paper.protocol import HEAD, SHOTS, Level
from artlas_paper.transfer.baseline_folds import BaselineFolds
from artlas_paper.transfer.episodes import Episodes, Shots, labels_of, shown_name
from artlas_paper.transfer.records import Record, record
from artlas_paper.transfer.target import Target

CHOICE_EPISODES = 10  # of every source, by which the read-out of ego-graphs is chosen
READ_OUTS: dict[Level, tuple[ReadOut, ...]] = {"graph": ("pool",), "node": ("pool", "centre")}


def evaluate_baseline(
    folds: BaselineFolds,
    name: str,
    target: str,
    seeds: Sequence[int],
    shots: Sequence[Shots] = (SHOTS,),
    report: Callable[[Progress], None] | None = None,
    reading: Callable[[int, int], None] | None = None,
) -> Iterable[Record]:
    """Yield records of a baseline on one target: trained and untrained, by every read-out.

    Ego-graphs have two read-outs; the one with the better average over the source domains is marked
    as chosen, and the target has no part in the choice. ``reading(done, total)`` is called as
    graphs are embedded.
    """
    entry, level = find(name), folds.folds.level
    folds.folds.sources(target)  # refuses a dataset of the other level before anything is read
    target, shown = registry.find(target).name, shown_name(folds.folds, target)
    labels = labels_of(folds.folds, target)
    cache = folds.folds.runs / "embeddings"
    for seed in seeds:
        trained, cost = folds.model(entry, target, seed, report)
        untrained = folds.untrained(entry, target, seed)
        chosen, scores = choose_read_out(folds, trained, target, reading)
        for count in shots:
            episodes = Episodes.draw(labels, count)
            place = Target(target, folds.folds.root, level, cache, episodes.members)
            data = place.data("paper")
            if shown != target and isinstance(data, EgoGraphs):
                data = _projected(data, trained.config.features)
            head = "linear" if count == "all" else HEAD[level]
            for model, suffix in ((trained, ""), (untrained, "-untrained")):
                began = time.perf_counter()
                vectors = model.embed_read_outs(data, READ_OUTS[level], reading)
                each = (time.perf_counter() - began) / len(episodes.members)
                for way, z in vectors.items():
                    accuracy = evaluation.evaluate(z.numpy(), episodes.labels, episodes.drawn, head)
                    yield {
                        **record(shown, name, way + suffix, seed, episodes, accuracy, began),
                        "chosen": way == chosen,
                        "sources": scores,
                        "cost": {**cost, "embed_ms": round(1000 * each, 3)},
                    }


def _projected(egos: EgoGraphs, width: int) -> EgoGraphs:
    """Project structural features, which stand in for absent ones, as all others are."""
    assert egos.graph.x is not None
    graph = egos.graph.with_features(project(egos.graph.x, width))
    return dataclasses.replace(egos, graph=graph)


def choose_read_out(
    folds: BaselineFolds,
    model: Baseline,
    target: str,
    reading: Callable[[int, int], None] | None = None,
) -> tuple[ReadOut, dict[str, float]]:
    """Return the read-out with the better average over the sources of a fold, and the averages."""
    level = folds.folds.level
    ways = READ_OUTS[level]
    if len(ways) == 1:
        return ways[0], {}
    totals = dict.fromkeys(ways, 0.0)
    domains = folds.domains(target)
    for name, graphs in domains.items():
        episodes = Episodes.draw(labels_of(folds.folds, name), SHOTS, CHOICE_EPISODES)
        used = episodes.members
        part = graphs.select(used) if isinstance(graphs, EgoGraphs) else graphs[used]
        for way, z in model.embed_read_outs(part, ways, reading).items():
            accuracy = evaluation.evaluate(z.numpy(), episodes.labels, episodes.drawn, HEAD[level])
            totals[way] += 100 * accuracy.mean / len(domains)
    best = max(ways, key=lambda way: totals[way])
    return best, {way: round(value, 4) for way, value in totals.items()}
