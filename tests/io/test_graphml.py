"""GraphML against NetworkX, and what must be refused, by line."""

from __future__ import annotations

import gzip
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artlas.errors import ReadError
from artlas.graphs.collection import Graphs
from artlas.io import graphml

unhurried = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# What XML can carry: no control characters, no surrogates, no two that NetworkX would merge.
names = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x2FFF, exclude_categories=["Cc", "Cs"]),
    min_size=1,
    max_size=5,
)


@st.composite
def networkx_graphs(draw, names=names):
    """Graphs of all four NetworkX classes, with odd names, loops and parallel edges."""
    kind = draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))
    nodes = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    graph = kind()
    for node in nodes:
        age, score = draw(st.integers(-9, 9)), draw(st.floats(-9, 9, width=32))
        graph.add_node(node, age=age, kind="some text", score=score)
    ends = st.sampled_from(nodes)
    graph.add_edges_from(draw(st.lists(st.tuples(ends, ends), max_size=14)))
    return graph


def same_adjacency(graphs, graph):
    dense = nx.to_numpy_array(graph, multigraph_weight=min)
    dense = np.maximum(dense, dense.T)
    np.fill_diagonal(dense, 0)
    return np.array_equal(graphs.to_scipy(0).toarray(), dense)


@unhurried
@given(networkx_graphs())
def test_what_networkx_writes(tmp_path, graph):
    nx.write_graphml_xml(graph, tmp_path / "a.graphml")
    reading = graphml.read(tmp_path / "a.graphml")
    graphs = reading.graphs
    assert same_adjacency(graphs, graph)
    assert graphs.x.tolist() == [[a["age"], a["score"]] for _, a in graph.nodes(data=True)]
    counted = [str(i) for i in range(len(graph))]
    assert [str(i) for i in (counted if graphs.ids is None else graphs.ids)] == list(graph)
    assert reading.guesses == [
        "node attributes age, score are x",
        "node attribute kind is text: left out",
    ]


@unhurried
@given(networkx_graphs())
def test_changes_are_those_of_from_networkx(tmp_path, graph):
    """A directed file reports its one-way edges, an undirected one none."""
    nx.write_graphml_xml(graph, tmp_path / "a.graphml")
    changes = graphml.read(tmp_path / "a.graphml").changes
    if graph.is_directed():
        plain = nx.DiGraph(graph)
        plain.remove_edges_from(nx.selfloop_edges(plain))
        assert changes["one_way"] == sum(not plain.has_edge(v, u) for u, v in plain.edges)
    else:
        assert changes["one_way"] == 0
    assert changes["loops"] == nx.number_of_selfloops(graph)


def write(tmp_path, body, head="<graphml>"):
    path = tmp_path / "a.graphml"
    path.write_text(f"{head}\n{body}\n</graphml>\n")
    return path


NODES = '<node id="a"/>\n<node id="b"/>\n<node id="c"/>\n'


def test_edges_may_come_first_and_files_may_be_packed(tmp_path):
    body = f'<graph edgedefault="undirected"><edge source="a" target="c"/>{NODES}</graph>'
    path = write(tmp_path, body)
    packed = tmp_path / "a.graphml.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        reading = graphml.read(file)
        assert reading.graphs.col.tolist() == [2, 0]
        assert reading.graphs.ids.tolist() == ["a", "b", "c"]
        assert not +reading.changes


