r"""How much of the transported features depends on which node plays which role?

Measures the metric ``permuted`` of the study of perturbation. Let :math:`R = T_{mix} / \mu`, whose
row i is the distribution of node i over the roles. Under a permutation :math:`\pi` of the nodes,

.. math:: H_\pi = N \sum_i \mu_i R_{\pi(i)}^\top x_i

keeps the attributes, the measure and the set of role distributions of the graph, but not which node
has which distribution; the identity gives H. (The masses of the roles,
:math:`\sum_i \mu_i R_{\pi(i)}`, are then no longer exactly 1 / M where the measure is not uniform.)

Per column of H, W is the variance over permutations within a graph, averaged over graphs, and B the
variance between graphs of the mean over permutations, less the W / P that P permutations leave in
it. The share :math:`W / (W + B)` is the part of the variance that depends on which node plays which
role; attributes, measure and size alone determine the rest. The departure replaces W by the mean
squared distance of the true H from the mean over permutations. It equals the share if the true
assignment is like any other, and exceeds it if the true assignment is unusual.

    artlas-paper study perturbation --metric permuted --root ROOT --out DIR
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artlas import evaluation
from artlas.graphs.collection import Graphs
from artlas.graphs.measure import degree_measure
from artlas.method.batching import GraphBatch, split_by_budget
from artlas.method.energy import coordinates
from artlas.method.model import ART
from artlas.method.representations import node_features
from artlas.nodes.ego import EgoGraphs
from artlas_paper.protocol import HEAD, SAMPLING_SEED, SHOTS
from artlas_paper.studies.study import ReportProgress
from artlas_paper.transfer.episodes import Episodes, labels_of
from artlas_paper.transfer.folds import Folds
from artlas_paper.transfer.target import Target

PERMUTATIONS, EVALUATIONS = 20, 3
FLAT = 1e-9  # share of a column's mean square below which its variance is rounding
Values = NDArray[np.float64]


def variance_shares(
    model: ART, graphs: Graphs, draws: int, report: ReportProgress
) -> dict[str, Any]:
    """Compute share and departure over graphs, from ``draws`` permutations of each.

    ``share`` and ``departure`` are means over the columns that vary, each standardised as by a
    head; ``share_raw`` and ``departure_raw`` are ratios of the sums over columns.
    """
    rng = np.random.default_rng(SAMPLING_SEED)
    roles, measure = role_shares(model, graphs)
    mean = torch.zeros(())
    within = torch.zeros(())
    for i in range(draws):  # Welford's update, which keeps one [G, M d] in memory
        report(i, draws)
        permuted = transported_features(model, graphs, roles, measure, random_orders(graphs, rng))
        step = permuted - mean
        mean = mean + step / (i + 1)
        within = within + step * (permuted - mean)
    inside = (within / (draws - 1)).mean(0).numpy()
    between = np.maximum(mean.var(0).numpy() - inside / draws, 0)
    true = transported_features(model, graphs, roles, measure)
    whole = inside + between
    kept = whole > FLAT * (mean**2).mean(0).numpy().clip(1e-300)
    departure = ((true - mean) ** 2).mean(0).numpy()
    return {
        "share": float((inside[kept] / whole[kept]).mean()),
        "departure": float((departure[kept] / whole[kept]).mean()),
        "share_raw": float(inside[kept].sum() / whole[kept].sum()),
        "departure_raw": float(departure[kept].sum() / whole[kept].sum()),
        "columns": int(kept.sum()),
        "permutations": draws,
    }


def permuted_accuracies(
    folds: Folds, model: ART, target: str, draws: int, report: ReportProgress
) -> dict[str, Any]:
    """Compare the 5-shot accuracy, in percent, of z by true and by permuted roles.

    The episodes are those of transfer. The permuted accuracy is the mean over ``draws``; the
    difference is paired by episode, with its standard error.
    """
    episodes = Episodes.draw(labels_of(folds, target), SHOTS)
    place = Target(target, folds.root, folds.level, folds.runs, episodes.members)
    data, head = place.data("paper"), HEAD[folds.level]
    generators = [np.random.default_rng((43, draw)) for draw in range(draws)]
    versions: list[list[Tensor]] = [[] for _ in range(draws + 1)]  # true, then permuted
    for part in _batches(model, data):
        q = coordinates(model.align(part).energies).double()
        roles, measure = role_shares(model, part)
        for i, parts in enumerate(versions):
            order = random_orders(part, generators[i - 1]) if i else None
            features = transported_features(model, part, roles, measure, order)
            parts.append(torch.cat([q, features], 1).float())
    scores = []
    for i, parts in enumerate(versions):
        report(i, draws + 1)
        values = torch.cat(parts).numpy()
        scores.append(evaluation.evaluate(values, episodes.labels, episodes.drawn, head))
    true, chance = scores[0], evaluation.Accuracy(np.mean([s.episodes for s in scores[1:]], axis=0))
    lead, error = true.difference_from(chance)
    return {
        "accuracy": round(100 * true.mean, 4),
        "accuracy_permuted": round(100 * chance.mean, 4),
        "difference": round(100 * lead, 4),
        "difference_error": round(100 * error, 4),
        "evaluations": draws,
    }


def random_orders(graphs: Graphs, rng: np.random.Generator) -> Tensor:
    """Shuffle the nodes within each graph; indices are into the nodes of all graphs, [N]."""
    starts, sizes = graphs.node_ptr[:-1].tolist(), graphs.sizes.tolist()
    parts = [start + rng.permutation(size) for start, size in zip(starts, sizes, strict=True)]
    return torch.from_numpy(np.concatenate(parts))


def role_shares(model: ART, graphs: Graphs) -> tuple[Tensor, Tensor]:
    """Compute R = T_mix / mu [N, M] of every node, and mu [N], in float64."""
    measure = degree_measure(graphs, model.config.measure_epsilon)
    return model.mixtures(graphs).double() / measure[:, None], measure


def transported_features(
    model: ART, graphs: Graphs, roles: Tensor, measure: Tensor, order: Tensor | None = None
) -> Tensor:
    """Compute vec H with the rows of R taken in another order, [G, M d]; vec H without one."""
    rows = (roles if order is None else roles[order]) * measure[:, None]
    sizes, x = graphs.sizes.tolist(), node_features(GraphBatch(graphs), model.config).double()
    parts = zip(rows.split(sizes), x.split(sizes), strict=True)
    return torch.stack([len(t) * (t.T @ own) for t, own in parts]).flatten(1)


def _batches(model: ART, data: Graphs | EgoGraphs) -> Iterator[Graphs]:
    """Split graphs into batches that fit into memory with their features."""
    return (batch.graphs for batch in split_by_budget(model.config, data))
