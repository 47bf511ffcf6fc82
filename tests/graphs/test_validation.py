"""The four ways in: what is changed is reported, what is wrong is named."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from raw_graphs import PATH, build, counts, labelled, raw_graphs, report, same, unhurried

from artlas.errors import GraphCleaningWarning, GraphError
from artlas.graphs.collection import Graphs
from artlas.io.reading import as_graphs

# What was changed is counted and reported once.


@unhurried
@given(raw_graphs())
def test_report_counts_are_exact(pairs):
    loops = duplicates = one_way = 0
    for _, edge_index in pairs:
        listed = [tuple(e) for e in edge_index.T.tolist()]
        proper = [e for e in listed if e[0] != e[1]]
        loops += len(listed) - len(proper)
        duplicates += len(proper) - len(set(proper))
        one_way += sum((v, u) not in set(proper) for u, v in set(proper))
    expected = {"one-way": one_way, "duplicate": duplicates, "self-loops": loops}
    expected = {name: number for name, number in expected.items() if number}
    assert report(lambda: Graphs.from_edges(pairs)) == expected
    if expected:
        with pytest.raises(GraphError, match="not canonical and strict=True") as error:
            Graphs.from_edges(pairs, strict=True)
        assert counts(str(error.value)) == expected
    else:
        assert same(Graphs.from_edges(pairs, strict=True), build(pairs))


def test_every_edge_listed_once_is_reported_as_one_way():
    assert report(lambda: Graphs.from_edges((4, [[0, 1, 2], [1, 2, 3]]))) == {"one-way": 3}


def test_networkx_undirected_is_silent_and_the_rest_counted():
    assert report(lambda: Graphs.from_networkx(nx.path_graph(5))) == {}
    looped = nx.Graph([(0, 1), (1, 1)])
    assert report(lambda: Graphs.from_networkx(looped)) == {"self-loops": 1}
    multi = nx.MultiGraph([(0, 1), (1, 0), (0, 1), (1, 2), (2, 2)])
    assert report(lambda: Graphs.from_networkx(multi)) == {"duplicate": 2, "self-loops": 1}
    directed = nx.DiGraph([(0, 1), (1, 0), (1, 2)])
    assert report(lambda: Graphs.from_networkx(directed)) == {"one-way": 1}
    weighted = nx.Graph()
    weighted.add_weighted_edges_from([(0, 1, 1), (1, 2, 0.5), (2, 3, 1.0), (3, 4, 0)])
    assert report(lambda: Graphs.from_networkx(weighted)) == {"edge": 2}
    everything = {"one-way": 1, "duplicate": 2, "self-loops": 2, "edge": 2}
    together = [looped, multi, directed, weighted]
    assert report(lambda: Graphs.from_networkx(together)) == everything
    with pytest.raises(GraphError, match="edge weights ignored: 2"):
        Graphs.from_networkx(weighted, strict=True)


def test_scipy_reports():
    path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    assert report(lambda: Graphs.from_scipy(path)) == {}
    for weight in (2.5, 0.5, -1):
        assert report(lambda m=path * weight: Graphs.from_scipy(m)) == {"edge": 4}
    assert report(lambda: Graphs.from_scipy(path.astype(bool))) == {}
    upper = sp.triu(path) + sp.eye(3)
    assert report(lambda: Graphs.from_scipy(upper)) == {"one-way": 2, "self-loops": 3}
    twice = sp.coo_array(([1, 1, 1], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert report(lambda: Graphs.from_scipy(twice)) == {"duplicate": 1}
    zeros = sp.coo_array(([1, 1, 0, 0], ([0, 1, 0, 2], [1, 0, 2, 2])), shape=(3, 3))
    assert report(lambda: Graphs.from_scipy(zeros)) == {}
    assert Graphs.from_scipy(zeros).num_edges == 1
    with pytest.raises(GraphError, match="one-way edges completed: 2, self-loops dropped: 3"):
        Graphs.from_scipy(upper, strict=True)


def test_pyg_reports():
    def reported(**attributes):
        return report(lambda: Graphs.from_pyg([data(), data(**attributes)]))

    assert reported() == {}
    assert reported(edge_weight=torch.ones(4)) == {}
    assert reported(edge_weight=torch.tensor([1.0, 2, 1, 3])) == {"edge": 2}
    assert reported(edge_attr=torch.tensor([[1.0], [2], [2], [3]])) == {"edge": 3}
    assert reported(edge_attr=torch.eye(4)) == {"graphs": 1}
    assert reported(edge_attr=torch.eye(4), edge_weight=torch.zeros(4)) == {"graphs": 1, "edge": 4}
    with pytest.raises(GraphError, match="edge attributes were dropped: 1"):
        Graphs.from_pyg(data(edge_attr=torch.eye(4)), strict=True)


# The four ways in.


class Data(SimpleNamespace):
    """What PyTorch Geometric's Data offers; like it, iterable over its attributes."""

    def __iter__(self):
        return iter(vars(self).items())