def test_several_graphs_labels_and_defaults(tmp_path):
    keys = """<key id="k0" for="node" attr.name="late" attr.type="double"/>
    <key id="k1" for="node" attr.name="colour" attr.type="int"><default>7</default></key>
    <key id="k2" for="graph" attr.name="y" attr.type="int"/>
    <key id="k3" for="node" attr.name="flag" attr.type="boolean"/>
    <key id="k4" for="edge" attr.name="weight" attr.type="double"><default>1.0</default></key>"""
    graph = """<graph edgedefault="undirected"><data key="k2">{y}</data>
    <node id="5"><data key="k3">true</data><data key="k0">{y}.5</data></node>
    <node id="4"><data key="k3">false</data><data key="k0">0</data><data key="k1">9</data></node>
    <edge source="4" target="5"><data key="k4">{w}</data></edge><edge source="4" target="4"/>
    </graph>"""
    reading = graphml.read(
        write(tmp_path, keys + graph.format(y=3, w=1) + graph.format(y=-1, w=2.5))
    )
    graphs = reading.graphs
    assert graphs.sizes.tolist() == [2, 2]
    assert graphs.y.tolist() == [3, -1]
    assert graphs.x.tolist() == [[1, 3.5, 7], [0, 0, 9], [1, -1.5, 7], [0, 0, 9]]
    assert graphs.ids.tolist() == [5, 4, 5, 4]
    assert graphs.ids.dtype == np.int64
    assert dict(+reading.changes) == {"weights": 1, "loops": 2}
    assert reading.guesses == ["graph attribute y is y", "node attributes flag, late, colour are x"]


def test_labels_of_nodes(tmp_path):
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 4, 1: 5, 2: 4}, "y")
    nx.set_node_attributes(graph, {0: 0.5}, "rare")
    nx.set_node_attributes(graph, {0: 1.0, 1: float("nan"), 2: 0.0}, "gap")
    nx.write_graphml_xml(graph, tmp_path / "a.graphml")
    reading = graphml.read(tmp_path / "a.graphml")
    assert reading.graphs.y.tolist() == [4, 5, 4]
    assert reading.graphs.x is None
    assert reading.graphs.ids is None
    assert reading.guesses == [
        "node attribute y is y",
        "node attribute rare is not on every node: left out",
        "node attribute gap is not finite on every node: left out",
    ]


def test_an_edge_has_its_own_direction(tmp_path):
    edges = '<edge source="a" target="b"/><edge source="b" target="c" directed="true"/>'
    reading = graphml.read(
        write(tmp_path, f'<graph edgedefault="undirected">{NODES}{edges}</graph>')
    )
    assert dict(+reading.changes) == {"one_way": 1}
    edges = '<edge source="a" target="b"/><edge source="b" target="c" directed="false"/>'
    reading = graphml.read(write(tmp_path, f'<graph edgedefault="directed">{NODES}{edges}</graph>'))
    assert dict(+reading.changes) == {"one_way": 1}
    assert reading.graphs.num_edges == 2


def test_duplicates_beside_directed_edges(tmp_path):
    """a - b is there three times undirected, once of them the other way round; b -> c once."""
    ends = [("a", "b"), ("a", "b"), ("b", "a"), ("c", "c")]
    edges = "".join(f'<edge source="{u}" target="{v}"/>' for u, v in ends)
    edges += '<edge source="b" target="c" directed="true"/>'
    reading = graphml.read(write(tmp_path, f"<graph>{NODES}{edges}</graph>"))
    assert dict(+reading.changes) == {"one_way": 1, "duplicates": 1, "loops": 1}
    assert reading.graphs.col.tolist() == [1, 0, 2, 1]


