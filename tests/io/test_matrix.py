"""Matrix Market and .npz against SciPy, and errors with their line."""

from __future__ import annotations

import gzip
import io

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artlas.errors import GraphError
from artlas.io import matrix_market, npz

RELAXED = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
HEAD = "%%MatrixMarket matrix "


def adjacency(made) -> np.ndarray:
    return made.graphs.to_scipy(0).toarray()


def expected(a: np.ndarray) -> np.ndarray:
    """What a matrix means: an edge where either direction is not zero, and no loops."""
    there = (a != 0) | (a.T != 0)
    np.fill_diagonal(there, False)
    return there.astype(np.float32)


@st.composite
def squares(draw):
    """A square matrix of one of three kinds of numbers, with many zeros."""
    n, seed = draw(st.integers(1, 8)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    a = rng.integers(-2, 3, (n, n)) * (rng.random((n, n)) < draw(st.floats(0, 1)))
    shape = draw(st.sampled_from(["general", "symmetric", "skew-symmetric"]))
    if shape != "general":
        a = np.tril(a, -1)
        a = a - a.T if shape == "skew-symmetric" else a + a.T + np.diag(rng.integers(0, 2, n))
    return a * draw(st.sampled_from([1, 0.25])), shape


@RELAXED
@given(squares(), st.booleans(), st.booleans())
def test_market_agrees_with_scipy(tmp_path, case, dense, pattern):
    a, shape = case
    path, out = tmp_path / "a.mtx", io.BytesIO()
    field = "pattern" if pattern and not dense and shape != "skew-symmetric" else None
    stored = a if dense else scipy.sparse.coo_array(a)
    scipy.io.mmwrite(out, stored, comment="two\nlines", field=field, symmetry=shape)
    path.write_bytes(out.getvalue())
    oracle = scipy.io.mmread(path)
    oracle = oracle if dense else oracle.toarray()
    made = matrix_market.read(path)
    np.testing.assert_array_equal(adjacency(made), expected(oracle))
    assert made.guesses == [shape, "array" if dense else "coordinate"]
    triangle = oracle if shape == "general" else np.tril(oracle)
    if shape != "skew-symmetric":
        assert made.changes["weights"] == ((triangle != 0) & (triangle != 1)).sum()
    off = oracle * (1 - np.eye(len(a)))
    one_way = ((off != 0) & (off.T == 0)).sum() if shape == "general" else 0
    assert made.changes["one_way"] == one_way


def test_market_of_a_networkx_graph_packed(tmp_path):
    graph, out = nx.karate_club_graph(), io.BytesIO()
    scipy.io.mmwrite(out, nx.to_scipy_sparse_array(graph, weight=None), field="pattern")
    (tmp_path / "karate.mtx.gz").write_bytes(gzip.compress(out.getvalue()))
    made = matrix_market.read(tmp_path / "karate.mtx.gz")
    np.testing.assert_array_equal(adjacency(made), nx.to_numpy_array(graph, weight=None))
    assert not any(made.changes.values())


def test_stored_zeros_are_no_edges(tmp_path):
    (tmp_path / "a.mtx").write_text(
        HEAD + "coordinate real symmetric\n3 3 3\n2 1 0\n3 2 2\n3 1 1\n"
    )
    made = matrix_market.read(tmp_path / "a.mtx")
    assert adjacency(made).tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert +made.changes == {"weights": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the first line is no Matrix Market banner; got ''"),
        ("3 3 1\n1 2\n", "line 1: the first line is no Matrix Market banner; got '3 3 1'"),
        (HEAD + "coordinate complex general\n", "line 1: the entries are complex"),
        (HEAD + "coordinate quaternion general\n", "unknown word; got 'quaternion'"),
        (HEAD + "array pattern general\n", "line 1: an array has no pattern"),
        (HEAD + "coordinate real general", "line 1: the line of sizes is missing"),
        (HEAD + "coordinate real general\n%\n3 3\n", "line 3: the line of sizes is missing or"),
        (HEAD + "coordinate real general\n-3 3 1\n", "line 2: the line of sizes is missing or"),
        (
            HEAD + "coordinate real general\n3 4 0\n",
            "not square; got shape [3, 4]. To fix this, "
            "pass an [n, n] matrix (for a bipartite block B, [[0, B], [B.T, 0]])",
        ),
        (HEAD + "coordinate real general\n0 0 0\n", "line 2: there are no nodes"),
        (HEAD + "coordinate pattern general\n999999999 999999999 0\n", "announces more nodes"),
        (HEAD + "coordinate pattern general\n3 3 2\n1 2\n", "got 1 entries of 2"),
        (
            HEAD + "coordinate pattern general\n3 3 2\n1 2\n%\n\n4 1\n",
            "line 6: an entry lies outside the matrix; got [4, 1] with 3 rows",
        ),
        (HEAD + "coordinate pattern general\n3 3 1\n0 1\n", "line 3: an entry lies outside"),
        (HEAD + "coordinate real general\n3 3 1\n1.5 1 1\n", "line 3: an entry lies outside"),
        (HEAD + "coordinate real general\n3 3 1\nnan 1 1\n", "line 3: an entry lies outside"),
        (HEAD + "coordinate real general\n3 3 1\n2 1 nan\n", "entries that are not finite"),
        (HEAD + "coordinate real general\n3 3 1\n2 1\n", "line 3: "),
        (HEAD + "coordinate pattern general\n3 3 1\n2 x\n", "line 3: "),
        (HEAD + "array real general\n2 2\n0\n1\n1\n", "got 3 values, where 4 are due for 2 rows"),
    ],
)
def test_market_faults_are_refused_with_their_line(tmp_path, text, message):
    (tmp_path / "a.mtx").write_text(text)
    with pytest.raises(GraphError) as caught:
        matrix_market.read(tmp_path / "a.mtx")
    assert message in str(caught.value)


