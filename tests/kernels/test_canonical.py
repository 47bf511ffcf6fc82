"""Entries made canonical by compiled code, against SciPy, and text that goes straight into rows."""

from __future__ import annotations

import numpy as np
import pytest

from artlas import kernels
from artlas.graphs.canonical import _sparse_rows
from artlas.io import tu
from artlas.io.number_tables import parse_numbers

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiled kernels")


def same(made, expected):
    np.testing.assert_array_equal(made.row_ptr, expected.row_ptr)
    np.testing.assert_array_equal(made.col, expected.col)
    assert (made.row_ptr.dtype, made.col.dtype) == (np.int64, np.int32)
    counts = [(one.loops, one.duplicates, one.one_way) for one in (made, expected)]
    assert counts[0] == counts[1]


def entries(rng, nodes, count, kind):
    """Ends [2, E]: drawn, or both directions in ascending order; with loops or without."""
    ends = rng.integers(0, nodes, (2, count)).astype(np.int32)
    if kind == "any":
        return ends
    both = np.unique(np.concatenate([ends, ends[::-1]], 1), axis=1)
    if kind == "shuffled":
        return both[:, rng.permutation(both.shape[1])]
    if kind == "loop-free":
        return both[:, both[0] != both[1]]
    if kind == "one missing":
        return np.delete(both, rng.integers(both.shape[1]), 1)
    return both


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["any", "both", "loop-free", "shuffled", "one missing"])
@pytest.mark.parametrize("first", [0, 1])
def test_entries_are_what_scipy_makes_of_them(kind, first):
    rng, data = np.random.default_rng(0), kernels.native_data()
    for nodes, count in [(1, 0), (1, 3), (2, 1), (5, 7), (40, 30), (40, 400), (9000, 200_000)]:
        ends = entries(rng, nodes, count, kind) if count else np.empty((2, 0), dtype=np.int32)
        if ends.shape[1] == 0 and count:
            continue
        same(data.canonical(ends + first, nodes, first), _sparse_rows(ends, nodes, 0))
        pairs = np.ascontiguousarray(ends.T)
        same(data.canonical((pairs + first).T, nodes, first), _sparse_rows(ends, nodes, 0))


def test_nodes_out_of_range_are_no_graph():
    data, top = kernels.native_data(), np.iinfo(np.int32)
    for ends in ([[0], [3]], [[-1], [0]], [[0, top.min], [1, 0]], [[top.max], [0]]):
        ends = np.array(ends, dtype=np.int32)
        assert data.canonical(ends, 3) is None
        assert _sparse_rows(ends, 3, 0) is None
    assert data.canonical(np.array([[0], [1]], dtype=np.int32), 3, first=1) is None


def text_of(ends, separator=b", ", end=b"\n"):
    lines = [b"%d%s%d" % (u, separator, v) for u, v in ends.T.tolist()]
    return b"\n".join(lines) + end


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["both", "loop-free", "one missing"])
@pytest.mark.parametrize("separator", [b", ", b",", b" ", b"\t"])
def test_ascending_text_goes_straight_into_rows(kind, separator):
    rng, data = np.random.default_rng(1), kernels.native_data()
    # the last one is of several parts, with loops in all of them
    for nodes, count in [(2, 1), (30, 200), (3000, 150_000)]:
        ends = entries(rng, nodes, count, kind)
        for end in (b"\n", b""):
            text = np.frombuffer(text_of(ends + 1, separator, end), dtype=np.uint8)
            same(data.canonical_text(text, nodes, 1), _sparse_rows(ends, nodes, 0))


@pytest.mark.parametrize(
    "text",
    [
        b"2, 1\n1, 2\n",  # falls
        b"1, 2\n1, 2\n2, 1\n",  # repeats
        b"1, 2\n\n2, 1\n",  # what the slower way passes over
        b"# edges\n1, 2\n2, 1\n",
        b"1 , 2\n2, 1\n",
        b"+1, 2\n2, 1\n",
        b"1, 2, 3\n2, 1, 3\n",  # what it refuses
        b"1, 4\n",
        b"0, 1\n",
        b"1, x\n",
        b"1\n",
        b"1, 123456789\n",
    ],
)
def test_any_other_text_is_left_to_the_slower_way(text):
    made = kernels.native_data().canonical_text(np.frombuffer(text, dtype=np.uint8), 3, 1)
    assert made is None


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_file_in_any_order_is_the_same_graphs(tmp_path, shuffle):
    rng = np.random.default_rng(2)
    ends = [entries(rng, 50, 200, "both") + 50 * g for g in range(3)]
    ends = np.concatenate(ends, 1)
    if shuffle:
        ends = ends[:, rng.permutation(ends.shape[1])]
    (tmp_path / "T_A.txt").write_bytes(text_of(ends + 1))
    (tmp_path / "T_graph_indicator.txt").write_text("".join(f"{i // 50 + 1}\n" for i in range(150)))
    made = tu.read(tmp_path)
    with kernels.use("twin"):
        slow = tu.read(tmp_path)
    np.testing.assert_array_equal(made.graphs.row_ptr, slow.graphs.row_ptr)
    np.testing.assert_array_equal(made.graphs.col, slow.graphs.col)
    assert made.changes == slow.changes


def test_plain_rows_are_read_as_the_others_are(tmp_path):
    rng = np.random.default_rng(3)
    numbers = [0, 7, 10, 99, 1234567, 12345678, 123456789, 2**31 - 1, 2**40]
    for columns in (1, 2, 3):
        for separator in (",", ", ", " ", "\t", ";", " , "):
            rows = rng.choice(numbers, (50, columns)).astype(np.int64)
            text = "\n".join(separator.join(map(str, row)) for row in rows.tolist())
            for end in ("", "\n", "\r\n", "\n\n"):
                made = parse_numbers((text + end).encode(), tmp_path, columns)
                np.testing.assert_array_equal(made, rows)
