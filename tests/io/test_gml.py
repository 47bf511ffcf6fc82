"""GML: what NetworkX writes, what it cannot read by itself, and hostile files."""

from __future__ import annotations

import sys
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artlas.errors import ReadError
from artlas.io import gml

unhurried = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


@st.composite
def networkx_graphs(draw):
    kind = draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))
    nodes = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    graph = kind()
    for node in nodes:
        age, score = draw(st.integers(-9, 9)), draw(st.floats(-9, 9, width=32))
        graph.add_node(node, age=age, kind='some "text" & more', score=score)
    ends = st.sampled_from(nodes)
    graph.add_edges_from(draw(st.lists(st.tuples(ends, ends), max_size=14)))
    return graph


@unhurried
@given(networkx_graphs())
def test_what_networkx_writes(tmp_path, graph):
    nx.write_gml(graph, tmp_path / "a.gml")
    reading = gml.read(tmp_path / "a.gml")
    graphs = reading.graphs
    dense = nx.to_numpy_array(graph, multigraph_weight=min)
    dense = np.maximum(dense, dense.T)
    np.fill_diagonal(dense, 0)
    assert np.array_equal(graphs.to_scipy(0).toarray(), dense)
    counted = range(len(graph))
    assert [str(i) for i in (counted if graphs.ids is None else graphs.ids)] == list(graph)
    # NetworkX writes whole floats such as 2.0 and small ones such as 1E-05 in its own way.
    assert graphs.x.tolist() == [[a["age"], a["score"]] for _, a in graph.nodes(data=True)]
    assert reading.guesses == [
        "node attributes age, score are x",
        "node attribute kind is text: left out",
    ]
    assert reading.changes["loops"] == nx.number_of_selfloops(graph)
    assert graph.is_directed() or reading.changes["one_way"] == 0


def write(tmp_path, text):
    path = tmp_path / "a.gml"
    path.write_text(text)
    return path


def test_by_hand(tmp_path):
    text = """# a comment [ with a bracket
Creator "someone [ else"  Version 1
graph [ comment "first
second line"
  node [ id 7 age -3 size 1e-2 graphics [ x 1.0 y [ z 2 ] ] ]
  edge [ source 7 target 9 weight 2.5 label "x" ] # edges may come first
  node [ id 9 age +4 size .5 ]
  edge [ source 9 target 9 ] edge [ source 9 target 7 value 1 ]
  y 1
  directed 1 ]
graph [ y 0.5 node [ id 7 age 0 size NAN ] ]
"""
    reading = gml.read(write(tmp_path, text))
    graphs = reading.graphs
    assert graphs.sizes.tolist() == [2, 1]
    assert graphs.col.tolist() == [1, 0]
    assert graphs.ids.tolist() == [7, 9, 7]
    assert graphs.x.tolist() == [[-3], [4], [0]]
    assert graphs.y.tolist() == [1, 0.5]
    assert dict(+reading.changes) == {"weights": 1, "loops": 1}
    assert reading.guesses == [
        "graph attribute y is y",
        "node attribute age is x",
        "node attribute size is not finite on every node: left out",
        "node attribute graphics is not a number: left out",
    ]


def test_one_way_edges_of_a_directed_graph_are_counted(tmp_path):
    body = "node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ]"
    assert gml.read(write(tmp_path, f"graph [ directed 1 {body} ]")).changes["one_way"] == 1
    assert gml.read(write(tmp_path, f"graph [ directed 0 {body} ]")).changes["one_way"] == 0
    assert gml.read(write(tmp_path, f"graph [ {body} ]")).changes["one_way"] == 0


