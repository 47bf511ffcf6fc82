"""Edge lists: guesses, ids, and errors with their line."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import pathlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artlas.errors import ReadError
from artlas.io import edge_list


@pytest.fixture
def reading(tmp_path):
    def read(content: str | bytes, name: str = "graph.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return edge_list.read(path, **options)

    return read


def edges(made) -> set[tuple]:
    """Undirected edges between ids, or between numbers where there are none."""
    graphs = made.graphs
    rows = np.repeat(np.arange(graphs.num_nodes), np.diff(graphs.row_ptr.numpy()))
    ids = np.arange(graphs.num_nodes) if graphs.ids is None else graphs.ids
    pairs = zip(rows, graphs.col.numpy(), strict=True)
    return {(ids[u], ids[v]) for u, v in pairs if u < v}


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("1,5\n5,9\n", "comma-separated"),
        ("1;5\n5;9\n", "semicolon-separated"),
        ("1\t5\n5\t9\n", "tab-separated"),
        ("1 5\n5   9\n", "blank-separated"),
        (" 1\t 5 \n\n5 \t9", "tab-separated"),
        ("\ufeff1, 5\r\n5, 9\r\n", "comma-separated"),
        ("1,5\r5,9\r", "comma-separated"),
        ("# a, b\n%\n1,5\n#x\n5,9\n", "comma-separated"),
    ],
)
def test_integers_are_sorted_whatever_separates_them(reading, text, guess):
    made = reading(text)
    assert edges(made) == {(1, 5), (5, 9)}
    assert made.graphs.ids.dtype == np.int64
    assert made.graphs.ids.tolist() == [1, 5, 9]
    assert made.guesses == [guess, "ids are integers, kept in .ids"]
    assert not any(made.changes.values())


def test_ids_from_zero_without_gaps_are_not_kept(reading):
    made = reading("2,1\n0,1\n")
    assert made.graphs.ids is None
    assert edges(made) == {(0, 1), (1, 2)}
    assert made.guesses == ["comma-separated"]


def test_text_keeps_its_order_of_appearance(reading):
    made = reading("zoe,adam\nadam,mia\n")
    assert made.graphs.ids.dtype == object
    assert made.graphs.ids.tolist() == ["zoe", "adam", "mia"]
    assert edges(made) == {("zoe", "adam"), ("adam", "mia")}
    assert "ids are text, kept in .ids" in made.guesses


@pytest.mark.parametrize("late", ["x", "1e3", "2.5", "99999999999999999999", "é"])
def test_a_late_word_makes_all_ids_text(reading, late):
    rows = [f"{i} {i + 1}" for i in range(200)]
    made = reading("\n".join([*rows, f"0 {late}"]), "graph.txt")
    assert made.graphs.ids.tolist() == [*map(str, range(201)), late]
    assert ("0", late) in edges(made)


def test_a_late_word_in_a_weighted_file_stays_apart_from_its_value(reading):
    with_floats = "".join(f"{i} {i + 1} 0.5\n" for i in range(1001)) + "0 1e3 0.5\n"
    made = reading(with_floats, "graph.txt")
    assert made.graphs.num_nodes == 1003
    assert ("0", "1e3") in edges(made)


def test_floats_of_pandas_are_integers(reading):
    assert reading("1.0,2.0\n2.0,7.\n").graphs.ids.tolist() == [1, 2, 7]


@pytest.mark.parametrize("ids", [(-5, 3), (2**53 + 1, 2**53), (-(2**63), 2**63 - 1)])
@pytest.mark.parametrize("weight", ["", ",0.5"])
def test_large_and_negative_integers_are_exact(reading, ids, weight):
    made = reading(f"{ids[0]},{ids[1]}{weight}\n")
    assert made.graphs.ids.tolist() == sorted(ids)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("source,target", "4,2"),
        ("Target,kind,Source", "2,x,4"),
        ("id,weight,src,dst", "9,1,4,2"),
        ("from,to", "4,2"),
        ("v,u", "2,4"),
        ("Node 1,node_2", "4,2"),
        ("person,friend", "4,2"),
    ],
)
def test_a_header_tells_the_columns(reading, header, row):
    made = reading(f"{header}\n{row}\n")
    assert edges(made) == {(2, 4)}
    assert "first line is a header" in made.guesses


def test_a_header_above_text_is_known_by_its_names_or_its_third_column(reading):
    assert edges(reading("source,target\nann,bob\n")) == {("ann", "bob")}
    assert edges(reading("u,v\nann,bob\n")) == {("ann", "bob")}
    assert edges(reading("who,whom,strength\nann,bob,1\n")) == {("ann", "bob")}


def test_letters_are_ids_and_not_a_header(reading):
    assert edges(reading("u v\nv w\n")) == {("u", "v"), ("v", "w")}
    assert edges(reading("u v\na w\n")) == {("u", "v"), ("a", "w")}
    assert edges(reading("from,to\nto,from2\n")) == {("from", "to"), ("to", "from2")}


def test_header_and_delimiter_can_be_told(reading):
    assert edges(reading("ann,bob\neve,joe\n", header=True)) == {("eve", "joe")}
    assert edges(reading("source,target\n", header=False)) == {("source", "target")}
    assert edges(reading("a b,c\n", delimiter=" ")) == {("a", "b,c")}
    made = reading("x;y,z;w\n", delimiter=",")
    assert edges(made) == {("x;y", "z;w")}
    assert made.guesses == ["ids are text, kept in .ids"]
    with pytest.raises(ReadError, match=r"delimiter is unknown; got '::'.*pass ','"):
        reading("1::2", delimiter="::")


@pytest.mark.parametrize("word", ["source,target,weight\n", ""])
@pytest.mark.parametrize("ids", ["1,2", "ann,bob"])
def test_weights_are_counted_and_ignored(reading, word, ids):
    made = reading(f"{word}{ids},1\n{ids[::-1]},0.5\n3,4,0\n5,6,1.0\n")
    assert made.changes["weights"] == 2
    assert "column 3 is a weight: ignored" in made.guesses
    assert made.graphs.num_edges == (3 if ids == "1,2" else 4)


def test_other_columns_are_said_to_be_ignored(reading):
    assert "columns 4, 5 ignored" in reading("1,2,1,x,y\n").guesses
    assert "column 3 ignored" in reading("1,2,friend\n3,4,foe\n").guesses
    assert reading("1,2,friend\n3,4,foe\n").changes["weights"] == 0


def test_what_networkx_writes(reading):
    made = reading("1 2 {'weight': 3, 'b': [4, 5]}\n2 3 {}\n", "graph.edgelist")
    assert edges(made) == {(1, 2), (2, 3)}
    assert "column 3 ignored" in made.guesses


def test_quotes(reading):
    made = reading('"Doe, J","B ""q"""\n# x,"y\n"B ""q""",c\n')
    assert edges(made) == {("Doe, J", 'B "q"'), ('B "q"', "c")}
    made = reading('"Jean Valjean" "say ""x"""\nJavert "Jean Valjean"\n', "graph.txt")
    assert edges(made) == {("Jean Valjean", 'say "x"'), ("Jean Valjean", "Javert")}
    assert edges(reading('"1","2"\n"2","10"\n')) == {(1, 2), (2, 10)}


