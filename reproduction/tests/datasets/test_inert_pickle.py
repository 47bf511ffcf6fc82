"""Pickles: arrays come out, hostile ones are refused, and nothing in them runs."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import subprocess

import numpy as np
import pytest

from artlas.errors import ReadError
from artlas_paper.datasets import inert_pickle
from artlas_paper.datasets.inert_pickle import array, unpickle

FLOATS = np.arange(6, dtype=np.float32).reshape(2, 3)


def write(tmp_path, data):
    path = tmp_path / "pickle"
    path.write_bytes(data)
    return path


def op(name, *args):
    """One opcode with the bytes of its argument."""
    return getattr(pickle, name) + b"".join(args)


def glob(module, name):
    return op("GLOBAL", f"{module}\n{name}\n".encode())


def text(value):
    return op("BINUNICODE", struct.pack("<I", len(value)), value.encode())


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize(
    "value",
    [
        FLOATS,
        FLOATS.T,
        FLOATS.astype(">f8"),
        np.arange(4, dtype=np.int8),
        np.array([True]),
        np.array(7, dtype=np.uint16),
        np.zeros((0, 3), dtype=np.int64),
    ],
    ids=["f4", "fortran", "big-endian", "i1", "bool", "scalar", "empty"],
)
def test_arrays_come_out_as_they_went_in(tmp_path, value, protocol):
    path = write(tmp_path, pickle.dumps(value, protocol))
    out = array(path, unpickle(path))
    assert out.dtype == value.dtype.newbyteorder("=")
    assert np.array_equal(out, value)


class Call:
    """Pickled as a call of ``function(*args)``."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (os.system, "system"),
        (eval, "eval"),
        (subprocess.Popen, "Popen"),
        (getattr, "getattr"),
        (__import__, "__import__"),
        (np.load, "load"),
        (io.open, "open"),
        (pickle.loads, "loads"),
    ],
)
def test_calls_are_refused_by_name_and_never_made(tmp_path, function, name, protocol):
    mark = tmp_path / "ran"
    line = f"open({str(mark)!r}, 'w')" if function is eval else f"touch {mark}"
    path = write(tmp_path, pickle.dumps(Call(function, line), protocol))
    with pytest.raises(ReadError, match=rf"could run code; got '[\w.]*{name}'"):
        unpickle(path)
    assert not mark.exists()


def test_the_hostile_pickle_would_have_run(tmp_path):
    mark = tmp_path / "ran"
    pickle.loads(pickle.dumps(Call(os.system, f"touch {mark}"), 2))
    assert mark.exists()  # what the tests above must be able to notice


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numpy", "ndarray.tofile"),
        ("numpy.core.multiarray", "_reconstruct.__globals__"),
        ("numpy", "load"),
        ("collections", "defaultdict.__init__"),
        ("builtins", "dict"),
        ("scipy.sparse.csr", "os"),
        ("_codecs", "decode"),
        ("", ""),
    ],
)
def test_names_beside_the_known_ones_are_refused(tmp_path, module, name):
    data = op("PROTO", b"\4") + text(module) + text(name) + op("STACK_GLOBAL") + op("STOP")
    with pytest.raises(ReadError, match="could run code"):
        unpickle(write(tmp_path, data))


def test_known_names_stand_for_records_of_this_package():
    for value in inert_pickle._KNOWN.values():
        kind = value if isinstance(value, type) else type(value)
        assert kind.__module__ == inert_pickle.__name__
        assert not hasattr(value() if value is kind else value, "__dict__")


@pytest.mark.parametrize("module", ["numpy._core.multiarray", "numpy.core.multiarray"])
def test_a_state_for_a_function_or_a_class_is_refused(tmp_path, module):
    state = op("EMPTY_DICT") + text("_call") + text("x") + op("SETITEM")
    for target in (glob(module, "_reconstruct"), glob("numpy", "dtype")):
        data = op("PROTO", b"\2") + target + state + op("BUILD") + op("STOP")
        with pytest.raises(ReadError, match="not a pickle of arrays"):
            unpickle(write(tmp_path, data))
        both = target + op("NONE") + state + op("TUPLE2") + op("BUILD") + op("STOP")
        with pytest.raises(ReadError, match="not a pickle of arrays"):
            unpickle(write(tmp_path, op("PROTO", b"\2") + both))


def test_a_subclass_cannot_be_made(tmp_path):
    """type(name, bases, dict) through the class of a known name, as some exploits do."""
    data = op("PROTO", b"\4") + text("numpy") + text("ndarray.__class__") + op("STACK_GLOBAL")
    with pytest.raises(ReadError, match="could run code"):
        unpickle(write(tmp_path, data + op("STOP")))
    known = glob("numpy", "ndarray")
    data = op("PROTO", b"\2") + known + text("x") + known + op("TUPLE1") + op("EMPTY_DICT")
    data += op("TUPLE3") + op("REDUCE") + op("STOP")
    made = unpickle(write(tmp_path, data))  # a record of the arguments, and nothing else
    assert type(made) is inert_pickle._Array
    with pytest.raises(ReadError, match="an array is missing"):
        array(tmp_path / "pickle", made)


