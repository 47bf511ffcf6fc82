"""Certificates: intervals contain the exact values, and broken models are reported as such."""

from __future__ import annotations

import itertools
import json

import networkx as nx
import numpy as np
import pytest
import torch
from cases import oracle_graphs, sharpened
from exact_gw import discrepancy, minimal_energy
from typer.testing import CliRunner

import artlas
from artlas import kernels
from artlas.certify import HOLDS, UNDECIDED, VIOLATED, Interval, certify, measure
from artlas.certify.certificate import judge
from artlas.cli import app
from artlas.method.energy import coverage

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the solver is compiled code")
TINY = artlas.ArtConfig(bases=3, roles=3, hidden=8)


def tiny_graphs():
    edge_and_node = nx.disjoint_union(nx.path_graph(2), nx.path_graph(1))
    made = [nx.gnp_random_graph(4, 0.6, seed=4), nx.complete_graph(3), nx.path_graph(3)]
    return artlas.Graphs.from_networkx([*made, nx.path_graph(2), nx.empty_graph(2), edge_and_node])


@pytest.fixture(scope="module", params=[1.0, 60.0], ids=["flat", "sharp"])
def tiny(request):
    """A tiny model, its certificate, exact least energies [G, K] and discrepancies of all pairs."""
    model, graphs = sharpened(TINY, request.param), tiny_graphs()
    structures = [(A.numpy(), mu.numpy()) for A, mu in oracle_graphs(graphs)]
    relations = model.atlas.relations().detach().double().numpy()
    nu = np.full(3, 1 / 3)
    least = np.array([[minimal_energy(one, (B, nu)) for B in relations] for one in structures])
    pairs = list(itertools.combinations(range(len(graphs)), 2))
    between = np.array([discrepancy(structures[i], structures[j]) for i, j in pairs])
    return model, certify(model, graphs), least, between


def contains(interval, truth, slack=1e-6):
    assert (interval.low <= truth + slack).all(), (interval.low - truth).max()
    assert (interval.high >= truth - slack).all(), (truth - interval.high).max()


@pytest.mark.slow
def test_every_interval_contains_the_exact_value(tiny):
    model, made, least, between = tiny
    energies = made.energies
    contains(made.least_energies, least)
    contains(made.nearest_energy, least.min(1))
    contains(made.covering_radius, np.sqrt(least.min(1).max()))
    contains(made.amortisation_error, np.abs(np.sqrt(energies) - np.sqrt(least)).max(1))
    ideal = least <= least.min(1, keepdims=True) + 1e-9
    excess = np.where(ideal, energies - least, np.inf).min(1)
    contains(made.excess, excess)
    contains(made.coverage_bound, least.min(1) + excess + 0.1 * np.log(3))
    contains(made.distances, between, 1e-5)
    assert made.verdict == HOLDS
    wanted = coverage(torch.from_numpy(energies), model.config.coverage_temperature)
    np.testing.assert_allclose(made.coverage, wanted, atol=1e-12)
    # not so wide that anything would be in it
    assert (made.least_energies.high - made.least_energies.low).max() < 0.15
    assert [s.holds for s in made.statements].count(6) == 7


def test_excess_allows_for_an_unknown_nearest_base():
    energies = np.array([[0.5, 0.4, 0.9]])
    excess, ideal = measure._excess(
        energies, Interval(np.array([[0.1, 0.25, 0.6]]), np.array([[0.3, 0.35, 0.7]]))
    )
    # bases 0 and 1 may be nearest, base 2 cannot: m* <= 0.3 < 0.6
    np.testing.assert_allclose([excess.low[0], excess.high[0]], [0.1, 0.4])
    np.testing.assert_allclose([ideal.low[0], ideal.high[0]], [0.4, 0.5])


def test_verdicts_of_intervals():
    def judged(x, y):
        ends = (Interval(np.array([a]), np.array([b])) for a, b in (x, y))
        return judge("s", "x <= y", *ends, ["g"]).verdict

    assert judged((0.1, 0.2), (0.2, 0.3)) == HOLDS
    assert judged((0.1, 0.25), (0.2, 0.3)) == UNDECIDED
    assert judged((0.4, 0.5), (0.2, 0.3)) == VIOLATED
    assert judged((np.nan, np.nan), (0.2, 0.3)) == VIOLATED


def test_node_order_does_not_matter():
    rng, graphs = np.random.default_rng(0), tiny_graphs()
    moved = []
    for g in range(len(graphs)):
        order = rng.permutation(graphs[g].num_nodes)
        moved.append(graphs.to_scipy(g).toarray()[np.ix_(order, order)])
    model = sharpened(TINY)
    one, other = certify(model, graphs), certify(model, artlas.Graphs.from_scipy(moved))
    for name in ("energies", "coverage", "coordinate_distances"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-5)
    intervals = (
        "least_energies",
        "nearest_energy",
        "amortisation_error",
        "excess",
        "coverage_bound",
        "covering_radius",
        "distances",
    )
    for name in intervals:
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5, err_msg=name)
    assert [s.verdict for s in one.statements] == [s.verdict for s in other.statements]


