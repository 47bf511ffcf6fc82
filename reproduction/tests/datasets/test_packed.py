"""The packed form: round trips, and what is refused."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
import torch
from tiny_datasets import visible_parts

from artlas import Graphs
from artlas.errors import ReadError
from artlas_paper.datasets import packed
from artlas_paper.datasets.registry import DatasetError

PATH = (3, np.array([[0, 1, 1, 2], [1, 0, 2, 1]]))


def graphs(**more):
    return Graphs.from_edges([PATH, (2, [])], **more)


def manifest(name="A"):
    return {
        "format": packed.FORMAT,
        "name": name,
        "artlas": "0",
        "size": 0,
        "sha256": "",
        "raw": {},
        "counts": {},
        "check": "",
        "cleaning": {},
        "missing": [],
        "guesses": [],
    }


def write(root, **more):
    with packed.locked(root, "A"):
        return packed.write(root, "A", graphs(**more), manifest())


@pytest.mark.parametrize(
    "more",
    [{}, {"x": np.eye(5)}, {"y": [0, 1]}, {"x": np.eye(5), "y": [0.5, 1, 2, 3, 4]}],
    ids=["bare", "x", "y", "both"],
)
def test_round_trip(tmp_path, more):
    done = write(tmp_path, **more)
    assert packed.find(tmp_path, "A", verify=True) == done
    given, back = graphs(**more), packed.read(tmp_path, "A")
    for name in ("node_ptr", "row_ptr", "col", "x", "y"):
        a, b = getattr(given, name), getattr(back, name)
        assert (a is None and b is None) or (a.dtype == b.dtype and torch.equal(a, b)), name
    assert visible_parts(tmp_path) == []


def test_half_of_a_pair_is_not_prepared(tmp_path):
    assert packed.find(tmp_path, "A") is None
    write(tmp_path)
    packed.npz_path(tmp_path, "A").unlink()
    assert packed.find(tmp_path, "A") is None
    write(tmp_path)
    packed.manifest_path(tmp_path, "A").unlink()
    assert packed.find(tmp_path, "A") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 1}', "[" * 100_000, '{"format": 99, "name": "A"}']
)
def test_a_broken_manifest_is_not_prepared(tmp_path, text):
    write(tmp_path)
    packed.manifest_path(tmp_path, "A").write_text(text)
    assert packed.find(tmp_path, "A") is None


def test_the_manifest_of_another_is_not_prepared(tmp_path):
    write(tmp_path)
    path = packed.manifest_path(tmp_path, "A")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"name": "B"}))
    assert packed.find(tmp_path, "A") is None


def test_a_changed_byte_is_found(tmp_path):
    write(tmp_path, x=np.eye(5))
    path = packed.npz_path(tmp_path, "A")
    data = bytearray(path.read_bytes())
    at = data.index(np.eye(5, dtype=np.float32).tobytes())
    data[at] ^= 1
    path.write_bytes(data)
    assert packed.find(tmp_path, "A") is not None  # its length is right
    assert packed.find(tmp_path, "A", verify=True) is None
    with pytest.raises(ReadError, match="CRC"):
        packed.read(tmp_path, "A")


def arrays():
    made = graphs(x=np.eye(5), y=[0, 1])
    return {name: getattr(made, name).numpy() for name in ("node_ptr", "row_ptr", "col", "x", "y")}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("col", None, "col is missing"),
        ("col", np.array([1, 0, 2, 1]), "col is not <i4"),
        ("col", np.array([1, 0, 2, 3], dtype=np.int32), "outside their graph"),
        ("col", np.array([1, -1, 2, 1], dtype=np.int32), "outside their graph"),
        ("node_ptr", np.array([0, 3, 3, 5]), "graph boundaries"),
        ("node_ptr", np.array([0, 3, 6]), "graph boundaries"),
        ("node_ptr", np.array([0]), "graph boundaries"),
        ("row_ptr", np.array([0, 1, 3, 4, 4, 5]), "row boundaries"),
        ("row_ptr", np.array([0, 3, 1, 4, 4, 4]), "row boundaries"),
        ("row_ptr", np.array([], dtype=np.int64), "graph boundaries"),
        ("x", np.eye(4, dtype=np.float32), "4 rows of features for 5 nodes"),
        ("y", np.array([1, 2, 3]), "labels of int64"),
        ("y", np.array(["a", "b"]), "labels of <U1"),
    ],
)
def test_arrays_that_are_no_graphs_are_refused(tmp_path, name, value, message):
    made = arrays() | {name: value}
    (tmp_path / "artlas").mkdir()
    np.savez(packed.npz_path(tmp_path, "A"), **{k: v for k, v in made.items() if v is not None})
    with pytest.raises(ReadError, match=message):
        packed.read(tmp_path, "A")


def test_leftovers_are_those_of_one_dataset(tmp_path):
    (tmp_path / "artlas").mkdir()
    for name in (".A.npz.1.part", ".A-clean.npz.1.part", ".A.json.77.part", "A.npz.part"):
        (tmp_path / "artlas" / name).touch()
    names = [path.name for path in packed.leftovers(tmp_path, "A")]
    assert names == [".A.json.77.part", ".A.npz.1.part"]


def test_the_lock_keeps_others_out(tmp_path):
    inside = threading.Event()

    def other():
        with packed.locked(tmp_path, "A"):
            inside.set()

    thread = threading.Thread(target=other, daemon=True)
    with packed.locked(tmp_path, "A"):
        thread.start()
        assert not inside.wait(0.2)
    assert inside.wait(5)
    thread.join(5)


def test_a_root_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(DatasetError, match="cannot be written to"),
        packed.locked(tmp_path / "file", "A"),
    ):
        pass


def test_same_notices_size_and_time(tmp_path):
    import os

    path = tmp_path / "a"
    path.write_text("12")
    known = packed.file_record(path)
    assert packed.is_unchanged(path, known)
    os.utime(path, ns=(0, known["mtime_ns"] + 1))
    assert not packed.is_unchanged(path, known)
    path.write_text("123")
    os.utime(path, ns=(0, known["mtime_ns"]))
    assert not packed.is_unchanged(path, known)
