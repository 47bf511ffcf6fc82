"""What prepare and load do with files that are there, changed, damaged or absent."""

from __future__ import annotations

import dataclasses
import gzip
import json

import numpy as np
import pytest
import torch
from scipy.sparse import coo_matrix, save_npz
from tiny_datasets import TINY, TINY_SENTENCE, entries, visible_parts, write_raw, write_zip

import artlas
from artlas_paper.datasets import REGISTRY, load, packed, prepare
from artlas_paper.datasets.raw import data_root
from artlas_paper.datasets.registry import DatasetError, Statistics


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """An empty data root, and the made-up dataset TINY among the known ones."""
    monkeypatch.setitem(REGISTRY, "TINY", TINY)
    return tmp_path


@pytest.mark.parametrize(("name", "size"), [("digits", 1200), ("families", 960), ("networks", 6)])
def test_built_in(name, size, tmp_path):
    graphs = load(name, tmp_path)
    assert len(graphs) == size
    if name == "networks":
        assert prepare(name, tmp_path).done == "built in, nothing to prepare"
    assert list(tmp_path.iterdir()) == []


def test_the_manifest_tells_what_was_done(raw):
    root = raw("CiteSeer")
    done = prepare("CiteSeer", root, download=False)
    written = json.loads((root / "artlas" / "CiteSeer.json").read_bytes())
    assert written == done.manifest
    assert written["artlas"] == artlas.__version__
    assert written["cleaning"] == {"loops": 248, "duplicates": 112}
    assert written["guesses"] == ["15 test nodes without features or label, filled with 0"]
    assert len(written["raw"]) == 8
    path = root / "Planetoid" / "CiteSeer" / "raw" / "ind.citeseer.graph"
    assert written["raw"]["ind.citeseer.graph"]["sha256"] == packed.sha256(path)


def state_of(root):
    folder = root / "artlas"
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_a_second_call_does_nothing(tiny):
    write_raw(tiny)
    first = prepare("tiny", tiny)
    assert (first.done, first.check) == ("packed the raw files", TINY_SENTENCE)
    before = state_of(tiny)
    second = prepare("TINY", tiny)
    assert second.done == "packed already"
    assert second.manifest == first.manifest
    load("TINY", tiny)
    assert state_of(tiny) == before


def test_the_packed_form_is_enough(tiny):
    folder = write_raw(tiny)
    graphs = load("TINY", tiny, "raw")
    for path in folder.iterdir():
        path.unlink()
    again = load("TINY", tiny, "raw")
    assert torch.equal(again.x, graphs.x)
    assert prepare("TINY", tiny, download=False).done == "packed already"


def test_changed_raw_files_are_packed_anew(tiny):
    folder = write_raw(tiny)
    assert load("TINY", tiny, "raw").y.tolist() == [0, 1, 0]
    (folder / "TINY_graph_labels.txt").write_text("2\n1\n2\n")
    done = prepare("TINY", tiny).done
    assert done == "packed the raw files anew: TINY_graph_labels.txt has changed"
    assert load("TINY", tiny, "raw").y.tolist() == [1, 0, 1]
    (folder / "TINY_graph_labels.txt").write_text("1\n1\n2\n")
    assert load("TINY", tiny, "raw").y.tolist() == [0, 0, 1]  # load notices, too


def test_a_damaged_packed_file_is_packed_anew(tiny):
    write_raw(tiny)
    prepare("TINY", tiny)
    path = packed.npz_path(tiny, "TINY")
    data = bytearray(path.read_bytes())
    data[300] ^= 255
    path.write_bytes(data)
    with pytest.raises(
        DatasetError, match=r"artlas-paper data prepare TINY --root .* packs it anew"
    ):
        load("TINY", tiny)
    assert prepare("TINY", tiny).done.endswith("anew: the packed file was not whole")
    assert len(load("TINY", tiny)) == 3


