"""The study of perturbation: measures on known cases, permuted roles, and the quick command."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch
from cases import from_dense, random_dense, sharpened
from scipy import stats

import artlas
from artlas.method.config import UNIFORM
from artlas_paper.studies import perturbation, rewiring_measures, role_permutation
from artlas_paper.studies.perturbation import Alignment

SMALL = artlas.ArtConfig(bases=3, roles=4, hidden=16)
THREE = ["BZR", "IMDB-BINARY", "PROTEINS"]


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    made = from_dense([random_dense(n, 0.4, rng) for n in (6, 9, 12, 7)])
    return made.with_features(rng.normal(size=(made.num_nodes, 2)))


def test_cosine_distance():
    first = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    second = np.array([[0.0, 5.0], [2.0, 2.0], [-1.0, 0.0], [0.0, 0.0], [3.0, 4.0 + 4e-8]])
    found = rewiring_measures.cosine_distance(first, second)
    np.testing.assert_allclose(found[:4], [1, 0, 2, 0], atol=1e-15)
    # the angle is 24e-8 / 25, and 1 - cos of it is lost to rounding when computed as such
    assert found[4] == pytest.approx((24e-8 / 50) ** 2 / 2, rel=1e-6)


def test_change_of_couplings():
    T = np.zeros((2, 2, 2), dtype=np.float32)
    T[:, 0, 0] = T[:, 1, 1] = 0.5
    swapped = T.copy()
    swapped[1] = T[1, ::-1]
    assert rewiring_measures.coupling_change(T, T) == 0
    assert rewiring_measures.coupling_change(T, swapped) == pytest.approx(
        2**0.5 / 2
    )  # one base of two


def test_a_standardised_distance_is_a_share_of_what_lies_between_objects():
    rng = np.random.default_rng(1)
    q = rng.normal(size=(20, 3)) * [1, 100, 0.01] + [5, 0, 9]
    constant = np.column_stack([q, np.full(20, 2.0)])
    moved = rewiring_measures.standardised_distance(constant, constant[::-1])
    unit = (q - q.mean(0)) / q.std(0)
    apart = np.linalg.norm(unit[:, None] - unit[None], axis=2)
    typical = np.sqrt((apart**2).sum() / (20 * 19))
    np.testing.assert_allclose(moved, np.linalg.norm(unit - unit[::-1], axis=1) / typical)
    assert not rewiring_measures.standardised_distance(q, q).any()


def test_intervals_are_students():
    values = np.random.default_rng(2).normal(size=11)
    mean, half = rewiring_measures.interval(values)
    low, high = stats.t.interval(0.95, 10, values.mean(), stats.sem(values))
    assert (mean - half, mean + half) == pytest.approx((low, high))


def test_an_alignment_holds_the_values_of_the_model(graphs):
    model = sharpened(SMALL, 5.0)
    alignment = Alignment.of(model, graphs)
    np.testing.assert_array_equal(alignment.features, model.embed(graphs, "features"))
    np.testing.assert_allclose(alignment.coordinates, model.embed(graphs, "coordinates"), rtol=1e-6)
    assert [c.shape for c in alignment.couplings] == [(3, n, 4) for n in (6, 9, 12, 7)]
    independent = artlas.ART(SMALL)
    with torch.no_grad():
        independent.node_projection.weight.zero_()  # the independent coupling saves nothing
    np.testing.assert_allclose(Alignment.of(independent, graphs).gain, 0, atol=1e-5)


# Permuted roles


def test_without_a_permutation_the_features_are_the_models(graphs):
    model = sharpened(SMALL, 5.0)
    roles, measure = role_permutation.role_shares(model, graphs)
    np.testing.assert_allclose(roles.sum(1), 1, atol=1e-5)
    found = role_permutation.transported_features(model, graphs, roles, measure)
    np.testing.assert_allclose(found, model.embed(graphs, "features"), atol=1e-4)


def test_orders_stay_within_their_graph(graphs):
    order = role_permutation.random_orders(graphs, np.random.default_rng(0))
    for part, start, size in zip(
        order.split(graphs.sizes.tolist()), graphs.node_ptr, graphs.sizes, strict=False
    ):
        assert sorted(part.tolist()) == list(range(int(start), int(start + size)))
    assert not torch.equal(order, torch.arange(graphs.num_nodes))


def test_shares_are_those_of_all_permutations_kept(graphs):
    model, draws = sharpened(SMALL, 5.0), 30
    rng = np.random.default_rng(42)
    roles, measure = role_permutation.role_shares(model, graphs)
    kept = np.stack(
        [
            role_permutation.transported_features(
                model, graphs, roles, measure, role_permutation.random_orders(graphs, rng)
            )
            for _ in range(draws)
        ]
    )
    true = role_permutation.transported_features(model, graphs, roles, measure).numpy()
    within = kept.var(0, ddof=1).mean(0)
    between = np.maximum(kept.mean(0).var(0, ddof=1) - within / draws, 0)
    departure = ((true - kept.mean(0)) ** 2).mean(0)
    found = role_permutation.variance_shares(model, graphs, draws, lambda done, total: None)
    whole = within + between
    assert found["columns"] == 8
    assert found["share"] == pytest.approx((within / whole).mean())
    assert found["share_raw"] == pytest.approx(within.sum() / whole.sum())
    assert found["departure"] == pytest.approx((departure / whole).mean())
    assert 0 < found["share"] < 1


def test_uninformative_roles_have_no_share(graphs):
    nothing = artlas.ART(artlas.ArtConfig(bases=3, roles=4, hidden=16, measure_epsilon=UNIFORM))
    with torch.no_grad():
        nothing.node_projection.weight.zero_()
    found = role_permutation.variance_shares(nothing, graphs, 5, lambda done, total: None)
    assert found["share"] < 1e-9
    assert found["departure"] < 1e-9


# The command


@pytest.mark.slow
def test_the_quick_command(quick_study, tmp_path):
    run = partial(quick_study, "perturbation")
    done = run("--metric", "paper,energy")
    assert done.exit_code == 0, done.output
    assert "Permuted roles" not in done.output.partition("### ")[2]
    done = run()
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    files = {path.name for path in out.iterdir()}
    assert files == {f"perturbation-quick.{kind}" for kind in ("json", "md", "png", "svg")}
    assert "| BZR | paper, largest | - | 1.197 ± 0.011 | - | < 6e-06 | - | 0 |" in done.output
    records = json.loads((out / "perturbation-quick.json").read_text())
    assert len(records) == 3 * (5 + 2) + 1
    own = {(r["metric"], r["ratio"]): r for r in records if r["variant"] == "learned"}
    assert len(own) == 3 * 5 + 1
    other = {
        r["variant"]: r["delta_t"] for r in records if (r["metric"], r["ratio"]) == ("paper", 0.6)
    }
    assert other["learned"] == own["paper", 0.6]["delta_t"]
    assert len(set(other.values())) == 3
    assert "| BZR | random-bases | " in done.output
    assert own["paper", 0.0]["delta_t"] == own["paper", 0.0]["delta_q"] == 0
    assert own["standardised", 0.0]["moved"] == own["energy", 0.0]["gain_change"] == 0
    for metric, name in (("paper", "delta_t"), ("paper", "delta_h"), ("paper", "realised")):
        values = [own[metric, ratio][name] for ratio in perturbation.RATIOS]
        assert values == sorted(values)
        assert values[-1] > 0.01
    assert all(r["pooling"] == 0 for r in records if r["metric"] == "paper")
    assert 0 < own["permuted", None]["share"] < 1
    assert own["permuted", None]["accuracy"] > 40


def test_metrics_that_are_none(quick_study):
    done = quick_study("perturbation", "--metric", "paper,best")
    assert done.exit_code == 2
    assert "no metric 'best'" in done.output