def verdicts(made):
    return {s.name: s.verdict for s in made.statements}


def test_energies_that_are_not_those_of_couplings_are_violations():
    class Boasting(artlas.ART):
        def energies_and_residuals(self, graphs):
            energies, residuals = super().energies_and_residuals(graphs)
            return energies * 0.2, residuals

    found = verdicts(certify(Boasting(TINY), tiny_graphs(), names=list("abcdef")))
    assert found["energies are those of the couplings"] == VIOLATED
    assert found["no coupling beats the least energy"] == VIOLATED
    assert found["couplings are feasible"] == HOLDS


def test_couplings_that_are_not_feasible_are_violations():
    class Leaking(artlas.ART):
        def couplings(self, graph):
            made = super().couplings(graph)
            made[1, 0] *= 0.9
            return made

    made = certify(Leaking(TINY), tiny_graphs(), names=list("abcdef"), pairs=2)
    found = {s.name: s for s in made.statements}
    assert found["couplings are feasible"].violated == tuple("abcdef")
    assert made.verdict == VIOLATED


def test_graphs_and_pairs_are_drawn_by_the_seed():
    model, graphs = artlas.ART(TINY), tiny_graphs()
    made = certify(model, graphs, most=4, pairs=3, seed=1)
    again = certify(model, graphs, most=4, pairs=3, seed=1)
    other = certify(model, graphs, most=4, pairs=3, seed=2)
    assert made.to_dict() == again.to_dict()
    assert made.names != other.names
    assert len(made.names) == len(set(made.names)) == 4
    assert made.graphs_given == 6
    assert made.pairs.shape == (3, 2)
    numbers = [int(name.split()[1]) for name in made.names]
    whole = certify(model, graphs)
    np.testing.assert_allclose(made.energies, whole.energies[numbers], atol=1e-6)
    alone = certify(model, graphs[0])
    assert alone.pairs.shape == (0, 2)
    assert alone.verdict == HOLDS
    with pytest.raises(ValueError, match="2 names for 6 graphs"):
        certify(model, graphs, names=["a", "b"])


def run(*words):
    return CliRunner().invoke(app, ["certify", *map(str, words)])


def test_the_command(tmp_path):
    (tmp_path / "in").mkdir()
    nx.write_graphml(nx.petersen_graph(), tmp_path / "in/p.graphml")
    (tmp_path / "in/t.csv").write_text("a,b\nb,c\nc,a\nc,d\n")
    done = run(tmp_path / "in", "--out", tmp_path / "c.json")
    assert done.exit_code == 0, done.output
    assert "Verdict: holds" in done.output
    assert "local optima" in done.output
    assert "2 of 2 graphs, 1 pairs, seed 0" in done.output
    kept = json.loads((tmp_path / "c.json").read_text())
    assert [graph["name"] for graph in kept["graphs"]] == ["in/p.graphml", "in/t.csv"]
    wanted = certify(artlas.load("graph"), [tmp_path / "in/p.graphml", tmp_path / "in/t.csv"])
    np.testing.assert_allclose(
        kept["graphs"][0]["eta"], np.array(wanted.amortisation_error)[:, 0], atol=1e-9
    )
    np.testing.assert_allclose(kept["radius"], wanted.covering_radius, atol=1e-9)
    low, high = kept["pairs"][0]["d"]
    assert 0 < low <= high
    assert all(s["verdict"] == HOLDS for s in kept["statements"])


def test_the_command_says_what_is_violated_and_exits_with_2(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\nb,c\nc,a\nc,d\n")
    monkeypatch.setattr(
        measure, "energy_bounds", lambda graphs, relations, epsilon: np.full((1, 16), 0.9)
    )
    done = run(tmp_path / "t.csv", "--quiet")
    assert done.exit_code == 2
    assert "Verdict: violated" in done.output
    assert "lower bound <= solver: violated for" in done.output
    assert "eta" not in done.output.splitlines()[0]


def test_bad_input_is_named(tmp_path, monkeypatch):
    (tmp_path / "bad.graphml").write_text("<graphml")
    done = run(tmp_path / "bad.graphml")
    assert done.exit_code == 1
    assert "bad.graphml" in done.output
    assert run(tmp_path / "absent.csv").exit_code == 1
    (tmp_path / "empty").mkdir()
    done = run(tmp_path / "empty")
    assert done.exit_code == 1
    assert "there is no graph" in done.output
    (tmp_path / "t.csv").write_text("a,b\nb,c\nc,a\nc,d\n")
    monkeypatch.setattr(measure, "MOST_NODES", 3)
    done = run(tmp_path / "t.csv", "--model", "graph")
    assert done.exit_code == 1
    assert "too large for the iterative solver; got 4 nodes" in done.output
