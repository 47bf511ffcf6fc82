"""Node-link JSON against NetworkX, and what must be refused, by place."""

from __future__ import annotations

import json
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artlas.errors import ReadError
from artlas.io import node_link

unhurried = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
scalars = st.one_of(st.text(max_size=4), st.integers(), st.floats(allow_nan=False, width=32))
finite = scalars.filter(lambda value: value not in (float("inf"), float("-inf")))
names = st.one_of(finite, st.tuples(finite, finite))


@st.composite
def networkx_graphs(draw):
    kind = draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))
    nodes = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    graph = kind()
    for node in nodes:
        age, flag = draw(st.integers(-9, 9)), draw(st.booleans())
        graph.add_node(node, age=age, kind="text", flag=flag, nested=[1])
    ends = st.sampled_from(nodes)
    graph.add_edges_from(draw(st.lists(st.tuples(ends, ends), max_size=14)))
    return graph


@unhurried
@given(networkx_graphs(), st.sampled_from(["links", "edges"]))
def test_what_networkx_writes(tmp_path, graph, key):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(nx.node_link_data(graph, edges=key)))
    back = nx.node_link_graph(json.loads(path.read_text()), edges=key)
    assert nx.utils.graphs_equal(back, graph)  # the oracle reads what it wrote
    reading = node_link.read(path)
    dense = nx.to_numpy_array(graph, multigraph_weight=min)
    dense = np.maximum(dense, dense.T)
    np.fill_diagonal(dense, 0)
    assert np.array_equal(reading.graphs.to_scipy(0).toarray(), dense)
    ids = range(len(graph)) if reading.graphs.ids is None else reading.graphs.ids
    assert [str(i) for i in ids] == [str(node) for node in graph]
    assert reading.graphs.x.tolist() == [[a["age"], a["flag"]] for _, a in graph.nodes(data=True)]
    assert reading.guesses == [
        "node attributes age, flag are x",
        "node attribute kind is text: left out",
        "node attribute nested is not a number: left out",
    ]
    assert reading.changes["loops"] == nx.number_of_selfloops(graph)
    assert graph.is_directed() or reading.changes["one_way"] == 0


def write(tmp_path, value, name="a.json"):
    path = tmp_path / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_d3_links_by_position(tmp_path):
    value = {
        "nodes": [{"name": "Myriel", "group": 1}, {"name": "Napoleon", "group": 2}, {"group": 2}],
        "links": [{"source": 2, "target": 0, "value": 8}, {"source": 0, "target": 1, "value": 1}],
    }
    reading = node_link.read(write(tmp_path, value))
    assert reading.graphs.col.tolist() == [1, 2, 0, 0]
    assert reading.graphs.x.tolist() == [[1], [2], [2]]
    assert reading.graphs.ids is None
    assert dict(+reading.changes) == {"weights": 1}
    assert "nodes have no id: links are positions" in reading.guesses


def graph(n, y=None, **more):
    nodes = [{"id": i + 10} for i in range(n)]
    links = [{"source": i + 10, "target": i + 11} for i in range(n - 1)]
    return {"nodes": nodes, "links": links, "graph": {} if y is None else {"y": y}, **more}


def test_lists_and_lines_of_graphs(tmp_path):
    values = [graph(3, y=1), graph(1, y=0), graph(2, y=2, directed=True)]
    lines = "\n".join(map(json.dumps, values[:2])) + "\n\n" + json.dumps(values[2]) + "\n"
    for path in (write(tmp_path, values), write(tmp_path, lines, "a.jsonl")):
        reading = node_link.read(path)
        assert reading.graphs.sizes.tolist() == [3, 1, 2]
        assert reading.graphs.col.tolist() == [1, 0, 2, 1, 5, 4]
        assert reading.graphs.y.tolist() == [1, 0, 2]
        assert reading.graphs.ids.tolist() == [10, 11, 12, 10, 10, 11]
        assert dict(+reading.changes) == {"one_way": 1}


def test_labels(tmp_path):
    nodes = [{"id": 0, "y": 2}, {"id": 1, "y": 0}]
    reading = node_link.read(write(tmp_path, {"nodes": nodes, "links": []}))
    assert reading.graphs.y.tolist() == [2, 0]
    assert reading.graphs.x is None
    reading = node_link.read(write(tmp_path, {"nodes": nodes, "links": [], "graph": {"y": 1.5}}))
    assert reading.graphs.y.tolist() == [1.5]
    assert reading.guesses[1:] == ["node attribute y is not y of the graphs: left out"]
    nodes[0]["y"] = 0.5
    reading = node_link.read(write(tmp_path, {"nodes": nodes, "links": []}))
    assert reading.graphs.y is None
    assert reading.graphs.x is None
    assert reading.guesses == ["node attribute y is not whole numbers: left out"]
    reading = node_link.read(write(tmp_path, [graph(2, y=1), graph(2)]))
    assert reading.graphs.y is None
    assert reading.guesses == ["graph attribute y is not a number on every graph: left out"]