class Batch(Data):
    def to_data_list(self):
        return self.data_list


class Dataset:
    """Like InMemoryDataset: answers edge_index although it is a collection."""

    def __init__(self, items):
        self.items = items

    def __getattr__(self, name):
        if name == "edge_index":
            return self.items[0].edge_index
        raise AttributeError(name)

    def __iter__(self):
        return iter(self.items)


def data(n=3, edge_index=PATH, **attributes):
    return Data(num_nodes=n, edge_index=torch.tensor(edge_index), **attributes)


@pytest.mark.slow
@unhurried
@given(raw_graphs(), st.randoms(use_true_random=False))
def test_the_ways_in_agree(pairs, random):
    expected = labelled(pairs)
    xs, y = [g.x.numpy() for g in expected], expected.y
    nx_graphs, matrices, items = [], [], []
    for g, (n, edge_index) in enumerate(pairs):
        edges = edge_index.T.tolist()
        graph = random.choice([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])()
        graph.add_nodes_from(f"node {i}" for i in range(n))
        graph.add_edges_from((f"node {u}", f"node {v}") for u, v in edges)
        nx_graphs.append(graph)
        matrix = sp.coo_array((np.ones(len(edges)), tuple(edge_index)), shape=(n, n))
        convert = random.choice(["tocsr", "tocsc", "tolil", "todok", "toarray", "tocoo"])
        matrices.append(getattr(matrix, convert)())
        items.append(data(n, edge_index, x=torch.tensor(xs[g]), y=y[g : g + 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphCleaningWarning)
        for read, source in (("networkx", nx_graphs), ("scipy", matrices), ("edges", pairs)):
            graphs = getattr(Graphs, f"from_{read}")(source, x=xs, y=y)
            assert same(graphs, expected)
            assert same(as_graphs(iter(source), x=xs, y=y), expected)
        cut = random.randrange(len(items) + 1)
        batches = [Batch(edge_index=0, data_list=part) for part in (items[:cut], items[cut:])]
        for source in (items, Dataset(items), batches, Batch(edge_index=0, data_list=items)):
            assert same(Graphs.from_pyg(source), expected)
            assert same(as_graphs(source), expected)
            assert same(as_graphs(source, y=y + 1), expected.with_labels(y + 1))


def test_edge_index_of_any_array_kind():
    expected = Graphs.from_edges([(3, np.array(PATH))])
    assert expected.col.tolist() == [1, 0, 2, 1]
    for edge_index in (PATH, tuple(map(tuple, PATH)), torch.tensor(PATH), np.asfortranarray(PATH)):
        assert same(Graphs.from_edges([(3, edge_index)]), expected)
        assert same(Graphs.from_edges((np.int32(3), edge_index)), expected)
        assert same(as_graphs((torch.tensor(3), edge_index)), expected)
    assert len(Graphs.from_edges(((3, PATH), (4, [])))) == 2
    assert len(Graphs.from_edges((n, []) for n in (1, 2, 3))) == 3


def test_single_objects():
    path, matrix = nx.path_graph(3), nx.to_scipy_sparse_array(nx.path_graph(3))
    expected = Graphs.from_edges((3, PATH))
    assert same(Graphs.from_networkx(path), expected)
    assert same(as_graphs(path), expected)
    assert same(Graphs.from_scipy(matrix), expected)
    assert same(as_graphs(matrix), expected)
    assert same(Graphs.from_scipy(matrix.toarray()), expected)
    assert same(as_graphs(sp.csr_matrix(matrix)), expected)
    assert same(Graphs.from_pyg(data()), expected)
    assert same(as_graphs(data()), expected)
    assert as_graphs(expected) is expected
    assert len(as_graphs(np.stack([matrix.toarray()] * 4))) == 4


def test_networkx_keeps_node_order_and_reads_attributes():
    graph = nx.Graph()
    graph.add_nodes_from(["c", "a", (1, 2)])
    graph.add_edge("c", (1, 2))
    nx.set_node_attributes(graph, {"c": 3, "a": 1, (1, 2): 2}, "charge")
    nx.set_node_attributes(graph, {"c": [0, 1], "a": [1, 0], (1, 2): [1, 1]}, "kind")
    graphs = Graphs.from_networkx(graph, x="charge")
    assert graphs.col.tolist() == [2, 0]
    assert graphs.x.tolist() == [[3], [1], [2]]
    both = Graphs.from_networkx([graph, graph], x=["charge", "kind"], y=[1, 0])
    assert both.x.tolist() == [[3, 0, 1], [1, 1, 0], [2, 1, 1]] * 2
    del graph.nodes["a"]["kind"]
    with pytest.raises(GraphError, match="graph 0 has 'kind'; got node 'a' without it"):
        Graphs.from_networkx(graph, x=["charge", "kind"])


def test_pyg_labels():
    one = Graphs.from_pyg(data(y=torch.tensor([4, 5, 6])))
    assert one.y.tolist() == [4, 5, 6]
    assert len(one) == 1
    several = Graphs.from_pyg([data(y=torch.tensor([[i]])) for i in range(4)])
    assert several.y.tolist() == [0, 1, 2, 3]
    assert Graphs.from_pyg([data(y=i) for i in range(4)]).y.tolist() == [0, 1, 2, 3]
    nodes = Graphs.from_pyg([data(y=torch.arange(3) + i) for i in range(2)])
    assert nodes.y.tolist() == [0, 1, 2, 1, 2, 3]
    assert Graphs.from_pyg([data(), data()]).y is None
    for y in (torch.zeros(1, 5), torch.zeros(1, 3), torch.zeros(2), torch.zeros(3, 2)):
        with pytest.raises(GraphError, match="y of graph 1 is neither one label nor one per node"):
            Graphs.from_pyg([data(y=1.0), data(y=y)])


def test_kinds_of_x_and_y():
    pairs = [(3, PATH), (2, [])]
    for x in (
        np.arange(10).reshape(5, 2),
        torch.arange(10).reshape(5, 2).bfloat16(),
        [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]],
        [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9]]],
        [np.arange(6).reshape(3, 2), torch.tensor([[6, 7], [8, 9]])],
        np.arange(10)[::-1].reshape(5, 2)[::-1, ::-1],
    ):
        graphs = Graphs.from_edges(pairs, x=x)
        assert graphs.x.dtype == torch.float32
        assert graphs.x.is_contiguous()
        assert graphs.x.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    for y, dtype in (
        ([1, 0], torch.int64),
        (np.array([1, 0], np.uint8), torch.int64),
        ([True, False], torch.int64),
        ([torch.tensor(1), torch.tensor(0)], torch.int64),
        ([1.0, 0.0], torch.float64),
        (torch.tensor([1.0, 0]), torch.float32),
        (np.array([1, 0], ">f4"), torch.float32),
    ):
        graphs = Graphs.from_edges(pairs, y=y)
        assert graphs.y.dtype == dtype
        assert graphs.y.tolist() == [1, 0]
    assert Graphs.from_edges(pairs, y=[0, 1, 2, 3, 4]).y.tolist() == [0, 1, 2, 3, 4]


