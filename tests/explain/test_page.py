"""The page about one graph: what it says, that it is self-contained, and that browsers draw it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
from typer.testing import CliRunner

import artlas
from artlas.cli import app
from artlas.errors import ReadError
from artlas.explain import explanation, page
from artlas.explain.explanation import explain, spring_layout
from artlas.method import checkpoint
from artlas.training import pretraining_coverage
from artlas.training.pretraining_coverage import PretrainingCoverage


@pytest.fixture(scope="module")
def model():
    return artlas.load("graph")


@pytest.fixture(scope="module")
def karate():
    made = nx.Graph(nx.karate_club_graph().edges)
    return artlas.Graphs.from_networkx([made])


def test_roles_are_distributions_of_the_mixed_coupling(model, karate):
    found = model.align(karate)
    roles = found.roles(0)
    assert roles.shape == (34, 32)
    np.testing.assert_allclose(roles.sum(1), 1, atol=1e-5)
    mixed = (found.responsibilities[0][:, None, None] * found.couplings(0)).sum(0)
    np.testing.assert_allclose(roles, mixed / mixed.sum(1, keepdim=True), atol=1e-4)
    with pytest.raises(IndexError, match="1 graphs here; got number 1"):
        found.roles(1)


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.text.append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    return reader


def test_the_page_says_what_the_model_says(model, karate):
    made = explain(model, karate, "a <club>", pretraining_coverage.load("graph"))
    parsed = read(page.render(made))
    text = " ".join(parsed.text)
    assert parsed.tags.count("circle") == 34 + 5 * pretraining_coverage.EACH
    assert parsed.tags.count("rect") == page.NEAREST * 32 * 32
    assert "a <club>" in text
    assert "34 nodes, 78 edges" in text
    found = model.align(karate)
    best = int(found.energies.argmin())
    assert f"nearest base is number {best + 1}" in text
    assert f"saves {100 * found.gain[0, best]:.1f} %" in text
    assert "script" not in parsed.tags
    assert not parsed.links
    assert "http" not in page.render(made)


def test_names_are_shown_and_escaped(tmp_path, model):
    (tmp_path / "t.csv").write_text("<b>,y\ny,z\n")
    graph = artlas.read(tmp_path / "t.csv", verbose=False)
    text = page.render(explain(model, graph, "t"))
    assert "<title>&lt;b&gt;: role" in text
    assert "<title>z: role" in text
    assert "<b>" not in text
    assert "no record of the pretraining graphs" in text


def test_far_near_and_usual_graphs_are_told_apart(model, karate):
    distance = float(model.align(karate).coordinates.min())
    for scale, wanted in ((0.5, "lies outside"), (1.0, "atlas covers it"), (2.0, "says little")):
        grid = np.linspace(0.9, 1.1, 101) * distance * scale
        known = PretrainingCoverage(grid, {"one": np.random.default_rng(0).random((9, 16))})
        assert wanted in page.render(explain(model, karate, "t", known))
    half = PretrainingCoverage(np.linspace(0, 2, 101) * distance, known.domains)
    assert "50 % of the pretraining graphs are nearer" in page.render(
        explain(model, karate, "t", half)
    )


@pytest.mark.slow
def test_large_graphs_are_drawn_in_part(model):
    graph = artlas.Graphs.from_networkx([nx.barabasi_albert_graph(900, 2, seed=1)])
    made = explain(model, graph, "large")
    assert len(made.drawn) == explanation.MOST_DRAWN
    assert int(graph.degree.argmax()) in made.drawn
    assert "900 nodes" in (text := page.render(made))
    assert f"the {explanation.MOST_DRAWN} nodes around" in text


def test_layout_puts_neighbours_closer_than_others():
    graph = artlas.Graphs.from_networkx([nx.grid_2d_graph(6, 6)])
    at = spring_layout(graph)
    assert at.min() == 0
    assert at.max() == 1
    np.testing.assert_array_equal(at, spring_layout(graph))
    row = np.repeat(np.arange(36), graph.row_ptr.diff().numpy())
    edges = np.linalg.norm(at[row] - at[graph.col.numpy()], axis=1)
    every = np.linalg.norm(at[:, None] - at, axis=2)
    assert edges.mean() < 0.5 * every.mean()
    assert spring_layout(artlas.Graphs.from_edges([(1, [[], []])])).shape == (1, 2)


def test_reference_of_a_run_and_of_the_shipped_models(tmp_path, karate):
    config = artlas.ArtConfig(bases=3, roles=4, hidden=16)
    sources = {"clubs": artlas.Graphs.concat([karate, karate])}
    model = artlas.pretrain(sources, config, artlas.PretrainConfig(epochs=1), tmp_path)
    kept = pretraining_coverage.load(tmp_path)
    q = model.align(karate).coordinates.double().numpy()
    np.testing.assert_allclose(kept.distances, q.min(), atol=1e-5)
    np.testing.assert_allclose(kept.domains["clubs"], np.repeat(q, 2, 0), atol=1e-4)
    assert pretraining_coverage.load(checkpoint.SHIPPED) is None
    for name in ("graph", "node"):
        known = pretraining_coverage.load(name)
        assert (np.diff(known.distances) >= 0).all()
        assert {len(points) for points in known.domains.values()} == {pretraining_coverage.EACH}
    (tmp_path / pretraining_coverage.FILE).write_text("{}")
    with pytest.raises(ReadError, match="no reference"):
        pretraining_coverage.load(tmp_path)


def test_the_command(tmp_path):
    nx.write_graphml(nx.petersen_graph(), tmp_path / "p.graphml")
    out = tmp_path / "p.html"
    done = CliRunner().invoke(app, ["explain", str(tmp_path / "p.graphml"), "--out", str(out)])
    assert done.exit_code == 0
    assert "p.graphml" in out.read_text()
    words = ["explain", str(tmp_path / "p.graphml"), "--number", "3", "--out", str(out)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert "no graph 3" in done.output


def test_a_browser_draws_it(tmp_path, model, karate, chromium):
    made = explain(model, karate, "club", pretraining_coverage.load("graph"))
    (tmp_path / "page.html").write_text(page.render(made))
    document = chromium(tmp_path / "page.html")
    assert len(re.findall("<circle", document)) == 34 + 5 * pretraining_coverage.EACH
    assert len(re.findall("<rect", document)) == page.NEAREST * 32 * 32
    assert "<section><h2>All bases</h2>" in document