@RELAXED
@given(squares(), st.sampled_from(["csr", "csc", "coo"]), st.booleans(), st.booleans())
def test_npz_agrees_with_scipy(tmp_path, case, layout, array, packed):
    path, kind = tmp_path / "a.npz", "array" if array else "matrix"
    made_by = getattr(scipy.sparse, f"{layout}_{kind}")
    scipy.sparse.save_npz(path, made_by(case[0]), compressed=packed)
    made, oracle = npz.read(path), scipy.sparse.load_npz(path).toarray()
    np.testing.assert_array_equal(adjacency(made), expected(oracle))
    assert made.changes["weights"] == ((oracle != 0) & (oracle != 1)).sum()
    assert made.guesses == ["SciPy"]


def test_npz_with_stored_zeros_and_duplicates(tmp_path):
    coo = scipy.sparse.coo_array(([1, 1, 0], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
    scipy.sparse.save_npz(tmp_path / "a.npz", coo)
    made = npz.read(tmp_path / "a.npz")
    assert adjacency(made).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert +made.changes == {"one_way": 1, "duplicates": 1}


def test_a_large_npz_whose_ones_pack_well_is_no_bomb(tmp_path):
    ring = np.arange(200_000)
    ends = np.concatenate([ring, np.roll(ring, 1)]), np.concatenate([np.roll(ring, 1), ring])
    scipy.sparse.save_npz(
        tmp_path / "a.npz", scipy.sparse.csr_array((np.ones(400_000), ends), shape=(200_000,) * 2)
    )
    made = npz.read(tmp_path / "a.npz")
    assert made.graphs.num_edges == 200_000
    assert not any(made.changes.values())


def test_npz_with_edge_index(tmp_path):
    ends = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    x, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 1, 0])
    np.savez(tmp_path / "a.npz", edge_index=ends, num_nodes=4, x=x, y=y, note=np.array("hello"))
    made = npz.read(tmp_path / "a.npz")
    assert (made.graphs.num_nodes, made.graphs.num_edges) == (4, 2)
    assert made.graphs.x.tolist() == x.tolist()
    assert made.graphs.y.tolist() == y.tolist()
    assert made.guesses == ["edge_index", "array 'note' ignored"]
    assert not any(made.changes.values())
    np.savez(tmp_path / "b.npz", edge_index=ends, edge_weight=[1, 1, 0, 2.5])
    made = npz.read(tmp_path / "b.npz")
    assert (made.graphs.num_nodes, made.graphs.num_edges) == (3, 2)
    assert +made.changes == {"weights": 2}


@pytest.mark.parametrize("name", ["adjacency", "anything"])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.float64])
def test_npz_with_a_dense_adjacency(tmp_path, name, dtype):
    a = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=dtype)
    np.savez(tmp_path / "a.npz", **{name: np.asfortranarray(a)})
    made = npz.read(tmp_path / "a.npz")
    assert adjacency(made).tolist() == a.tolist()
    assert made.guesses == [f"array {name!r} is an adjacency"]