def test_prefixes_and_foreign_elements_are_passed_over(tmp_path):
    head = '<g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://y">'
    body = """<g:key id="d0" for="node" yfiles.type="nodegraphics"/>
    <g:graph edgedefault="undirected"><g:desc><graph/></g:desc>
    <g:node id="n0"><g:data key="d0"><y:ShapeNode><y:graph><node/></y:graph></y:ShapeNode></g:data>
    </g:node></g:graph>"""
    path = tmp_path / "a.graphml"
    path.write_text(f"{head}{body}</g:graphml>")
    reading = graphml.read(path)
    assert reading.graphs.num_nodes == 1
    assert reading.guesses == ["node attribute d0 is not a number: left out"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"<graph>{NODES}<edge source='a' target='z'/></graph>", "line 5: an edge names.*got 'z'"),
        ("<graph>\n<node id='a'/>\n<node id='a'/></graph>", "line 4: a node id appears twice"),
        ("<graph>\n<node/></graph>", "line 3: a node or edge has no id"),
        (f"<graph>{NODES}<edge source='a'/></graph>", "line 5: a node or edge has no target"),
        ("<graph>\n\n</graph>", "line 4: a graph has no nodes; got graph 0"),
        ("", "there is no graph in the file"),
        ("<graph>\n<node id='a'>\n<graph/></node></graph>", "line 4: nested graphs are not read"),
        ("<graph>\n<graph/></graph>", "line 3: nested graphs are not read"),
        ("<graph>\n<hyperedge/></graph>", "line 3: hyperedges are not read"),
        ("<graph>\n<node id='a'><port/></node></graph>", "line 3: ports are not read"),
        ("<node id='a'/>", "line 2: an element is out of place; got <node> in <graphml>"),
        ("<graph>\n<node id='a'>\n</graph>", "line 4: this is not well-formed XML; got mismatched"),
        ("<graph>\n<node id='a'><data key='q'/></node></graph>", "line 3: a <data>.*got 'q'"),
        ("<key for='node'/>", "line 2: a <key> has no id"),
        ("<graph>\n&bomb;</graph>", "line 3: this is not well-formed XML; got undefined entity"),
        (
            "<key id='k' attr.name='age' attr.type='int'/>\n<graph><node id='a'>\n"
            "<data key='k'>12_000</data></node></graph>",
            "line 4: a value is not of its type; got '12_000' for 'age', declared as 'int'",
        ),
    ],
)
def test_refused_by_line(tmp_path, body, message):
    with pytest.raises(ReadError, match=message) as error:
        graphml.read(write(tmp_path, body))
    assert "To fix this, " in str(error.value)


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">\n' for i in range(1, 10))


@pytest.mark.parametrize(
    "doctype",
    [
        f'<!DOCTYPE graphml [\n<!ENTITY l0 "ha">\n{LAUGHS}]>',
        '<!DOCTYPE graphml [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE graphml SYSTEM "http://localhost/a.dtd">',
        '<!DOCTYPE graphml [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]>',
    ],
)
def test_document_types_are_refused_at_once(tmp_path, doctype):
    path = tmp_path / "a.graphml"
    path.write_text(f'<?xml version="1.0"?>\n{doctype}\n<graphml><graph><node id="&l9;"/></graph>')
    start = time.perf_counter()
    with pytest.raises(ReadError, match=r"line [23]: document types and entities are refused"):
        graphml.read(path)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("encoding", ["nonsense", "utf-7", "rot13", "undefined", "idna", "big5"])
def test_odd_encodings_are_refused(tmp_path, encoding):
    path = tmp_path / "a.graphml"
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?>\n<graphml></graphml>')
    with pytest.raises(ReadError):
        graphml.read(path)


def test_utf_16_and_latin_1_are_read(tmp_path):
    for encoding in ("utf-16", "latin-1"):
        head = f'<?xml version="1.0" encoding="{encoding}"?>'
        text = f'{head}<graphml><graph><node id="é"/></graph></graphml>'
        (tmp_path / "a.graphml").write_bytes(text.encode(encoding))
        assert graphml.read(tmp_path / "a.graphml").graphs.ids.tolist() == ["é"]


@pytest.mark.slow
def test_defaults_cannot_be_made_to_explode(tmp_path):
    keys = "".join(
        f"<key id='k{i}' for='node' attr.type='int'><default>1</default></key>"
        for i in range(20_000)
    )
    nodes = "".join(f"<node id='{i}'/>" for i in range(50_000))
    start = time.perf_counter()
    with pytest.raises(ReadError, match="default values make far too much"):
        graphml.read(write(tmp_path, f"{keys}<graph>{nodes}</graph>"))
    assert time.perf_counter() - start < 2


def test_deep_nesting_is_harmless(tmp_path):
    deep = "<d>" * 200_000 + "</d>" * 200_000
    graphs = graphml.read(write(tmp_path, f"<graph>{NODES}</graph>{deep}")).graphs
    assert isinstance(graphs, Graphs)
    with pytest.raises(ReadError, match="not well-formed"):
        graphml.read(write(tmp_path, "<graph>" + "<d>" * 200_000))
