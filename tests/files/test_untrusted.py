"""Hostile files are refused before they are unpacked, never executed, never half written."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import pickle
import signal
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from artlas.errors import ReadError
from artlas.files import untrusted
from artlas.files.atomic import atomic


def everything(name: str) -> bool:
    return True


def archive(path, members, compression=zipfile.ZIP_DEFLATED):
    """Write a zip of (name or ZipInfo, bytes) pairs."""
    with zipfile.ZipFile(path, "w", compression) as out:
        for name, data in members:
            out.writestr(name, data)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "a/../../evil.txt",
        "/tmp/evil.txt",
        "..\\evil.txt",
        "\\evil.txt",
        "C:\\evil.txt",
        "C:/evil.txt",
        "..",
    ],
)
def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    path = archive(tmp_path / "a.zip", [("good.txt", b"1"), (zipfile.ZipInfo(name), b"evil")])
    with pytest.raises(ReadError, match="would write outside its folder") as caught:
        untrusted.unpack(path, tmp_path / "out", everything)
    assert repr(name) in str(caught.value)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.zip", "out"]


def test_harmless_names_are_unpacked_flat(tmp_path):
    path = archive(tmp_path / "a.zip", [("d/", b""), ("d/a.txt", b"1"), ("d/b.bin", b"2")])
    written = untrusted.unpack(path, tmp_path / "out", lambda name: name.endswith(".txt"))
    assert written == [tmp_path / "out" / "a.txt"]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["a.txt"]
    assert written[0].read_bytes() == b"1"


def test_a_member_without_a_name_is_skipped_or_refused(tmp_path):
    path = archive(tmp_path / "a.zip", [("a.txt", b"1"), ("b", b"2")])
    data = path.read_bytes()
    # zipfile cannot write such a name: a NUL ends the name where it is read.
    path.write_bytes(data.replace(b"b2PK", b"\x002PK").replace(b"bPK\x05", b"\x00PK\x05"))
    try:
        written = untrusted.unpack(path, tmp_path / "out", everything)
    except ReadError:
        written = [tmp_path / "out" / "a.txt"]
    assert written == [tmp_path / "out" / "a.txt"]


def test_links_are_refused(tmp_path):
    link = zipfile.ZipInfo("link.txt")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    with pytest.raises(ReadError, match=r"holds a link; got 'link\.txt'"):
        untrusted.open_archive(archive(tmp_path / "a.zip", [(link, b"/etc/passwd")]))


def patched(path, offset_in_local, offset_in_central, value):
    """Overwrite a field of the only member in both of its headers."""
    data = bytearray(path.read_bytes())
    for magic, offset in ((b"PK\x03\x04", offset_in_local), (b"PK\x01\x02", offset_in_central)):
        start = data.index(magic) + offset
        data[start : start + len(value)] = value
    path.write_bytes(data)
    return path


def test_encrypted_archives_are_refused(tmp_path):
    path = archive(tmp_path / "a.zip", [("a.txt", b"secret")])
    with pytest.raises(ReadError, match="the archive is encrypted"):
        untrusted.open_archive(patched(path, 6, 8, b"\x01\x00"))


@pytest.fixture
def low_limits(monkeypatch):
    """Lower the limits, so that a zip bomb can be small."""
    monkeypatch.setattr(untrusted, "RATIO", 100)
    monkeypatch.setattr(untrusted, "SLACK", 1 << 16)


@pytest.mark.usefixtures("low_limits")
def test_a_bomb_is_refused_by_its_ratio(tmp_path):
    path = archive(tmp_path / "a.zip", [("a.txt", bytes(1 << 20))])
    with pytest.raises(ReadError, match=r"unpacks to far too much; got 1,048,576 bytes from"):
        untrusted.unpack(path, tmp_path / "out", everything)
    assert not any((tmp_path / "out").iterdir())


@pytest.mark.usefixtures("low_limits")
def test_a_bomb_is_refused_by_its_total(tmp_path):
    # Each member is small enough for the slack of one.
    path = archive(tmp_path / "a.zip", [(f"{i}.txt", bytes(1 << 16)) for i in range(99)])
    with pytest.raises(ReadError, match=r"archive unpacks to far too much; got 6,488,064 bytes"):
        untrusted.unpack(path, tmp_path / "out", everything)
    assert not any((tmp_path / "out").iterdir())


def test_too_many_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted, "MOST_MEMBERS", 3)
    path = archive(tmp_path / "a.zip", [(f"{i}.txt", b"") for i in range(4)])
    with pytest.raises(ReadError, match="too many members; got 4"):
        untrusted.open_archive(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_that_lies_about_its_size_is_never_written(tmp_path, compression):
    path = archive(tmp_path / "a.zip", [("a.txt", os.urandom(5000))], compression)
    patched(path, 22, 24, struct.pack("<I", 100))
    with pytest.raises(ReadError, match=r"a member|unpacked"):
        untrusted.unpack(path, tmp_path / "out", everything)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_wrong_checksum_is_refused(tmp_path):
    path = archive(tmp_path / "a.zip", [("a.txt", b"hello")])
    patched(path, 14, 16, b"\0\0\0\0")
    with pytest.raises(ReadError, match=r"cannot be unpacked; got 'a\.txt': Bad CRC-32"):
        untrusted.unpack(path, tmp_path / "out", everything)
    assert list((tmp_path / "out").iterdir()) == []


def test_files_that_are_no_archives_are_refused(tmp_path):
    whole = archive(tmp_path / "a.zip", [("a.txt", b"hello" * 99)]).read_bytes()
    for data in (b"", b"PK\x03\x04", b"no", whole[:60], whole[:-30]):
        (tmp_path / "b.zip").write_bytes(data)
        with pytest.raises(ReadError, match="this is not a zip archive"):
            untrusted.open_archive(tmp_path / "b.zip")


PACKERS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize(("ending", "pack"), PACKERS.items())
@pytest.mark.usefixtures("low_limits")
def test_packed_streams(tmp_path, ending, pack):
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(pack(b"hello"))
    assert untrusted.read_bytes(path) == b"hello"
    assert untrusted.suffix(path) == ".txt"
    path.write_bytes(pack(bytes(8 << 20)))
    with pytest.raises(ReadError, match=r"this unpacks to far too much; got more than \d"):
        untrusted.read_bytes(path)
    path.write_bytes(pack(os.urandom(3000))[:-40])
    with pytest.raises(ReadError, match="this cannot be unpacked"):
        untrusted.read_bytes(path)
    path.write_bytes(b"not packed at all")
    with pytest.raises(ReadError, match="this cannot be unpacked"):
        untrusted.read_bytes(path)


def test_a_stream_within_a_stream_is_unpacked_once(tmp_path):
    inner = gzip.compress(bytes(4 << 20))
    (tmp_path / "a.gz").write_bytes(gzip.compress(inner))
    assert untrusted.read_bytes(tmp_path / "a.gz") == inner


class Boom:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_pickled_arrays_are_refused_and_not_run(tmp_path):
    path, mark = tmp_path / "a.npz", tmp_path / "ran"
    np.savez(path, x=np.array([Boom(mark)], dtype=object))
    with pytest.raises(ReadError, match=r"holds pickled objects; got array 'x\.npy'"):
        untrusted.read_npz(path)
    assert not mark.exists()
    bare = archive(tmp_path / "b.npz", [("x.npy", pickle.dumps(Boom(mark)))])
    with pytest.raises(ReadError, match="not a NumPy header"):
        untrusted.read_npz(bare)
    assert not mark.exists()
    with np.load(path, allow_pickle=True) as arrays:
        arrays["x"]
    assert mark.is_dir(), "the file was harmless, so that nothing was shown"


def npy(header: str, body: bytes, version: bytes = b"\x01\x00") -> bytes:
    text = header.encode().ljust(246) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + body


def described(descr: str, shape: str, order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(described("'<f8'", "(1000000000000,)"), bytes(8)), "not as long as its header says"),
        (npy(described("'<f8'", "(2,)"), bytes(8)), "not as long as its header says"),
        (npy(described("'<f8'", "(1,)"), bytes(24)), "not as long as its header says"),
        (npy(described("'<f8'", "(-1,)"), bytes(8)), "not a NumPy header"),
        (npy(described("'<f8'", f"({2**62}, {2**62}, 0)"), bytes(8)), "To fix this"),
        (npy(described("'<f8'", "(1,)"), bytes(8), b"\x07\x00"), "not a NumPy header"),
        (npy(described("'<f8'", f"(0, {2**70})"), b""), "To fix this"),
        (npy(described("'|V0'", f"({2**70},)"), b""), "To fix this"),
        (npy(described("'<f8'", "(" + "1," * 65 + ")"), bytes(8)), "To fix this"),
        (npy(described("'<f8'", "(True,)"), bytes(8)), "To fix this"),
        (npy(described("('<f8', (2,))", "(1,)"), bytes(16)), "To fix this"),
        (npy(described("'<f8'", "__import__('os')"), bytes(8)), "not a NumPy header"),
        (npy(described("[('a', '|O')]", "(1,)"), bytes(8)), "holds pickled objects"),
        (npy("(" * 117, b""), "not a NumPy header"),
        (npy("", b""), "not a NumPy header"),
        (b"\x93NUMPY", "not a NumPy header"),
        (b"", "not a NumPy header"),
    ],
)
def test_arrays_with_false_headers_are_refused_before_memory_is_allocated(tmp_path, data, message):
    with pytest.raises(ReadError, match=message):
        untrusted.read_npz(archive(tmp_path / "a.npz", [("x.npy", data)]))


def test_arrays_of_any_layout_come_back(tmp_path):
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "s": np.array(b"csr"),
        "e": np.empty((0, 4), dtype=np.int32),
        "b": np.array([1, 2], dtype=">i4"),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    made = untrusted.read_npz(tmp_path / "a.npz")
    assert made.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(made[name], array)
        assert made[name].dtype == array.dtype


def test_text_with_a_wrong_byte_is_refused_with_its_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\ntwo\n\xe9\n")
    with pytest.raises(ReadError, match="line 3: this is not UTF-8 text; got byte 0xe9"):
        untrusted.read_text(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone")
    assert untrusted.read_text(tmp_path / "a.txt") == "one"


def test_paths_that_are_no_files_are_refused(tmp_path):
    with pytest.raises(ReadError, match="not a file; got a folder"):
        untrusted.read_bytes(tmp_path)
    with pytest.raises(ReadError, match="not a file; got nothing there"):
        untrusted.read_bytes(tmp_path / "absent.csv")


def test_atomic_replaces_whole_files_only(tmp_path):
    path = tmp_path / "a.txt"
    with atomic(path) as out:
        out.write(b"old")
        assert not path.exists()
    with contextlib.suppress(KeyboardInterrupt), atomic(path) as out:
        out.write(b"half of the n")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import pathlib, sys, time
from artlas.files.atomic import atomic
with atomic(pathlib.Path(sys.argv[1])) as out:
    out.write(b"half of it")
    out.flush()
    print("written", flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_leaves_nothing_under_the_name(tmp_path):
    path = tmp_path / "a.txt"
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"written\n"
        writer.send_signal(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL
    assert not path.exists()
    with atomic(path) as out:
        out.write(b"whole")
    assert path.read_bytes() == b"whole"