def test_features_that_arrive_later_are_packed(monkeypatch, tmp_path):
    numbers = Statistics(1, 2, 3, 4, 128, citations=2)
    entry = dataclasses.replace(REGISTRY["ogbn-arxiv"], statistics=numbers)
    monkeypatch.setitem(REGISTRY, "ogbn-arxiv", entry)
    folder = tmp_path / "ogbn_arxiv" / "raw"
    folder.mkdir(parents=True)

    def write(name, text):
        (folder / name).write_bytes(gzip.compress(text.encode()))

    write("edge.csv.gz", "0,1\n2,1\n")
    write("node-label.csv.gz", "0\n1\n1\n")
    write("node_year.csv.gz", "1999\n1999\n1999\n")
    first = prepare("ogbn-arxiv", tmp_path, download=False)
    assert first.manifest["missing"] != []
    assert load("ogbn-arxiv", tmp_path).x is None
    write("node-feat.csv.gz", (",".join(["0.5"] * 128) + "\n") * 3)
    second = prepare("ogbn-arxiv", tmp_path, download=False)
    assert second.done.endswith("anew: node-feat.csv.gz is new")
    assert second.manifest["missing"] == []
    assert load("ogbn-arxiv", tmp_path, "raw").x.shape == (3, 128)
    assert load("ogbn-arxiv", tmp_path).x.shape == (3, 256)


def test_reddit_in_small(monkeypatch, tmp_path):
    numbers = Statistics(1, 2, 3, 4, 5)
    entry = dataclasses.replace(REGISTRY["Reddit"], statistics=numbers)
    monkeypatch.setitem(REGISTRY, "Reddit", entry)
    folder = tmp_path / "Reddit" / "raw"
    folder.mkdir(parents=True)
    x, y = np.arange(15.0).reshape(3, 5), np.array([1, 0, 1])
    np.savez(folder / "reddit_data.npz", feature=x, label=y, node_types=y)
    edges = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    save_npz(folder / "reddit_graph.npz", coo_matrix((np.ones(4), edges), shape=(3, 3)))
    graphs = load("Reddit", tmp_path, "raw")
    assert np.array_equal(graphs.x, x)
    assert graphs.y.tolist() == [1, 0, 1]
    assert np.array_equal(entries(graphs), edges)
    assert load("Reddit", tmp_path).x.shape == (3, 256)


@pytest.mark.parametrize("place", ["TUDataset/TINY.zip", "TUDataset/TINY/TINY.zip"])
def test_an_archive_in_place_is_unpacked(tiny, place):
    write_zip(tiny / place)
    assert prepare("TINY", tiny, download=False).done == "unpacked TINY.zip and packed it"
    assert (tiny / place).exists()
    assert (tiny / TINY.folder / "TINY_A.txt").exists()


def test_absent_files_are_named_with_the_command(tiny):
    folder = write_raw(tiny)
    (folder / "TINY_A.txt").unlink()
    for call in (lambda: load("TINY", tiny), lambda: prepare("TINY", tiny, download=False)):
        with pytest.raises(DatasetError, match=r"TINY_A\.txt not in") as caught:
            call()
        assert f"artlas-paper data prepare TINY --root {tiny}" in str(caught.value)
        assert str(folder) in str(caught.value)


def test_wrong_counts_are_not_packed(tiny):
    folder = write_raw(tiny)
    (folder / "TINY_graph_labels.txt").write_text("1\n2\n3\n")
    with pytest.raises(DatasetError, match="3 classes instead of 2"):
        prepare("TINY", tiny)
    assert packed.find(tiny, "TINY") is None
    assert visible_parts(tiny) == []


def test_a_root_that_cannot_be_written_is_read_all_the_same(tiny):
    write_raw(tiny)
    (tiny / "artlas").write_text("in the way")
    assert len(load("TINY", tiny)) == 3
    with pytest.raises(DatasetError, match="cannot be written to"):
        prepare("TINY", tiny)


def test_wrong_features_are_refused(tmp_path):
    with pytest.raises(DatasetError, match="paper, released, raw; got 'all'"):
        load("digits", tmp_path, "all")


def test_the_root(monkeypatch, tmp_path):
    monkeypatch.delenv("ARTLAS_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root() == tmp_path / ".cache" / "artlas" / "data"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert data_root() == tmp_path / "x" / "artlas" / "data"
    monkeypatch.setenv("ARTLAS_DATA", str(tmp_path / "y"))
    assert data_root() == tmp_path / "y"
    assert data_root(tmp_path / "z") == tmp_path / "z"