def test_inputs_are_neither_changed_nor_shared():
    edge_index, x, y = np.array([[0, 0, 2, 0], [1, 1, 2, 2]]), np.ones((6, 2), "f4"), np.zeros(2)
    matrix = sp.coo_array(([2.0, 0.0, 1.0], ([0, 0, 2], [1, 1, 2])), shape=(3, 3))
    graph = nx.MultiDiGraph([(0, 1), (0, 1), (2, 2)])
    tensor = torch.tensor(edge_index)
    kept = [edge_index.copy(), x.copy(), y.copy(), matrix.copy(), graph.copy(), tensor.clone()]
    graphs = build([(3, edge_index)] * 2, x=x, y=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphCleaningWarning)
        Graphs.from_scipy(matrix)
        Graphs.from_networkx(graph)
        Graphs.from_pyg(Data(num_nodes=3, edge_index=tensor))
    assert np.array_equal(edge_index, kept[0])
    assert np.array_equal(x, kept[1])
    assert np.array_equal(y, kept[2])
    assert torch.equal(tensor, kept[5])
    assert all(np.array_equal(getattr(matrix, k), getattr(kept[3], k)) for k in ("data", "coords"))
    assert nx.utils.graphs_equal(graph, kept[4])
    x[:], y[:] = np.nan, np.nan
    assert (graphs.x == 1).all()
    assert (graphs.y == 0).all()