def test_entities(tmp_path):
    text = 'graph [ node [ id 0 label "&quot;&#228;&#xe4;&amp;&#xD800;&nonsense;&#99999999;" ] ]'
    assert gml.read(write(tmp_path, text)).graphs.ids.tolist() == ['"ää&?&nonsense;&#99999999;']


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "graph [\nnode [ id 0 ]\nnode [\nlabel 1 ]\n]",
            "line 1: .* node #1 has no 'id' attribute",
        ),
        ("graph [\nnode [ id 0 ]\nedge [ source 0\ntarget 5 ] ]", "edge #0 has undefined target 5"),
        ("graph [\nnode [ id 0 ]\nedge [ source 0 ] ]", "edge #0 has no 'target' attribute"),
        ("graph [\nnode [ id 0 ]\nnode [ id 0 ] ]", "node id 0 is duplicated"),
        ("graph [\nnode [ id 0 id 1 ] ]", "NetworkX cannot read this graph; got error: unhash"),
        ("graph [\nnode [ id [ a 1 ] ] ]", "NetworkX cannot read this graph; got error: unhash"),
        ("graph [\nnode 7 ]", "NetworkX cannot read this graph"),
        ("graph [ node [ id 0\n]", "line 2: .* expected ']', found EOF"),
        ("graph [ node [ id 0 ] ]\n\n]", "line 3: a ] closes nothing; got ']'"),
        ("graph [ node [ id 0 ]\n7 ]", "line 2: .* expected ']', found 7"),
        ("graph [ node [ id 0 ]\nlabel\n[ ] [ ] ]", "line 3: .* expected ']', found '\\['"),
        ("graph [ node [ id 0 ]\nsize big ]", "line 2: .* expected an int, float, string or"),
        ('graph [\nlabel "abc\n\n', "line 2: a string does not end; got '\"abc'"),
        ("graph [\n\n\tnode { id 0 } ]", "line 3: this is not GML; got '{ id 0 } ]'"),
        ("graph [\ndirected 2 node [ id 0 ] ]", "line 1: directed is not 0 or 1; got 2"),
        ("graph [ directed 1\ndirected 0 node [ id 0 ] ]", "directed is not 0 or 1; got .1, 0"),
        ('Creator "me"\ngraph [ ]', "line 2: a graph has no nodes"),
        ('Creator "me"', "there is no graph in the file"),
        ("", "there is no graph in the file"),
        ("graph", "there is no graph in the file"),
        (f'graph [ node [ id 0 label "&#{"1" * 5000};" ] ]', "NetworkX cannot read this graph"),
        (f"graph [ node [ id {'9' * 5000} ] ]", "line 1: a number cannot be read"),
    ],
)
def test_refused_by_line(tmp_path, text, message):
    with pytest.raises(ReadError, match=message) as error:
        gml.read(write(tmp_path, text))
    assert "To fix this, " in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "graph [ " + "a [ " * 100_000,
        "graph [ node [ id 0 " + "a [ " * 100_000 + "] " * 100_000 + "] ]]",
        "graph [ node [ id " + "1" * 1_000_000 + "x",
        'graph [ a "' + "&" * 1_000_000,
        'graph [ a "' + "&#" * 500_000 + '" ',
        "." * 500_000,
        "#" * 1_000_000,
    ],
)
def test_depth_and_length_cost_no_more_than_the_file(tmp_path, text):
    start = time.perf_counter()
    with pytest.raises(ReadError):
        gml.read(write(tmp_path, text))
    assert time.perf_counter() - start < 2


def test_deep_lists_are_passed_over(tmp_path):
    deep = "a [ " * 50_000 + "] " * 50_000
    graphs = gml.read(write(tmp_path, f"graph [ node [ id 3 {deep} ] ]")).graphs
    assert graphs.ids.tolist() == [3]


def test_strings_over_lines_keys_and_parallel_edges(tmp_path):
    text = """graph [ multigraph 0
node [ id 0 label "one # two
graph [ x ]   three" ]
node [ id 1 label "four" size -1E5 ]
edge [ source 0 target 1 ] edge [ source 0 target 1 ] edge [ source 1 target 0 ] ]"""
    reading = gml.read(write(tmp_path, text))
    assert reading.graphs.ids.tolist() == ["one # two\ngraph [ x ]   three", "four"]
    assert dict(+reading.changes) == {"duplicates": 1}
    assert reading.guesses == ["node attribute size is not on every node: left out"]


def test_nothing_in_a_file_is_executed(tmp_path, monkeypatch):
    parse, options = nx.parse_gml, []

    def parse_gml(lines, **chosen):
        options.append(chosen)
        return parse(lines, **chosen)

    monkeypatch.setattr(nx, "parse_gml", parse_gml)
    text = "graph [ node [ id 0 label \"__import__('os').abort()\" ] ]"
    assert gml.read(write(tmp_path, text)).graphs.ids.tolist() == ["__import__('os').abort()"]
    assert options == [{"label": "id", "destringizer": None}]


def test_too_many_words_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(gml, "MOST_TOKENS", 10)
    with pytest.raises(ReadError, match="line 2: this is too large for GML; got more than 10 wor"):
        gml.read(write(tmp_path, "graph [\n" + "node [ id 0 ]" * 3))


def test_without_networkx(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install 'artlas\[demo\]'"):
        gml.read(write(tmp_path, "graph [ ]"))