def test_many_attributes_are_not_all_named(tmp_path):
    nodes = [{"id": 0, **{f"a{i}": i for i in range(11)}, **{f"b{i}": "" for i in range(8)}}]
    reading = node_link.read(write(tmp_path, {"nodes": nodes, "links": []}))
    assert reading.graphs.x.tolist() == [list(range(11))]
    assert reading.guesses == [
        "node attributes a0, a1, a2, a3, a4, a5, a6, a7 and 3 more are x",
        "node attributes b0, b1, b2, b3, b4, b5, b6, b7 are text: left out",
    ]


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "9" * 400, "9" * 5000, "-1e39"])
def test_numbers_that_are_too_large_are_left_out(tmp_path, value):
    text = f'{{"nodes": [{{"id": 0, "a": {value}, "y": {value}}}], "links": []}}'
    reading = node_link.read(write(tmp_path, text))
    assert reading.graphs.x is None
    assert reading.graphs.y is None
    assert any("node attribute a is not finite" in said for said in reading.guesses)


def test_huge_integers_are_names(tmp_path):
    text = f'{{"nodes": [{{"id": {2**70}}}, {{"id": 1}}], "links": []}}'
    assert node_link.read(write(tmp_path, text)).graphs.ids.tolist() == [str(2**70), "1"]


NODES = '"nodes": [{"id": 0}, {"id": "b"}]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"nodes": [\n{"id": 0},\n{"id": }]}', "line 3: this is not JSON; got Expecting value"),
        ("", "line 1: this is not JSON"),
        ('{"nodes": [{"id": 0}]', "line 1: this is not JSON"),
        ("7", "a graph is not an object; got 7"),
        ("[]", "there is no graph in the file"),
        (f'[{{{NODES}, "links": []}}, 5]', r"\[1\]: a graph is not an object; got 5"),
        ("{}", "a graph has no list of nodes or no list of links"),
        ('{"nodes": {}, "links": []}', "no list of nodes"),
        (f"{{{NODES}}}", "no list of links; got the keys ..nodes"),
        (f'{{{NODES}, "links": [], "edges": []}}', "both links and edges"),
        ('{"nodes": [], "links": []}', "a graph has no nodes; got graph 0"),
        (f'{{{NODES}, "links": [], "directed": "no"}}', "directed is not true or false"),
        ('{"nodes": [{"id": 0}, 7], "links": []}', r"nodes\[1\]: a node is not an object; got 7"),
        ('{"nodes": [{"id": 0}, {"a": 1}], "links": []}', r"nodes\[1\]: a node has no id"),
        ('{"nodes": [{"id": 0}, {"id": 0}], "links": []}', r"nodes\[1\]: a node id appears twice"),
        ('{"nodes": [{"id": null}], "links": []}', r"nodes\[0\]: an id is not a string or a num"),
        ('{"nodes": [{"id": NaN}], "links": []}', r"nodes\[0\]: an id is not a string or a num"),
        ('{"nodes": [{"id": [[1]]}], "links": []}', r"nodes\[0\]: an id is not a string or a num"),
        (f'{{{NODES}, "links": [{{"source": 0}}]}}', r"links\[0\]: a link has no source or no tar"),
        (f'{{{NODES}, "edges": [[0, "b"]]}}', r"edges\[0\]: a link has no source or no target"),
        (
            f'{{{NODES}, "links": [{{"source": 0, "target": "b"}}, {{"source": 0, "target": 1}}]}}',
            r"links\[1\]: an edge names a node that is not there; got 1",
        ),
        (
            '{"nodes": [{}, {}], "links": [{"source": 0, "target": 2}]}',
            r"links\[0\]: an edge names a node that is not there; got 2",
        ),
        (
            '{"nodes": [{}, {}], "links": [{"source": 0, "target": "a"}]}',
            r"links\[0\]: nodes without ids are not named by position",
        ),
    ],
)
def test_refused_by_place(tmp_path, text, message):
    with pytest.raises(ReadError, match=message) as error:
        node_link.read(write(tmp_path, text))
    assert "To fix this, " in str(error.value)


def test_lines_are_named_in_json_lines(tmp_path):
    good = json.dumps(graph(2))
    for bad, message in (
        ('{"nodes": 5', "a.jsonl, line 3: this is not JSON"),
        ('{"nodes": [{"id": 1}, {}], "links": []}', r"a.jsonl, line 3: nodes\[1\]: a node has no"),
        ("[" * 100_000, "a.jsonl, line 3: the JSON is nested too deeply"),
    ):
        with pytest.raises(ReadError, match=message):
            node_link.read(write(tmp_path, f"{good}\n\n{bad}\n", "a.jsonl"))


@pytest.mark.parametrize("depth", [100, 900, 960, 990, 100_000])
@pytest.mark.parametrize("shape", ["[{}]", '{{"nodes": [{{"id": {}}}], "links": []}}'])
def test_deep_nesting_is_refused(tmp_path, depth, shape):
    start = time.perf_counter()
    with pytest.raises(ReadError):
        node_link.read(write(tmp_path, shape.format("[" * depth + "]" * depth)))
    assert time.perf_counter() - start < 2