def test_with_features_and_with_labels():
    graphs = Graphs.from_edges([(3, PATH), (2, [])])
    full = graphs.with_features(np.ones((5, 1))).with_labels([1, 2])
    assert graphs.x is None
    assert graphs.y is None
    assert full.x.tolist() == [[1]] * 5
    assert full.y.tolist() == [1, 2]
    assert same(full.with_features(None).with_labels(None), graphs)
    with pytest.raises(GraphError, match="x has the wrong shape"):
        graphs.with_features(np.ones((4, 1)))
    with pytest.raises(GraphError, match="y has the wrong length"):
        graphs.with_labels([1, 2, 3])


# Errors, each by what is wrong, what came and how to fix it.

NAN = np.array([[0.0], [1], [np.nan]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"graphs": [(3, PATH), (3, [[0], [3]])]},
            "graph 1 is out of range; got 3 with num_nodes = 3",
        ),
        ({"graphs": [(3, [[0], [2**40]])]}, "out of range; got 1099511627776"),
        ({"graphs": [(3, [[0], [-1]])]}, "graph 0 is negative; got -1. To fix this, number"),
        ({"graphs": [(3, np.array(PATH, float))]}, "graph 0 is not an integer; got float64"),
        ({"graphs": [(3, torch.tensor(PATH).bool())]}, "graph 0 is not an integer; got bool"),
        ({"graphs": [(3, [["0"], ["1"]])]}, "graph 0 is not an integer; got <U1"),
        ({"graphs": [(3, [[0, 1], [1]])]}, "edge_index of graph 0 is not one dense array"),
        ({"graphs": [(3, [0, 1])]}, r"not of shape \[2, E\]; got a list of shape \[2\]"),
        ({"graphs": [(3, [[0, 1], [1, 2], [2, 0]])]}, r"shape \[3, 2\].*transpose"),
        ({"graphs": [(3, None)]}, r"not of shape \[2, E\]; got a NoneType"),
        ({"graphs": [(3, PATH), (0, [])]}, "graph 1 has no nodes.*got num_nodes = 0"),
        ({"graphs": [(-2, [])]}, "graph 0 has no nodes.*got num_nodes = -2"),
        ({"graphs": [(3.0, [])]}, "no whole number of nodes; got num_nodes = 3.0"),
        ({"graphs": [(True, [])]}, "no whole number of nodes; got num_nodes = True"),
        (
            {"graphs": [(2**30, []), (2**30, [])]},
            "too many nodes for 32-bit ids; got 2,147,483,648",
        ),
        ({"graphs": []}, "the collection is empty; got an empty list"),
        (
            {"graphs": [(3, PATH), PATH]},
            r"item 1 is not a \(num_nodes, edge_index\) pair; got a list",
        ),
        ({"graphs": 3}, r"the input is not a \(num_nodes, edge_index\) pair; got a int"),
        ({"x": NAN}, "x has NaN or infinity; got nan as float32 in graph 1, row 2, column 0"),
        ({"x": [[0], [-np.inf], [0]]}, "got -inf as float32 in graph 0, row 1, column 0"),
        ({"x": [[1e39], [0], [0]]}, "got inf as float32 in graph 0, row 0, column 0"),
        ({"x": [np.ones((2, 1)), NAN[2:]]}, "x has NaN or infinity; got nan"),
        ({"x": np.ones((4, 1))}, r"x has the wrong shape; got \[4, 1\] for 3 nodes"),
        ({"x": np.ones(3)}, r"x has the wrong shape.*reshape one value per node to \[N, 1\]"),
        ({"x": [np.ones(2), np.ones(1)]}, r"x of graph 0.*shape \[2\].*to \[N, 1\]"),
        ({"x": [np.ones((1, 2)), np.ones((2, 2))]}, r"x of graph 0.*shape \[1, 2\] for 2 nodes"),
        ({"x": [np.ones((2, 2))]}, "x has the wrong length; got 1 arrays for 2 graphs"),
        (
            {"x": [np.ones((2, 2)), np.ones((1, 3))]},
            "widths differ; got 2 features in item 0 and 3",
        ),
        ({"x": [np.ones((2, 2)), None]}, "only some items have x; got 1 of 2 without it.*item 1"),
        ({"x": [["a"], ["b"], ["c"]]}, "x does not hold real numbers; got <U1"),
        ({"x": np.ones((3, 1), complex)}, "x does not hold real numbers; got complex128"),
        ({"x": torch.eye(3).to_sparse()}, "x is not one dense array"),
        ({"x": [[1, 2], [3], [4, 5]]}, "x is not one dense array"),
        ({"y": [0]}, r"y has the wrong length; got shape \[1\] for 2 graphs with 3 nodes"),
        ({"y": [[0], [1]]}, r"y has the wrong length; got shape \[2, 1\]"),
        ({"y": ["a", "b"]}, "y does not hold numbers; got <U1.*number the classes from 0"),
        ({"y": [0.5, np.nan]}, "y has NaN or infinity; got nan at row 1"),
        ({"y": [np.inf, 0, 0]}, "y has NaN or infinity; got inf at row 0"),
    ],
)
def test_malformed_input_is_named(arguments, message):
    arguments = {"graphs": [(2, []), (1, [])]} | arguments
    with pytest.raises(GraphError, match=message) as error:
        Graphs.from_edges(**arguments)
    assert "To fix this, " in str(error.value)