def test_undirected_by_nature(reading):
    made = reading("0,1\n1,0\n1,2\n2,2\n1,2\n")
    assert edges(made) == {(0, 1), (1, 2)}
    assert +made.changes == {"loops": 1, "duplicates": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no edges; got no rows"),
        ("# 1,2\n\n", "there are no edges; got no rows"),
        ("source,target\n", "there are no edges; got a header only"),
        ("ann\nbob\n", "line 1: a row has too few columns; got 'ann'"),
        ("1,2\n\n#\n7\n", "line 4: a row has too few columns; got '7'"),
        ("1,2\n3,4,5\n", "line 2: a row has another number of columns; got 3 columns after 2"),
        ("1,2,1\n3,4\n", "line 2: a row has another number of columns; got 2 columns after 3"),
        ("1,2\n3 4\n", "line 2: a row has too few columns; got '3 4'"),
        ("1,2\n,3 4\n", "line 2: a node id is empty; got nothing in column 1"),
        ("1,2\n3,,4\n", "line 2: a row has another number of columns"),
        ("1,2\n3,\n", "line 2: a node id is empty; got nothing in column 2"),
        ('a,b\n"",c\n', "line 2: a node id is empty; got nothing in column 1"),
        ("1 2\n3,4\n", "line 2: a row has too few columns; got '3,4'"),
        ("1,2\n3,4\x00\n", "line 2: this is not text; got a NUL byte"),
        ('a,b\n"c,d\ne,f\n', "line 2: the quotes are broken"),
        (b"a,b\nc,\xff\n", "line 2: this is not UTF-8 text; got byte 0xff"),
        ("a,b\n" + '"' + "c" * 200_000 + '",d\n', "line 2: the quotes are broken; got field"),
    ],
)
def test_faults_are_refused_with_their_line(reading, text, message):
    with pytest.raises(ReadError) as caught:
        reading(text)
    assert message in str(caught.value)
    assert "To fix this, " in str(caught.value)


