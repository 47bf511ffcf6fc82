"""Parquet: round trips, the ways to write a graph in a row, and what must be refused, by row."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import time

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artlas.errors import ReadError
from artlas.graphs.collection import Graphs
from artlas.io import parquet, parquet_child
from benchmarks import parquet_files

pa = pytest.importorskip("pyarrow", reason="PyArrow, which reads Parquet, is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="PyArrow was built without Parquet")

unhurried = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def same(a, b):
    for name in ("node_ptr", "row_ptr", "col", "x", "y"):
        s, t = getattr(a, name), getattr(b, name)
        assert (s is None) == (t is None), name
        assert s is None or (s.dtype == t.dtype and torch.equal(s, t)), name
    assert (a.ids is None) == (b.ids is None)
    assert a.ids is None or (a.ids.dtype == b.ids.dtype and a.ids.tolist() == b.ids.tolist())


@st.composite
def collections(draw):
    """Graphs with and without features, labels per graph or per node, and names."""
    seeds = draw(st.lists(st.integers(0, 99), min_size=1, max_size=5))
    drawn = [nx.gnp_random_graph(1 + seed % 7, 0.4, seed=seed) for seed in seeds]
    graphs = Graphs.from_networkx(drawn)
    rng = np.random.default_rng(seeds[0])
    width = draw(st.sampled_from([None, 0, 1, 4]))
    if width is not None:
        graphs = graphs.with_features(rng.normal(size=(graphs.num_nodes, width)))
    count = draw(st.sampled_from([0, len(graphs), graphs.num_nodes]))
    kind = draw(st.sampled_from(["i8", "f4", "f8"]))
    if count:
        graphs = graphs.with_labels((9 * rng.normal(size=count)).astype(kind))
    names = draw(st.sampled_from([None, "int", "str"]))
    if names is None:
        return graphs
    ids = rng.permutation(graphs.num_nodes)
    ids = ids if names == "int" else np.array([f"ä{i}" for i in ids], dtype=object)
    return Graphs(graphs.node_ptr, graphs.row_ptr, graphs.col, graphs.x, graphs.y, ids)


@pytest.mark.slow
@unhurried
@given(collections())
def test_round_trip_is_exact(tmp_path, graphs):
    parquet_files.write(graphs, tmp_path / "a.parquet")
    reading = parquet.read(tmp_path / "a.parquet")
    same(reading.graphs, graphs)
    assert not +reading.changes
    assert reading.guesses == []


def test_parts_of_a_collection_can_be_written(tmp_path):
    graphs = Graphs.from_networkx([nx.path_graph(n) for n in (2, 5, 3)]).with_labels([1, 2, 3])
    parquet_files.write(graphs[1:], str(tmp_path / "a.parquet"))
    same(parquet.read(tmp_path / "a.parquet").graphs, graphs[1:])
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


def table(tmp_path, schema=None, **columns):
    path = tmp_path / "a.parquet"
    kinds = [(name, kind) for name, kind in (schema or {}).items()]
    pq.write_table(pa.table(columns, schema=pa.schema(kinds) if kinds else None), path)
    return path


PATH = [[0, 1, 1, 2], [1, 0, 2, 1]]
BOTH = [[0, 1], [1, 0]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "columns",
    [
        {"edge_index": [PATH, BOTH], "num_nodes": [3, 2]},
        {"edge_index": [PATH, BOTH], "y": [[7], [8]]},
        {"edge_index": [PATH[0] + PATH[1], BOTH[0] + BOTH[1]], "y": [[[7]], [[8]]]},
        {"source": [[0, 1], [0]], "target": [[1, 2], [1]], "y": [7, 8]},
        {"src": [[0, 1], [0]], "dst": [[1, 2], [1]], "other": ["a", None], "ids": [1, 2]},
    ],
)
def test_ways_to_write_edges(tmp_path, columns):
    reading = parquet.read(table(tmp_path, **columns))
    assert reading.graphs.sizes.tolist() == [3, 2]
    assert reading.graphs.col.tolist() == [1, 0, 2, 1, 4, 3]
    assert reading.graphs.ids is None
    assert not +reading.changes
    if "y" in columns:
        assert reading.graphs.y.tolist() == [7, 8]
    guessed = "num_nodes is the highest id of a row + 1"
    assert reading.guesses == ([] if "num_nodes" in columns else [guessed])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.int32(), pa.uint64(), pa.int8()])
@pytest.mark.parametrize("outer", ["list", "large", "fixed"])
def test_list_types(tmp_path, kind, outer):
    inner = pa.large_list(kind) if outer == "large" else pa.list_(kind)
    lists = {"list": pa.list_(inner), "large": pa.large_list(inner), "fixed": pa.list_(inner, 2)}
    schema = {"edge_index": lists[outer], "num_nodes": kind, "node_feat": pa.list_(pa.list_(kind))}
    path = table(
        tmp_path,
        schema,
        edge_index=[PATH, BOTH],
        num_nodes=[3, 2],
        node_feat=[[[1], [2], [3]], [[4], [5]]],
    )
    graphs = parquet.read(path).graphs
    assert graphs.col.tolist() == [1, 0, 2, 1, 4, 3]
    assert graphs.x.tolist() == [[1], [2], [3], [4], [5]]


def test_labels_of_nodes_and_edgeless_rows(tmp_path):
    path = table(
        tmp_path,
        edge_index=[[[], []], BOTH, []],
        x=[[[0.5]], [[1], [2]], [[3]] * 3],
        y=[[5], [6, 7], [1, 2, 3]],
    )
    graphs = parquet.read(path).graphs
    assert graphs.sizes.tolist() == [1, 2, 3]
    assert graphs.y.tolist() == [5, 6, 7, 1, 2, 3]
    assert graphs.col.tolist() == [2, 1]


def test_row_groups_are_joined(tmp_path):
    graphs = Graphs.from_networkx([nx.path_graph(1 + n % 4) for n in range(50)])
    parquet_files.write(graphs.with_labels(np.arange(50)), tmp_path / "a.parquet")
    whole = pq.read_table(tmp_path / "a.parquet")
    pq.write_table(whole, tmp_path / "b.parquet", row_group_size=7)
    same(parquet.read(tmp_path / "b.parquet").graphs, graphs.with_labels(np.arange(50)))


def test_what_is_not_canonical_is_counted(tmp_path):
    path = table(tmp_path, edge_index=[[[0, 0, 1, 2], [1, 1, 0, 2]], [[0], [1]]])
    changes = parquet.read(path).changes
    assert dict(+changes) == {"one_way": 1, "duplicates": 1, "loops": 1}


def test_a_hundred_thousand_rows_are_fast(tmp_path):
    rows = 100_000
    graphs = Graphs(
        torch.arange(0, 3 * rows + 1, 3),
        torch.arange(0, 6 * rows + 1, 2),
        (torch.tensor([1, 2, 0, 2, 0, 1]) + 3 * torch.arange(rows)[:, None]).int().reshape(-1),
    )
    start = time.perf_counter()
    parquet_files.write(graphs, tmp_path / "a.parquet")
    same(parquet.read(tmp_path / "a.parquet").graphs, graphs)
    assert time.perf_counter() - start < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1]}, r"there is no column of edges; got the columns \(none\)"),
        ({"source": [[0]], "y": [1]}, "there is no column of edges; got the columns source, y"),
        ({"edge_index": [PATH, None]}, "row 1: edge_index has a null"),
        ({"edge_index": [PATH, [[0], [None]]]}, "row 1: edge_index has a null"),
        ({"edge_index": [PATH, [[0], None]]}, "row 1: edge_index has a null"),
        ({"edge_index": [PATH, [[0], [0, 1]]]}, "row 1: the two rows.*got 1 sources and 2 targets"),
        ({"edge_index": [PATH, [[0]]]}, r"row 1: edge_index is not of shape \[2, E\]; got 1 rows"),
        ({"edge_index": [[[[0]], [[1]]]]}, "edge_index is nested too deeply; got 3 levels"),
        ({"edge_index": [[0, 1], [0, 1, 2]]}, "row 1: edge_index is flat and of odd length; got 3"),
        ({"edge_index": [1, 2]}, "edge_index is not a list in every row; got int64"),
        ({"edge_index": ["a"]}, "edge_index does not hold numbers; got string"),
        ({"edge_index": [[["a"], ["b"]]]}, "edge_index does not hold numbers; got string"),
        ({"edge_index": [[[0.0], [1.0]]]}, "node ids are not integers; got float64"),
        ({"source": [[0], [1]], "target": [[1], []]}, "row 1: source and target differ in length"),
        ({"edge_index": [PATH, []]}, "row 1: there are no nodes, or too many; got 0"),
        ({"edge_index": [PATH], "num_nodes": [0]}, "row 0: there are no nodes, or too many; got 0"),
        ({"edge_index": [PATH], "num_nodes": [-5]}, "row 0: there are no nodes.*got -5"),
        ({"edge_index": [PATH], "num_nodes": [10**9]}, "announces more nodes than it can describe"),
        ({"edge_index": [PATH], "num_nodes": [2**62]}, "row 0: there are no nodes, or too many"),
        ({"edge_index": [PATH], "num_nodes": [2.0]}, "num_nodes is not an integer; got float64"),
        ({"edge_index": [PATH], "num_nodes": [None]}, "row 0: num_nodes has a null"),
        ({"edge_index": [PATH, BOTH], "num_nodes": [3, 1]}, "row 1: a node id.*0 - 1 with 1 nodes"),
        ({"edge_index": [PATH, [[0], [-1]]]}, "row 1: a node id is out of range; got 0 - -1"),
        ({"edge_index": [[[0], [2**40]]]}, "row 0: there are no nodes, or too many"),
        ({"edge_index": [BOTH], "x": [[[1]]]}, "row 0: a node id is out of range"),
        (
            {"edge_index": [BOTH], "x": [[[1]]], "num_nodes": [2]},
            "row 0: x does not have one row for each node; got 1 for 2 nodes",
        ),
        (
            {"edge_index": [BOTH, BOTH], "x": [[[1], [2]], [[1], [2, 3]]]},
            "row 1: x has nodes of different width; got 2 after 1",
        ),
        ({"edge_index": [BOTH], "x": [[1, 2]]}, r"x is not of shape \[n, d\]; got 1 levels"),
        ({"edge_index": [BOTH], "x": [[[1], [float("nan")]]]}, "row 0: x has NaN or infinity"),
        ({"edge_index": [BOTH], "x": [[[1], [1e39]]]}, "row 0: x has NaN or infinity"),
        ({"edge_index": [BOTH], "x": [[["a"], ["b"]]]}, "x does not hold numbers; got string"),
        ({"edge_index": [BOTH], "y": ["a"]}, "y does not hold numbers; got string"),
        ({"edge_index": [BOTH, BOTH], "y": [1, None]}, "row 1: y has a null"),
        ({"edge_index": [BOTH, BOTH], "y": [1, float("inf")]}, "row 1: y has NaN or infinity"),
        (
            {"edge_index": [BOTH, BOTH], "y": [[1, 2], [1, 2, 3]]},
            "row 1: y is neither one label nor one per node; got 3 values for 2 nodes",
        ),
    ],
)
def test_refused_by_row(tmp_path, columns, message):
    with pytest.raises(ReadError, match=message) as error:
        parquet.read(table(tmp_path, **columns))
    assert "To fix this, " in str(error.value)


@pytest.mark.slow
def test_files_without_rows_and_other_files(tmp_path):
    with pytest.raises(ReadError, match="there are no rows"):
        parquet.read(table(tmp_path, {"edge_index": pa.list_(pa.int64())}, edge_index=[]))
    for content in (b"", b"PAR1", b"PAR1" * 100, b"PAR1\xff\xff\xff\x7fPAR1", b"hello" * 99):
        (tmp_path / "b.parquet").write_bytes(content)
        with pytest.raises(ReadError, match="not a Parquet file that can be read"):
            parquet.read(tmp_path / "b.parquet")
    with pytest.raises(ReadError, match="nothing there"):
        parquet.read(tmp_path / "c.parquet")
    with pytest.raises(ReadError, match="a folder"):
        parquet.read(tmp_path)


@contextlib.contextmanager
def at_once(seconds=2):
    """Check the time of the processor, since other processes may share it."""

    def used():
        usage = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(u.ru_utime + u.ru_stime for u in usage)

    before = used()
    try:
        yield
    finally:
        assert used() - before < seconds


@pytest.mark.slow
def test_runs_that_unpack_to_far_too_much_are_refused_at_once(tmp_path):
    """Forty million zeros take a few thousand bytes, packed or not."""
    zeros = pa.array(np.zeros(40_000_000, dtype=np.int8))
    lists = pa.ListArray.from_arrays(np.array([0, len(zeros)], dtype=np.int32), zeros)
    for compression in ("none", "zstd"):
        path = tmp_path / f"{compression}.parquet"
        pq.write_table(pa.table({"edge_index": lists}), path, compression=compression)
        assert path.stat().st_size < 200_000
        with pytest.raises(ReadError, match="the file holds far too many values"), at_once():
            parquet.read(path)


@pytest.mark.slow
def test_a_long_string_stored_once_and_repeated_is_refused(tmp_path):
    strings = pa.array(["a" * 10_000] * 100_000)
    lists = pa.ListArray.from_arrays(np.arange(100_001, dtype=np.int32), strings)
    path = table(tmp_path, edge_index=[[0, 0]] * 100_000, ids=lists)
    assert path.stat().st_size < 500_000
    with pytest.raises(ReadError, match="this unpacks to far too much"), at_once():
        parquet.read(path)


def varint(number):
    """A Thrift integer of the compact protocol."""
    number, out = 2 * number, b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


@pytest.mark.slow
def test_pages_that_hold_more_than_the_footer_says_are_refused(tmp_path):
    count, path = 1_100_000, tmp_path / "a.parquet"
    zeros = pa.array(np.zeros(count, dtype=np.int8))
    lists = pa.ListArray.from_arrays(np.array([0, count], dtype=np.int32), zeros)
    big = {"data_page_size": 1 << 30, "max_rows_per_page": 1 << 30, "write_batch_size": 1 << 30}
    pq.write_table(pa.table({"edge_index": lists}), path, compression="none", **big)
    assert parquet.read(path).graphs.num_nodes == 1
    good = path.read_bytes()
    path.write_bytes(good.replace(varint(count), varint(2**27 - 1), 1))
    with pytest.raises(ReadError, match="levels do not match num_values in page header"):
        parquet.read(path)
    path.write_bytes(good.replace(varint(count), varint(2**27 - 1)))
    with pytest.raises(ReadError, match=r"far too many values|levels do not match"):
        parquet.read(path)


@pytest.mark.slow
def test_mutated_files_are_read_or_refused(tmp_path):
    graphs = Graphs.from_networkx([nx.path_graph(1 + n % 4) for n in range(20)])
    parquet_files.write(
        graphs.with_features(np.ones((50, 2))).with_labels(range(20)), tmp_path / "a.pq"
    )
    good, rng, refused = (tmp_path / "a.pq").read_bytes(), np.random.default_rng(0), 0
    for _ in range(50):
        bad = bytearray(good)
        for place in rng.integers(len(bad), size=rng.integers(1, 4)):
            bad[place] = rng.integers(256)
        (tmp_path / "b.pq").write_bytes(
            bad[: rng.integers(1, len(bad))] if rng.random() < 0.1 else bad
        )
        try:
            parquet.read(tmp_path / "b.pq")
        except ReadError:
            refused += 1
    assert 5 < refused < 45


@pytest.mark.slow
def test_the_limit_of_memory_can_be_set(tmp_path, monkeypatch):
    graphs = Graphs.from_networkx([nx.path_graph(3)] * 50_000)
    parquet_files.write(
        graphs.with_features(np.random.default_rng(0).normal(size=(150_000, 99))),
        path := tmp_path / "a.pq",
    )
    monkeypatch.setenv("ARTLAS_PARQUET_MEMORY_GB", "0.02")
    fix = r"got a limit of 0\.0 GB. To fix this, set ARTLAS_PARQUET_MEMORY_GB higher"
    with pytest.raises(ReadError, match=fix):
        parquet.read(path)
    monkeypatch.setenv("ARTLAS_PARQUET_MEMORY_GB", "1")
    assert len(parquet.read(path).graphs) == 50_000
    monkeypatch.setenv("ARTLAS_PARQUET_MEMORY_GB", "much")
    with pytest.raises(ValueError, match="ARTLAS_PARQUET_MEMORY_GB is not a number; got 'much'"):
        parquet.read(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import os; os.abort()", "the process that decodes the file crashed; got exit code -6"),
        ("import time; time.sleep(60)", "decoding takes too long; got more than 1 seconds"),
        ("while True: pass", "decoding takes too long; got more than 1 seconds"),
    ],
)
def test_a_child_that_crashes_or_hangs_is_a_read_error(tmp_path, monkeypatch, script, message):
    path = table(tmp_path, edge_index=[BOTH])
    (tmp_path / "child.py").write_text(script)
    monkeypatch.setattr(parquet_child, "__file__", str(tmp_path / "child.py"))
    monkeypatch.setenv("ARTLAS_PARQUET_SECONDS", "1")
    with pytest.raises(ReadError, match=message):
        parquet.read(path)


def test_a_defect_of_the_child_is_not_hidden(tmp_path, monkeypatch):
    path = table(tmp_path, edge_index=[BOTH])
    (tmp_path / "child.py").write_text("1 / 0")
    monkeypatch.setattr(parquet_child, "__file__", str(tmp_path / "child.py"))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        parquet.read(path)


def test_the_child_imports_neither_artlas_nor_torch(tmp_path):
    code = f"""
import json, runpy, sys
request = dict(path={str(table(tmp_path, edge_index=[BOTH]))!r}, size=9999, columns=["edge_index"],
               memory=1 << 32, seconds=9, sys_path=sys.path)
sys.argv = ["child", json.dumps(request)]
runpy.run_path({parquet_child.__file__!r}, run_name="__main__")
sys.exit("imported" if {{"artlas", "torch"}} & set(sys.modules) else 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_without_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'artlas\[parquet\]'"):
        parquet.read(tmp_path / "a.parquet")