@pytest.mark.parametrize(
    ("read", "source", "message"),
    [
        (Graphs.from_networkx, [nx.path_graph(2), nx.Graph()], "graph 1 has no nodes"),
        (Graphs.from_networkx, [], "the collection is empty"),
        (
            Graphs.from_networkx,
            {"a": nx.path_graph(2)},
            "item 0 is not a NetworkX graph; got a str",
        ),
        (Graphs.from_scipy, np.ones((2, 3)), r"graph 0 is not square; got shape \[2, 3\]"),
        (Graphs.from_scipy, [sp.eye(2), sp.csr_array((3, 2))], "graph 1 is not square"),
        (Graphs.from_scipy, sp.csr_array((0, 0)), "graph 0 has no nodes"),
        (
            Graphs.from_scipy,
            np.array([[0, np.nan], [1, 0]]),
            "graph 0 has entries that are not finite",
        ),
        (Graphs.from_scipy, sp.csr_array([[0, np.inf], [1, 0]]), "entries that are not finite"),
        (Graphs.from_scipy, sp.coo_array([1, 2]), "item 0 is not a sparse or 2-D array"),
        (Graphs.from_scipy, [], "the collection is empty"),
        (Graphs.from_pyg, data(2), "graph 0 is out of range; got 2 with num_nodes = 2"),
        (Graphs.from_pyg, data(None), "graph 0 has no nodes.*got num_nodes = None"),
        (Graphs.from_pyg, [data(), data(x=torch.ones(3, 1))], "only some items have x.*item 0"),
        (Graphs.from_pyg, [data(y=1), data()], "only some items have y.*item 1"),
        (Graphs.from_pyg, data(x=torch.ones(3)), r"reshape one value per node to \[N, 1\]"),
        (Graphs.from_pyg, [data(x=torch.ones(3, d)) for d in (1, 2)], "feature widths differ"),
        (Graphs.from_pyg, data(x=torch.full((3, 1), torch.nan)), "x has NaN or infinity"),
        (Graphs.from_pyg, data(y=torch.full((3,), torch.nan)), "y has NaN or infinity"),
        (Graphs.from_pyg, data(batch=torch.tensor([0, 0, 1])), "a batch that cannot be split"),
        (Graphs.from_pyg, [], "the collection is empty"),
        (Graphs.from_pyg, [1], "item 0 is not a Data with edge_index; got a int"),
        (as_graphs, "NCI1", "NCI1: this is not a file"),
        (as_graphs, [3], "item 0 is not Graphs, .*pair, a NetworkX graph, a SciPy.*PyTorch"),
        (as_graphs, None, "the input is not Graphs, .*got a NoneType"),
        (as_graphs, torch.eye(3), "item 0 is not Graphs, .*got a Tensor in a Tensor"),
        (as_graphs, [], "the collection is empty"),
        (as_graphs, [nx.path_graph(2), (2, [])], "item 1 is not a NetworkX graph; got a tuple"),
        (Graphs.concat, [], "the collection is empty"),
        (Graphs.concat, [(3, PATH)], "item 0 is not a Graphs; got a tuple"),
    ],
)
def test_malformed_objects_are_named(read, source, message):
    with pytest.raises(GraphError, match=message):
        read(source)


def test_errors_come_before_the_report():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for wrong in ({"x": np.ones((5, 1))}, {"y": [1, 2, 3]}):
            with pytest.raises(GraphError, match="wrong"):
                Graphs.from_edges((2, [[0], [1]]), **wrong)