@pytest.mark.parametrize(
    ("ending", "pack"), [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)]
)
def test_packed(reading, ending, pack):
    assert edges(reading(pack(b"ann\tbob\n"), f"graph.tsv.{ending}")) == {("ann", "bob")}


WORDS = st.text(
    st.characters(exclude_categories=["C", "Z"], exclude_characters="#%\ufeff"),
    min_size=1,
    max_size=5,
)
IDS = st.one_of(
    st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2), min_size=1),
    st.lists(st.tuples(*[st.integers(0, 9)] * 2), min_size=1, max_size=80),
    st.lists(st.tuples(WORDS, WORDS), min_size=1),
)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=IDS, delimiter=st.sampled_from(",;\t"))
def test_what_csv_writes_comes_back(tmp_path, pairs, delimiter):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC).writerows(pairs)
    path = pathlib.Path(tmp_path) / "any.csv"
    path.write_text(out.getvalue(), encoding="utf-8", newline="")
    made = edge_list.read(path, delimiter, False)
    words = list(dict.fromkeys(word for pair in pairs for word in pair))
    if isinstance(words[0], str) and all(edge_list._INTEGER.fullmatch(word) for word in words):
        return  # digits that happen to be text are integers in a file
    expected = words if isinstance(words[0], str) else sorted(words)
    ids = made.graphs.ids
    assert (list(range(made.graphs.num_nodes)) if ids is None else ids.tolist()) == expected
    there = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    assert {frozenset(pair) for pair in edges(made)} == there


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(*[st.integers(-99, 10**6)] * 3), min_size=1), blank=st.booleans())
def test_both_ways_through_a_file_of_integers_agree(tmp_path, monkeypatch, pairs, blank):
    path = pathlib.Path(tmp_path) / "any.csv"
    path.write_text("".join((" " if blank else ", ").join(map(str, row)) + "\n" for row in pairs))
    fast = edge_list.read(path)
    with monkeypatch.context() as patch:
        patch.setattr(edge_list, "_read_numbers", lambda *_: None)
        slow = edge_list.read(path)
    assert edges(fast) == edges(slow)
    assert fast.changes == slow.changes
    assert (fast.graphs.ids is None) == (slow.graphs.ids is None)
    assert fast.graphs.ids is None or fast.graphs.ids.tolist() == slow.graphs.ids.tolist()


def test_a_large_file_of_integers_never_reaches_the_loop(reading, monkeypatch):
    monkeypatch.setattr(edge_list, "_read_words", None)
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 10**12, (2000, 2))
    made = reading("".join(f"{u}, {v}\n" for u, v in pairs), "graph.txt")
    assert made.graphs.ids.tolist() == np.unique(pairs).tolist()
    assert edges(made) == {(min(p), max(p)) for p in pairs.tolist()}
