"""artlas.read: the choice of a format, the summary it prints, and its errors."""

from __future__ import annotations

import gzip
import os
import pathlib
import shutil
import warnings
import zipfile

import networkx as nx
import pytest

from artlas import GraphCleaningWarning, GraphError, Graphs
from artlas.errors import ReadError
from artlas.io import edge_list
from artlas.io.reading import read

DATA = pathlib.Path(__file__).parent / "data"
FILES = sorted(path for path in DATA.iterdir() if path.name.startswith("caffeine"))
FRIENDS = "source,target\nann,bob\nbob,cid\n"
ENDINGS = {
    "caffeine.graphml": "GraphML",
    "caffeine.gml": "GML",
    "caffeine.json": "node-link JSON",
    "caffeine.mtx": "Matrix Market",
    "caffeine.npz": "NumPy .npz",
    "caffeine.parquet": "Parquet",
    "caffeine.tsv": "edge list",
}


def as_networkx(graphs: Graphs) -> nx.Graph:
    return nx.from_scipy_sparse_array(graphs.to_scipy(0))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_caffeine_is_the_same_graph_in_every_format(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphCleaningWarning)
        graphs = read(path, verbose=False)
    assert (graphs.num_graphs, graphs.num_nodes, graphs.num_edges) == (1, 14, 15)
    assert nx.is_isomorphic(as_networkx(graphs), as_networkx(read(DATA / "caffeine-plain.csv")))


def test_one_line_says_what_was_guessed(tmp_path, capsys):
    path = tmp_path / "friends.csv"
    path.write_text(FRIENDS)
    graphs = read(path)
    assert graphs.ids.tolist() == ["ann", "bob", "cid"]
    assert capsys.readouterr().err == (
        "artlas.read: friends.csv: edge list, comma-separated, first line is a header; "
        "3 nodes, 2 edges, ids are text, kept in .ids\n"
    )
    read(path, verbose=False)
    assert capsys.readouterr() == ("", "")