CSR = {
    "format": np.array(b"csr"),
    "shape": np.array([3, 3]),
    "data": np.ones(2),
    "indices": np.array([1, 0], dtype=np.int32),
    "indptr": np.array([0, 1, 2, 2], dtype=np.int32),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": np.array(b"dia")}, "the sparse format is not csr, csc or coo; got 'dia'"),
        ({"format": np.array(b"bsr")}, "save matrix.tocsr() instead"),
        ({"format": np.array([b"csr"])}, "the sparse format is not csr, csc or coo"),
        ({"format": np.array(7)}, "the sparse format is not csr, csc or coo"),
        ({"shape": np.array([3, 4])}, "not square; got shape [3, 4]"),
        ({"shape": np.array([3.0, 3.0])}, "array 'shape' is no integer array"),
        ({"shape": np.array([3, 3, 3])}, "not square"),
        ({"shape": np.array([-3, -3])}, "there are no nodes"),
        ({"shape": np.array([2**31, 2**31])}, "announces more nodes"),
        ({"indptr": None}, "array 'indptr' is missing"),
        ({"indptr": np.array([0, 1, 2])}, "array 'indptr' does not fit"),
        ({"indptr": np.array([0, 2, 1, 2])}, "array 'indptr' does not fit"),
        ({"indptr": np.array([1, 1, 2, 2])}, "array 'indptr' does not fit"),
        ({"indptr": np.array([0, 1, 2, 3])}, "array 'indptr' does not fit"),
        ({"indptr": np.array([0, 10**6, 0, 0]), "indices": np.array([], dtype=int)}, "not fit"),
        ({"indptr": np.array([0, 2**62, -(2**62), 2])}, "array 'indptr' does not fit"),
        ({"indptr": np.array([0.0, 1, 2, 2])}, "array 'indptr' is no integer array"),
        ({"indices": np.array([1, 3])}, "out of range; got 0 to 3 with 3 nodes"),
        ({"indices": np.array([1, -1])}, "out of range; got -1 to 1 with 3 nodes"),
        ({"indices": np.array([1, 2**64 - 1], dtype=np.uint64)}, "'indices' is out of range"),
        ({"indices": np.array([[1, 0]])}, "array 'indices' is no integer array of 1"),
        ({"data": np.ones(3)}, "got 2 rows, 2 columns and 3 values"),
        ({"data": None}, "array 'data' is missing"),
        ({"data": np.array(3.0)}, "array 'data' is missing or not flat"),
        ({"data": np.array([1, np.nan])}, "entries that are not finite"),
        ({"data": np.array([1, 1j])}, "entries that are not finite; got complex128"),
        ({"data": np.array(["a", "b"])}, "entries that are not finite; got <U1"),
    ],
)
def test_broken_sparse_npz_are_refused(tmp_path, change, message):
    arrays = {name: array for name, array in {**CSR, **change}.items() if array is not None}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(GraphError) as caught:
        npz.read(tmp_path / "a.npz")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edge_index": np.zeros((3, 2), dtype=int)}, "not of shape [2, E]; got [3, 2]"),
        ({"edge_index": np.zeros((2, 2))}, "array 'edge_index' is no integer array"),
        ({"edge_index": np.array([[0], [5]]), "num_nodes": 3}, "got 0 to 5 with 3 nodes"),
        ({"edge_index": np.array([[0], [-5]])}, "got -5 to 0 with 1 nodes"),
        ({"edge_index": np.array([[0], [2**40]])}, "announces more nodes"),
        ({"edge_index": np.zeros((2, 0), dtype=int)}, "there are no nodes"),
        ({"edge_index": np.array([[0], [1]]), "edge_weight": np.ones(2)}, "edge_weight has the"),
        ({"adjacency": np.ones((2, 3))}, "array 'adjacency' is not square; got shape [2, 3]"),
        ({"adjacency": np.array([["a"]])}, "array 'adjacency' has entries that are not fini"),
        ({"a": np.ones((2, 2)), "b": np.ones((2, 2))}, "is known; got arrays ['a', 'b']"),
        ({"a": np.ones(4)}, "holds no graph that is known"),
    ],
)
def test_other_broken_npz_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(GraphError) as caught:
        npz.read(tmp_path / "a.npz")
    assert message in str(caught.value)