def array_pickle(shape, kind="f4", data=b"\0" * 8, order="<"):
    """An ndarray as protocol 2 writes it, of any shape and bytes."""
    numbers = b"".join(op("LONG1", bytes([9]), n.to_bytes(9, "little")) for n in shape)
    dtype = glob("numpy", "dtype") + text(kind) + op("NEWFALSE") + op("NEWTRUE") + op("TUPLE3")
    dtype += op("REDUCE") + op("MARK") + op("BININT1", b"\3") + text(order)
    dtype += op("NONE") * 3 + op("BININT1", b"\0") * 3 + op("TUPLE") + op("BUILD")
    state = op("MARK") + op("BININT1", b"\1") + op("MARK") + numbers + op("TUPLE") + dtype
    state += op("NEWFALSE") + op("BINBYTES", struct.pack("<I", len(data)), data) + op("TUPLE")
    made = glob("numpy.core.multiarray", "_reconstruct") + op("EMPTY_TUPLE") + op("REDUCE")
    return op("PROTO", b"\2") + made + state + op("BUILD") + op("STOP")


def test_array_pickle_is_a_pickle_of_an_array(tmp_path):
    data = np.array([1.5, -2], dtype=np.float32).tobytes()
    path = write(tmp_path, array_pickle([2, 1], data=data))
    assert array(path, unpickle(path)).tolist() == [[1.5], [-2]]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"shape": [2**40, 2**20]}, "not as long as its shape says"),
        ({"shape": [2**60, 2**60, 0]}, "not as long as its shape says"),
        ({"shape": [3]}, "not as long as its shape says"),
        ({"shape": [2], "kind": "O8"}, "not hold plain numbers"),
        ({"shape": [2], "kind": "V8"}, "not hold plain numbers"),
        ({"shape": [2], "kind": "f1"}, "not hold plain numbers"),
        ({"shape": [2], "kind": "f4,f4"}, "not hold plain numbers"),
        ({"shape": [2], "order": "x"}, "no known byte order"),
    ],
)
def test_arrays_that_are_not_what_they_say_are_refused(tmp_path, more, message):
    path = write(tmp_path, array_pickle(**more))
    with pytest.raises(ReadError, match=message):
        array(path, unpickle(path))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"not a pickle",
        op("PROTO", b"\x09"),
        op("STOP"),
        op("PROTO", b"\4") + op("BINBYTES8", struct.pack("<Q", 2**50)),
        op("PROTO", b"\5") + op("BYTEARRAY8", struct.pack("<Q", 2**40)),
        op("PROTO", b"\2") + op("NONE") + op("BINGET", b"\7") + op("STOP"),
        op("PROTO", b"\2") + op("EMPTY_LIST") + op("EMPTY_TUPLE") + op("REDUCE") + op("STOP"),
        op("PROTO", b"\2") + op("EXT1", b"\1") + op("STOP"),
        op("PROTO", b"\2") + op("PERSID", b"x\n") + op("STOP"),
        op("PROTO", b"\2") + op("INST", b"os\nsystem\n"),
    ],
)
def test_broken_pickles_are_refused(tmp_path, data):
    with pytest.raises(ReadError):
        unpickle(write(tmp_path, data))


def test_a_memo_of_any_number_takes_no_memory(tmp_path):
    import tracemalloc

    data = op("PROTO", b"\2") + op("EMPTY_DICT") + op("LONG_BINPUT", b"\xff\xff\xff\x7f") + b"."
    path = write(tmp_path, data)
    tracemalloc.start()
    assert unpickle(path) == {}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.slow
def test_keys_that_nest_deep_are_refused_before_they_are_hashed(tmp_path):
    deep = op("EMPTY_TUPLE") + op("TUPLE1") * 300_000
    data = op("PROTO", b"\2") + op("EMPTY_DICT") + deep + op("NONE") + op("SETITEM") + op("STOP")
    with pytest.raises(ReadError, match="not a pickle of arrays"):
        unpickle(write(tmp_path, data))


def test_the_opcodes_of_the_real_files_are_known(raw):
    root = raw("Cora")
    allowed = set(inert_pickle._OPCODES.split())
    for path in (root / "Planetoid" / "Cora" / "raw").glob("ind.cora.*x"):
        if not path.name.endswith("index"):
            used = {code.name for code, _, _ in pickletools.genops(path.read_bytes())}
            assert used <= allowed