def test_paths_of_any_kind(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(FRIENDS)
    monkeypatch.chdir(tmp_path)
    for path in ("a.csv", pathlib.Path("a.csv"), os.fspath(tmp_path / "a.csv")):
        assert read(path).num_edges == 2


def test_options_reach_the_edge_list(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b,c;d\n")
    assert read(path, delimiter=",").ids.tolist() == ["a;b", "c;d"]
    path.write_text("u,v\na,b\n")
    assert read(path, header=True).ids.tolist() == ["a", "b"]
    with pytest.raises(ReadError, match="for edge lists; got a file read as GML"):
        read(DATA / "caffeine.gml", delimiter=",")
    with pytest.raises(ReadError, match="for edge lists"):
        read(DATA / "caffeine.gml", header=False)


@pytest.mark.parametrize(("name", "label"), ENDINGS.items())
@pytest.mark.parametrize("ending", [".txt", ".dat", ""])
def test_content_tells_where_the_ending_does_not(tmp_path, capsys, name, label, ending):
    shutil.copy(DATA / name, tmp_path / f"graph{ending}")
    assert read(tmp_path / f"graph{ending}").num_edges == 15
    assert capsys.readouterr().err.startswith(f"artlas.read: graph{ending}: {label}")


def test_content_is_told_behind_gzip_a_mark_or_a_comment(tmp_path, capsys):
    data = (DATA / "caffeine.mtx").read_bytes()
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(data))
    assert read(tmp_path / "a.txt.gz").num_edges == 15
    assert "Matrix Market" in capsys.readouterr().err
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbf\n" + (DATA / "caffeine.json").read_bytes())
    assert read(tmp_path / "b.txt").num_edges == 15
    assert "JSON" in capsys.readouterr().err
    (tmp_path / "c.txt").write_bytes(b"# from a tool\n" + (DATA / "caffeine.gml").read_bytes())
    assert read(tmp_path / "c.txt").num_edges == 15
    assert "GML" in capsys.readouterr().err


@pytest.mark.parametrize("head", ["smiles,activity\nCCO,1\nCC,0\n", "id\tSMILES\n1\tCCO\n2\tCC\n"])
def test_a_table_of_molecules_is_not_taken_for_edges(tmp_path, head):
    (tmp_path / "a.csv").write_text(head)
    assert read(tmp_path / "a.csv").sizes.tolist() == [3, 2]
    assert read(tmp_path / "a.csv", "edges").num_graphs == 1


def test_format_overrides_the_ending(tmp_path):
    (tmp_path / "graph.json").write_text(FRIENDS)
    with pytest.raises(ReadError):
        read(tmp_path / "graph.json")
    assert read(tmp_path / "graph.json", format="edges").num_edges == 2
    with pytest.raises(ReadError, match=r"format is unknown; got 'dot'.*'edges' .*'tu'"):
        read(tmp_path / "graph.json", format="dot")


def test_zip_in_tu_layout(tmp_path, capsys):
    path = tmp_path / "caffeine.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("caffeine/README.txt", "hello")
        for file in sorted((DATA / "caffeine-tu").iterdir()):
            archive.write(file, f"caffeine/{file.name}")
    assert read(path).num_edges == 15
    assert capsys.readouterr().err.startswith("artlas.read: caffeine.zip: TU layout, data set")
    shutil.copy(path, tmp_path / "other")
    assert read(tmp_path / "other").num_edges == 15
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X/X_A.txt", "1, 2\n")
        archive.writestr("X/X_graph_indicator.txt", "1\nx\n")
    with pytest.raises(ReadError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}/X_graph_indicator.txt, line 2: ")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("README.txt", "hello")
    with pytest.raises(ReadError, match=r"not in TU layout; got no file NAME_A\.txt"):
        read(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.csv", "this is not a file; got nothing there"),
        ("folder", "the folder is not in TU layout; got no file NAME_A.txt"),
        ("letter.docx", "the ending tells no format; got '.docx'"),
    ],
)
@pytest.mark.parametrize("format", [None, "gml", "tu"])
def test_what_cannot_be_read_is_an_error_of_ours(tmp_path, name, message, format):
    (tmp_path / "folder").mkdir()
    (tmp_path / "letter.docx").write_text("Dear all")
    with pytest.raises(ReadError) as caught:
        read(tmp_path / name, format)
    assert str(caught.value).startswith(f"{tmp_path / name}")
    assert "To fix this, " in str(caught.value)
    if format is None:
        assert message in str(caught.value)
        assert name != "letter.docx" or "'graphml' (GraphML: .graphml .xml)" in str(caught.value)


def test_cleaning_is_announced_as_everywhere(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("0,1,2\n1,1,1\n")
    with pytest.warns(GraphCleaningWarning, match="self-loops dropped: 1, edge weights") as caught:
        assert read(path).num_edges == 1
    assert caught[0].filename == __file__
    with pytest.raises(GraphError, match="not canonical and strict=True; got self-loops"):
        read(path, strict=True)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "this does not fit into memory"),
        (RecursionError(), "this is nested too deeply"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "this is not UTF-8 text"),
        (PermissionError(13, "Permission denied"), "this cannot be read; got '[Errno 13]"),
        (GraphError("x has NaN"), "a.csv: x has NaN"),
    ],
)
def test_whatever_a_file_does_to_a_reader_is_an_error_of_ours(
    tmp_path, monkeypatch, error, message
):
    def broken(*_):
        raise error

    (tmp_path / "a.csv").write_text(FRIENDS)
    monkeypatch.setattr(edge_list, "read", broken)
    with pytest.raises(ReadError) as caught:
        read(tmp_path / "a.csv")
    assert message in str(caught.value)
    assert "a.csv" in str(caught.value)


def test_a_defect_of_a_reader_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(FRIENDS)
    monkeypatch.setattr(edge_list, "read", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        read(tmp_path / "a.csv")
