"""Tables of numbers in text: values, lines in errors, compiled and plain parser alike."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from artlas import kernels
from artlas.errors import ReadError
from artlas.io.number_tables import parse_numbers, read_numbers

BOTH = ["native", "twin"] if kernels.available() else ["twin"]
HERE = Path("numbers.txt")


def outcome(which, text, **options):
    with kernels.use(which):
        try:
            found = parse_numbers(text, HERE, **options)
        except ReadError as error:
            return str(error)
    return found.shape, found.dtype.name, [repr(float(v) + 0.0) for v in found.ravel()]


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"1,2\n3 , 4\n", [[1, 2], [3, 4]]),
        (b"1\t2\r\n 3 ;4\r\n\r\n", [[1, 2], [3, 4]]),
        (b"# a\n\n% b\n+1 -2", [[1, -2]]),
        (b"\xef\xbb\xbf7 8\n", [[7, 8]]),
        (b"5\n6\n", [[5], [6]]),
    ],
)
def test_values(which, text, wanted):
    with kernels.use(which):
        found = parse_numbers(text, HERE)
    assert found.tolist() == wanted
    assert found.dtype == np.int64


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1 2\n\n3\n", r"line 3: a row has not 2 values; got 1 in '3'"),
        (b"1 2\n3 4 5\n", r"line 2: a row has not 2 values; got 3"),
        (b"#\n1 2\nx 4\n", r"line 3: a value is no number; got 'x 4'"),
        (b"1 2\n3 4,\n", r"line 2: a value is no number"),
        (b"1 2\n3,,4\n", r"line 2: a value is no number"),
        (b"1 2.5\n", r"line 1: a value is no number"),
        (b"1 \x00 2\n", r"line 1: a value is no number"),
        (b"9223372036854775808 1\n", r"line 1: a value is out of range for int64"),
        (b"1 --2\n", r"line 1: a value is no number"),
        (b"+-1 2\n", r"line 1: a value is no number"),
    ],
)
def test_bad_rows_name_their_line(which, text, message):
    with kernels.use(which), pytest.raises(ReadError, match=message):
        parse_numbers(text, HERE)


@pytest.mark.parametrize("which", BOTH)
def test_columns_types_and_skipped_lines(which):
    with kernels.use(which):
        assert parse_numbers(b"a b\n1 2\n", HERE, skip=1).tolist() == [[1, 2]]
        assert parse_numbers(b"", HERE, 3).shape == (0, 3)
        found = parse_numbers(b"1.5,nan\n-1e-3 , inf\n", HERE, 2, np.float64)
        np.testing.assert_array_equal(found, [[1.5, np.nan], [-0.001, np.inf]])
        with pytest.raises(ReadError, match=r"line 3: a row has not 2 values"):
            parse_numbers(b"a b\n1 2\n3\n", HERE, skip=1)
        with pytest.raises(ReadError, match="line 1: a value is out of range for int32"):
            parse_numbers(b"4000000000", HERE, dtype=np.int32)
        with pytest.raises(ReadError, match="line 1: a value is out of range for float64"):
            parse_numbers(b"1e999", HERE, dtype=np.float64)
        assert parse_numbers(b"1e-999", HERE, dtype=np.float64).tolist() == [[0.0]]


PIECES = [
    b"0",
    b"7",
    b"-12",
    b"3.5",
    b"1e3",
    b".5",
    b"nan",
    b"x",
    b",",
    b";",
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"#",
    b"%",
    b"99999999999999999999",
    b"1e-400",
    b"\x00",
    b"-",
    b"e",
]


@pytest.mark.skipif(not kernels.available(), reason="no compiled kernels in this install")
@given(st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join), st.booleans())
def test_compiled_and_plain_parser_agree(text, whole):
    dtype = np.int64 if whole else np.float64
    assert outcome("native", text, dtype=dtype) == outcome("twin", text, dtype=dtype)


@pytest.mark.slow
@pytest.mark.skipif(not kernels.available(), reason="no compiled kernels in this install")
def test_large_text_is_split_among_threads_without_a_seam(tmp_path):
    wanted = np.random.default_rng(0).integers(-(10**9), 10**9, (400_000, 3))
    text = b"\n".join(b"%d, %d,%d" % tuple(row) for row in wanted.tolist())
    assert len(text) > 8 << 20  # several parts
    broken, threads = text.split(b"\n"), torch.get_num_threads()
    broken[399_000] = b"1, 2"
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            np.testing.assert_array_equal(parse_numbers(text, HERE), wanted)
            with pytest.raises(ReadError, match=r"line 399001: a row has not 3 values"):
                parse_numbers(b"\n".join(broken), HERE)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.slow
def test_packed_files(tmp_path):
    path = tmp_path / "n.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n3,4\n"))
    assert read_numbers(path, 2).tolist() == [[1, 2], [3, 4]]
    path.write_bytes(gzip.compress(bytes(300 << 20)))
    with pytest.raises(ReadError, match="far too much"):
        read_numbers(path, 2)
